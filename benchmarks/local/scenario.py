"""What a scenario is: figures that are measured together, and how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.local.drivers import Place
from benchmarks.local.results import Figure, Measured


@dataclass(frozen=True)
class Bench:
    """What a scenario is given to measure with."""

    root: Path
    """Where runs leave what they write."""
    data: Path
    """Where recordings are."""
    rounds: int
    """How often what is compared is run, in turn."""
    tell: Callable[[str], None]
    """Shows a line of progress."""

    def place(self, name: str) -> Place:
        """Return a cleared directory for a run."""
        return Place(self.root / name).cleared()


@dataclass(frozen=True)
class Scenario:
    """Figures that are measured together."""

    name: str
    """What selects it on the command line."""
    figures: tuple[Figure, ...]
    measure: Callable[[Bench], Mapping[str, Measured]]
    """Measure all of them; returns one entry per figure, by id."""
