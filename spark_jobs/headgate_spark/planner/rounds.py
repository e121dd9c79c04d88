"""A round: one pass of Spark over the sources of a query, in one trigger.

Spark asks source by source, each once and in an order of its own, and builds one batch of the answers. So the gate
is looked at once per round, and the first source that is asked has everything planned for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.alignment_member import Part
from headgate_spark.planner.model import Answer, GoLive
from headgate_spark.planner.shares import Allotment
from headgate_spark.planner.sizing import Grant


@dataclass(slots=True)
class Round:
    """What is known and planned in one pass."""

    held: HeldBy | None
    """Why nothing is planned in it."""
    asked: set[str] = field(default_factory=set)
    runs_empty: bool = False
    """Whether a batch runs even if it is without records: whatever is held now has a trigger after this one."""
    live: bool | None = None
    """Whether its batch is one of real-time mode; `None`: not decided yet."""
    waiting: str | None = None
    """The source that was told to wait: it is asked again in the same trigger."""
    survey: tuple[str, ...] | None = None
    """Sources whose latest positions were asked for last; `None`: not decided yet."""
    grant: Grant | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What alignment lets sources read."""
    plan: dict[str, Allotment] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    """What has been answered for good. A question that comes again, because an answer came late, finds it here."""

    @property
    def lives(self) -> frozenset[str]:
        """The sources that are told to be read in real-time mode."""
        return frozenset(name for name, answer in self.answers.items() if isinstance(answer, GoLive))

    def leaves_real_time(self) -> None:
        """Its batch is none of real-time mode after all."""
        lives, self.live = self.lives, False
        self.answers = {name: each for name, each in self.answers.items() if name not in lives}

    @property
    def drains(self) -> bool:
        """Whether every source that may read surely reads up to its latest offset."""
        return all(allotment.drains for allotment in self.plan.values())

    @property
    def is_counted(self) -> bool:
        """Whether it is known how many records the batch is to bring."""
        return all(allotment.counted for allotment in self.plan.values())

    @property
    def is_unbounded(self) -> bool:
        """Whether a source reads all that it has, however much that is."""
        return any(a.hold is None and a.count is None for a in self.plan.values())

    @property
    def capped(self) -> frozenset[str]:
        """The sources that `recordsPerCheckpoint` cuts."""
        return frozenset(name for name, allotment in self.plan.items() if allotment.capped)
