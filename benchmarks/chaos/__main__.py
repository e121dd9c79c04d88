"""`make chaos`: try, and write what held to `benchmarks/results/chaos.json`.

    python -m benchmarks.chaos [--only misoperation,fuzz] [--seed 1]

What does not hold is told with its seed and the command that shows it again. Rows are written after each scenario,
and those of the others stay. `--share 0.02` tries everything out with a fiftieth, and writes nothing. Exit code 0:
all was tried, and all held; 1: something did not hold, or could not be tried; 2: usage.
"""

from __future__ import annotations

import argparse
import logging
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import structlog

from benchmarks.chaos.catalog import SCENARIOS
from benchmarks.chaos.scenario import Bench
from benchmarks.local.results import DRIVER, OPERATOR, Origin
from benchmarks.runner import Suite, share, tell, whole

RESULTS = Path("benchmarks/results/chaos.json")
BUILD = Path("build/chaos")
PACKAGES = ("headgate", "pyspark", "confluent-kafka", "pydantic", "msgspec", "prometheus-client", "pyyaml")


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    # What the operator logs of each edit is of no use to anybody by the thousand.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    bench = Bench(BUILD, options.seed, options.share, tell, options.faults, options.records)
    results = options.results if options.share == 1 else None
    code = SUITE.run(options.only, bench, results, f" --seed {options.seed}{size(options)}")
    return 1 if bench.broken else code


def size(options: argparse.Namespace) -> str:
    """Return the options of a run that is not of the whole size."""
    given = {"share": 1.0, "faults": Bench.faults, "records": Bench.records}
    return "".join(
        f" --{name} {getattr(options, name)}"
        for name, all_ in given.items()
        if getattr(options, name) != all_
    )


def versions() -> dict[str, str]:
    """Return what is tried."""
    return {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = SUITE.parser("Try faults, misuse and nonsense.", RESULTS, of="nothing here")
    parser.add_argument("--seed", type=whole, default=1, help="what is drawn is drawn from it; default 1")
    parser.add_argument("--share", type=share, default=1.0, help="of the inputs and edits; default 1, all")
    of = "in end_to_end; default"
    parser.add_argument("--faults", type=whole, default=Bench.faults, help=f"{of} {Bench.faults}")
    parser.add_argument("--records", type=whole, default=Bench.records, help=f"read {of} {Bench.records:,}")
    return parser.parse_args()


SUITE = Suite(
    "benchmarks.chaos",
    SCENARIOS,
    Origin("make chaos", versions, (*OPERATOR, *DRIVER)),
)

if __name__ == "__main__":
    sys.exit(main())
