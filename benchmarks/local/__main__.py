"""`make bench-local`: measure, and write each figure with its goal to `benchmarks/results/local.json`.

    python -m benchmarks.local [--only catchup,rate] [--rounds 3]

Rows are written after each scenario, so a run that is broken off has lost nothing that was measured, and
`--only` takes up where it ended. Exit code 0: everything was measured, whether or not it reached its goal; 1:
something could not be measured; 2: usage.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.local.catalog import IDS, SCENARIOS
from benchmarks.local.drivers import Resource
from benchmarks.local.results import Call, failed_row, row, write
from benchmarks.local.scenario import Bench, Scenario

RESULTS = Path("benchmarks/results/local.json")
BUILD = Path("build/bench")


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    bench = Bench(BUILD, Resource.read().data, options.rounds, tell)
    rows: list[Mapping[str, Any]] = []
    for scenario in options.only:
        rows += measured(scenario, bench)
        write(options.results, rows, IDS)
    show(rows)
    return 1 if any(found["value"] is None for found in rows) else 0


def measured(scenario: Scenario, bench: Bench) -> Sequence[Mapping[str, Any]]:
    """Run a scenario; returns its rows, also where it failed."""
    call = Call(command(scenario), os.getloadavg()[0])
    tell(f"{scenario.name}: {', '.join(figure.id for figure in scenario.figures)}")
    began = time.monotonic()
    try:
        found = scenario.measure(bench)
        rows = [row(figure, found[figure.id], call) for figure in scenario.figures]
    except Exception as error:  # whatever goes wrong in one scenario, the others are measured
        tell(f"{scenario.name} could not be measured: {error}")
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        rows = [failed_row(figure, reason, call) for figure in scenario.figures]
    tell(f"{scenario.name}: {time.monotonic() - began:.0f} s")
    return rows


def command(scenario: Scenario) -> str:
    """Return the command that measures a scenario alone."""
    return f"python -m benchmarks.local --only {scenario.name}"


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per figure."""
    width = max(len(found["id"]) for found in rows)
    for found in rows:
        value = "not measured" if found["value"] is None else f"{found['value']:g} {found['unit']}"
        print(f"{'ok ' if found['holds'] else 'NO '} {found['id']:{width}}  {value:24} {found['goal']}")


def tell(line: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def scenarios(text: str) -> list[Scenario]:
    """Read the names of scenarios."""
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    names = text.split(",")
    if unknown := [name for name in names if name not in by_name]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: unknown; there are {', '.join(by_name)}")
    return [by_name[name] for name in names]


def whole(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.local", description="Measure on this machine."
    )
    parser.add_argument(
        "--only",
        type=scenarios,
        default=list(SCENARIOS),
        metavar="NAME,…",
        help=f"of {', '.join(scenario.name for scenario in SCENARIOS)}; default: all",
    )
    parser.add_argument("--rounds", type=whole, default=3, help="of runs that are compared; default 3")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"result file; default {RESULTS}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
