"""Runs scenarios of one kind after the other and keeps their rows: what every `make bench-NAME` does.

Rows are written after each scenario, so a run that is broken off has lost nothing that was measured, and `--only`
takes up where it ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from benchmarks.local.results import (
    Call,
    Figure,
    Measured,
    Origin,
    failed_row,
    pooled,
    row,
)
from benchmarks.provenance import UNKNOWN, commit, processor_speed
from benchmarks.result_file import append
from benchmarks.standing import HOLDS, MISSED, NO_GOAL, OPEN, over_days

BenchT = TypeVar("BenchT")
MARKS: Final = {HOLDS: "ok", OPEN: "?", MISSED: "NO", NO_GOAL: ""}


@dataclass(frozen=True)
class Scenario(Generic[BenchT]):
    """Figures that are measured together."""

    name: str
    """What selects it on the command line."""
    figures: tuple[Figure, ...]
    """What it measures."""
    measure: Callable[[BenchT], Mapping[str, Measured]]
    """Measure all of them, with what a scenario of the suite is given; returns one entry per figure, by id."""
    measures: tuple[str, ...] | None = None
    """Paths of what is measured in other processes, where these are not those of the whole suite."""
    repeats: int = 1
    """How often it is measured for one attempt: more than once where it makes one run each time, which does not tell
    how far runs lie apart. Not where it counts: there each run has to be right, and the value would be the median."""

    def repeated(self, bench: BenchT) -> Mapping[str, Measured]:
        """Measure all of them so often; returns one entry per figure, by id."""
        times = [self.measure(bench) for _ in range(self.repeats)]
        return {figure.id: pooled([found[figure.id] for found in times]) for figure in self.figures}


@dataclass(frozen=True)
class Suite(Generic[BenchT]):
    """All scenarios that write one result file."""

    module: str
    """What `python -m` runs."""
    scenarios: Sequence[Scenario[BenchT]]
    """In the order in which they are run and shown."""
    origin: Origin

    def run(
        self, chosen: Sequence[Scenario[BenchT]], bench: BenchT, results: Path | None, more: str = ""
    ) -> int:
        """Measure, write to `results` if there is one, and show; returns the exit code.

        `more` are options that belong to the command which measures a row. What is to be written is not even
        measured where nobody could tell of which commit it would be.
        """
        if results is not None and commit() == UNKNOWN:
            tell("nothing was measured: there is no git repository, or no git, to name the commit; clone one")
            return 1
        order = [figure.id for scenario in self.scenarios for figure in scenario.figures]
        rows: list[Mapping[str, Any]] = []
        with unwound_by_sigterm():
            for scenario in chosen:
                measured = self._measured(scenario, bench, more)
                rows += measured
                if results is not None:
                    append(results, self.origin.command, measured, order)
        show(rows)
        return 1 if any(found["value"] is None for found in rows) else 0

    def parser(
        self, description: str, results: Path, *, rounds: int = 3, of: str = "runs that are compared"
    ) -> argparse.ArgumentParser:
        """Return the parser of the options that every benchmark has."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=description)
        names = ", ".join(scenario.name for scenario in self.scenarios)
        every = list(self.scenarios)
        parser.add_argument(
            "--only", type=self.named, default=every, metavar="NAME,…", help=f"of {names}; default: all"
        )
        parser.add_argument("--rounds", type=whole, default=rounds, help=f"of {of}; default {rounds}")
        parser.add_argument("--results", type=Path, default=results, help=f"result file; default {results}")
        return parser

    def named(self, text: str) -> list[Scenario[BenchT]]:
        """Read the names of scenarios."""
        by_name = {scenario.name: scenario for scenario in self.scenarios}
        names = text.split(",")
        if unknown := [name for name in names if name not in by_name]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: unknown; there are {', '.join(by_name)}")
        return [by_name[name] for name in names]

    def _measured(self, scenario: Scenario[BenchT], bench: BenchT, more: str) -> Sequence[Mapping[str, Any]]:
        """Run a scenario; returns its rows, also where it failed."""
        command = f"python -m {self.module} --only {scenario.name}{more}"
        call = Call(command, os.getloadavg()[0], processor_speed(), self.origin.versions())
        tell(f"{scenario.name}: {', '.join(figure.id for figure in scenario.figures)}")
        began = time.monotonic()
        try:
            found = scenario.repeated(bench)
            rows = [row(figure, found[figure.id], call) for figure in scenario.figures]
        except Exception as error:  # whatever goes wrong in one scenario, the others are measured
            what = f"{type(error).__name__}: {error}"
            tell(f"{scenario.name} could not be measured: {what}")
            tell(f"  again: {command}")
            rows = [failed_row(figure, what.splitlines()[0], call) for figure in scenario.figures]
        tell(f"{scenario.name}: {time.monotonic() - began:.0f} s")
        return rows


@contextmanager
def unwound_by_sigterm() -> Iterator[None]:
    """Have a SIGTERM end this program by an exception, so that it first ends the drivers and brokers it has started.

    By default the program is gone at once, and they are idle for ever.
    """
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per figure."""
    width = max(len(found["id"]) for found in rows)
    for found in rows:
        value = "not measured" if found["value"] is None else f"{found['value']:g} {found['unit']}"
        print(f"{mark(found):3} {found['id']:{width}}  {value:24} {found['goal']}")


def mark(found: Mapping[str, Any]) -> str:
    """Return what a person looks for in a column of rows: goals that were missed, and those that are open."""
    return MARKS[over_days([found])["verdict"]]


def tell(line: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def whole(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def share(text: str) -> float:
    """Read a number above 0, at most 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and at most 1")
    return value
