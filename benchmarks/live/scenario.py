"""What a scenario of `make bench-live` is given, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here


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
