"""What a scenario of the door is given: what those on Kafka are, and the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.door import watch
from benchmarks.kafka import scenario as kafka
from benchmarks.local.results import Figure, Measured

JOBS = Path("benchmarks/door/jobs")


@dataclass(frozen=True, kw_only=True)
class Bench(kafka.Bench):
    """What a scenario is given to measure with."""

    def agent(self) -> Path:
        """Return the jar of the agent that times questions."""
        return watch.agent(self.root / "agent")


@dataclass(frozen=True)
class Scenario:
    """Figures that are measured together."""

    name: str
    """What selects it on the command line."""
    figures: tuple[Figure, ...]
    measure: Callable[[Bench], Mapping[str, Measured]]
    """Measure all of them; returns one entry per figure, by id."""
