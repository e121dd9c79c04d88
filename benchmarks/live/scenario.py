"""What a scenario of `make bench-live` is given, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.local.results import Figure, Measured


@dataclass(frozen=True)
class Bench:
    """What a scenario is given to measure with."""

    build: Path
    """Where runs leave what they write; a broker's data, for one."""
    rounds: int
    """How many seeds are drawn."""
    scale: float
    """The part of the records that is used; below 1 nothing is written to the result file."""
    tell: Callable[[str], None]
    """Shows a line of progress."""


@dataclass(frozen=True)
class Scenario:
    """Figures that are measured together."""

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[Bench], Mapping[str, Measured]]
    """Measure all of them; returns one entry per figure, by id."""
