"""What a scenario of the door is given: what those on Kafka are, and the agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.door import watch
from benchmarks.kafka import scenario as kafka
from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here

JOBS = Path("benchmarks/door/jobs")


@dataclass(frozen=True, kw_only=True)
class Bench(kafka.Bench):
    """What a scenario is given to measure with."""

    def agent(self) -> Path:
        """Return the jar of the agent that times questions."""
        return watch.agent(self.root / "agent")
