"""What a scenario is: figures that are measured together, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.local.drivers import Place
from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here


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
