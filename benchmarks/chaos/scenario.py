"""What a scenario of chaos is given: a seed, how much of everything, and where inputs are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here


@dataclass(frozen=True)
class Bench:
    """What a scenario is given."""

    root: Path
    """Where it keeps what somebody may want to look at."""
    seed: int
    share: float
    """Of the whole; a small one tries everything out."""
    tell: Callable[[str], None]
    faults: int = 500
    """Those of `end_to_end`."""
    records: int = 50_000_000
    """Those that its job reads meanwhile."""
    broken: list[str] = field(default_factory=list)
    """What did not hold, each with the command that shows it again."""

    def judge(self, broken: Sequence[str], counts: Mapping[str, float], of: str, command: str) -> None:
        """Note each sentence of `broken`, and each count that is not 0: so many `of`, by what they are."""
        for what in (*broken, *(f"{count} {of} {name}" for name, count in counts.items() if count)):
            self.fails(what, command)

    def fails(self, what: str, command: str) -> None:
        """Note what does not hold, and say how to see it again."""
        self.broken.append(what)
        self.tell(f"BROKEN (seed {self.seed}): {what}")
        self.tell(f"  again: {command}")
