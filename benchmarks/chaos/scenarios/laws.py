"""The laws L1 to L12 in more histories than a test draws: their state machines, long.

The row says of each law which machines check it, how many steps were drawn of them, and where else it is checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.laws import ELSEWHERE, MACHINES, Machine
from benchmarks.local.results import Figure, Goal, Measured

ROOT = Path(__file__).parents[3]
MODULE = ("-m", "benchmarks.laws")
SAME_ORDER = {"PYTHONHASHSEED": "0"}
"""Sets are gone through in one order in each process, so that code that does so is seen to do the same."""
FIGURES = (Figure("laws", "steps", Goal(">=", 1_000_000)), Figure("laws_broken", "machines", Goal("<=", 0)))


class Lived(NamedTuple):
    """What came of a machine's histories."""

    steps: int
    drawn: str
    """A digest of all that was drawn."""
    broken: str | None
    """What the law said, with the shortest history that breaks it."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Draw all histories of each machine, from the bench's seed."""
    steps: dict[str, int] = {}
    drawn: dict[str, str] = {}
    took: dict[str, int] = {}
    broken = 0
    for machine in MACHINES:
        arguments, began = command(machine, bench), time.monotonic()
        lived = live(arguments)
        if lived.broken is not None:
            broken += 1
            again = " ".join((*(f"{name}={value}" for name, value in SAME_ORDER.items()), *arguments))
            bench.fails(f"{machine.title}: {machine.name}: {lived.broken}", again)
        steps[machine.title], drawn[machine.title] = lived.steps, lived.drawn
        took[machine.title] = round(time.monotonic() - began)
        bench.tell(f"{machine.title}: {lived.steps:,} steps in {took[machine.title]} s")
    details = {
        "laws": by_law(steps),
        "steps": steps,
        "drawn": drawn,
        "seconds": took,
        "seed": bench.seed,
    }
    return {"laws": Measured([sum(steps.values())], details), "laws_broken": Measured([broken], details)}


def by_law(steps: Mapping[str, int]) -> dict[str, Mapping[str, object]]:
    """Return of each law how many steps it was checked after, by which machines, and where else it is checked."""
    return {
        law: {
            "steps": sum(steps[machine.title] for machine in MACHINES if law in machine.laws),
            "machines": [f"{machine.file}: {machine.name}" for machine in MACHINES if law in machine.laws],
            "elsewhere": list(elsewhere),
        }
        for law, elsewhere in ELSEWHERE.items()
    }


def command(machine: Machine, bench: Bench) -> tuple[str, ...]:
    """Return what draws a machine's histories, and the same ones each time."""
    histories = max(1, round(bench.share * machine.histories))
    return ("python", *MODULE, machine.name, "--seed", str(bench.seed), "--histories", str(histories))


def live(arguments: tuple[str, ...]) -> Lived:
    """Run such a command. Raises RuntimeError where it could not be run to its end, with what it said."""
    ended = subprocess.run(
        [sys.executable, *arguments[1:]],
        cwd=ROOT,
        env=os.environ | SAME_ORDER,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode > 1 or not ended.stdout:
        raise RuntimeError(f"{' '.join(arguments)} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return Lived(**json.loads(ended.stdout.splitlines()[-1]))


SCENARIO = Scenario("laws", FIGURES, measure)
