"""A bar for all runs together, with an estimate of what is left.

What a run takes is mostly known beforehand: a JVM starts, a backlog is read, and the live part lasts as long as it
lasts. A bar that counted records would stand still in the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.demo.runs import Run
from benchmarks.event_log import Batch

EXPECTED: Final[Mapping[str, float]] = {
    "plain_uncapped": 44.0,
    "plain_small": 40.0,
    "governed": 64.0,
}
"""Seconds of each run on two slow cores; others take longer or shorter in all of them alike."""
ALMOST = 0.97
"""Of a run's part of the bar, at the most, until it has ended."""


class Runs:
    """The bar, as a context: it is gone when that ends."""

    def __init__(self, console: Console) -> None:
        """Show on `console`; where that is no terminal, only the lines of `ended` appear."""
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("about"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("left"),
            console=console,
            transient=True,
            speed_estimate_period=300.0,
        )
        self._task = self._progress.add_task("starting", total=sum(EXPECTED.values()))
        self._done = 0.0
        self._began = time.monotonic()

    def __enter__(self) -> Runs:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._progress.stop()

    @property
    def is_full(self) -> bool:
        """Tell whether the bar is full: all runs have ended."""
        return self._progress.tasks[0].finished

    def begin(self, run: Run) -> None:
        """Show that a run starts."""
        self._began = time.monotonic()
        self._progress.update(self._task, description=f"{run.title}: starting", completed=self._done)

    def tell(self, run: Run, batches: Sequence[Batch]) -> None:
        """Show how far a run has come."""
        taken = time.monotonic() - self._began
        completed = self._done + part(EXPECTED[run.key], taken)
        self._progress.update(self._task, description=described(run, batches), completed=completed)

    def ended(self, run: Run, what: str) -> None:
        """Say what came of a run, and fill its part of the bar."""
        self._done += EXPECTED[run.key]
        self._progress.update(self._task, completed=self._done)
        self._console.print(f"{run.title}: {what}", highlight=False)


def part(expected: float, taken: float) -> float:
    """Return how much of a run's part of the bar is full after so many seconds: never all of it before its end."""
    return min(taken, expected * ALMOST)


def described(run: Run, batches: Sequence[Batch]) -> str:
    """Return what is shown before the bar."""
    if not batches:
        return f"{run.title}: starting"
    phase = "live" if run.live.exists() else "catching up"
    return f"{run.title}: {phase}, {sum(batches[-1].end_rows):,} records in {len(batches)} batches"
