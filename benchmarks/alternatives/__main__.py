"""`make bench-alternatives`: measure, and write each figure to `benchmarks/results/alternatives.json`.

    python -m benchmarks.alternatives [--only aggregation_vs_default] [--rounds 10]

Options and exit codes are those of `python -m benchmarks.backlog`, whose topics this reads, too.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.alternatives.catalog import SCENARIOS
from benchmarks.backlog import plot
from benchmarks.backlog.command import Command, versions
from benchmarks.local.results import Origin
from benchmarks.runner import Suite

OF_BACKLOGS = Origin("make bench-alternatives", versions)
ORIGIN = replace(OF_BACKLOGS, measures=(*OF_BACKLOGS.measures, "benchmarks/backlog"))
SUITE = Suite("benchmarks.alternatives", SCENARIOS, ORIGIN)
RESULTS = Path("benchmarks/results/alternatives.json")
COMMAND = Command(
    SUITE, "Measure what one would otherwise choose.", RESULTS, rounds=10, title=plot.ALTERNATIVES
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
