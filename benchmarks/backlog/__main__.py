"""`make bench-backlog`: measure, and write each figure with its goal to `benchmarks/results/backlog.json`.

    python -m benchmarks.backlog [--only aggregation,join] [--rounds 5]

Rows are written after each scenario, and those of the others stay; the plot beside them is drawn from them.
`--scale 0.01` tries everything out with a hundredth of the records, and writes nothing, or to another file that is
named (`--results`). What runs leave behind and what they compared is kept in `--work`. Exit code 0: everything was
measured, whether or not it reached its goal; 1: something could not be measured, or two results differ, those of
earlier calls included; 2: usage.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.backlog import plot
from benchmarks.backlog.catalog import SCENARIOS
from benchmarks.backlog.command import Command, versions
from benchmarks.local.results import Origin
from benchmarks.runner import Suite

SUITE = Suite("benchmarks.backlog", SCENARIOS, Origin("make bench-backlog", versions))
RESULTS = Path("benchmarks/results/backlog.json")
COMMAND = Command(SUITE, "Measure backlogs as batches.", RESULTS, rounds=5, title=plot.BACKLOG)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
