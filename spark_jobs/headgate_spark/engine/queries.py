"""A query that Spark runs, as the shim tells of it: how it begins, how far it is, what it has failed of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from headgate_spark.engine.settings import OfJob
from headgate_spark.engine.watermarks import Watermarks, watermarks_of
from headgate_spark.planner.model import Trigger, TriggerKind

_KINDS = {
    "processingTime": TriggerKind.PROCESSING_TIME,
    "availableNow": TriggerKind.AVAILABLE_NOW,
    "once": TriggerKind.ONCE,
}
"""The triggers whose batches are planned, by the argument of `trigger`."""


@dataclass
class Started:
    """A query that has begun; as it is here, one of which nothing is known. It is told of on any thread."""

    trigger: Trigger = field(default_factory=Trigger)
    governed: bool = False
    """False while the trigger is not known, and for those whose batches are not planned (continuous, real-time)."""
    id: str = ""
    """Of its checkpoint; empty: not known."""
    name: str = ""
    """Its name, or else its id."""
    stop: Callable[[], None] = lambda: None
    """Stops it as the job itself would, whatever it is doing."""
    watermarks: Watermarks = field(default_factory=Watermarks)
    """In its plan, by the policy of its session."""
    settings: OfJob = field(default_factory=OfJob)
    """What the job says of it."""
    occurrences: tuple[int, ...] = ()
    """For each line of the offset log, the place of the source that it is of: one that the plan reads twice has two.
    Empty: each source has one, as far as is known."""
    owner: tuple[str, str] | None = None
    """User and session of Spark Connect that it was started in."""
    resumed: bool = False
    """Whether a planner's process before this one knew it."""
    last_progress: str | None = None
    """What was told of the last batch that has ended, as JSON."""
    failure: str | None = None
    """What it has failed of; `None`: it has not."""
    causes: str | None = None
    """The causes of its failure, by class and message and without its plan; `None`: it has not failed."""

    def ended(self, failure: str | None) -> None:
        """It has ended; `failure` is a JSON object: what it has failed of; `None`: it has not failed."""
        if failure is not None and self.failure is None:
            members = json.loads(failure)
            self.failure, self.causes = without_class(members["failure"]), members["causes"]


def begun(members: Mapping[str, Any], stop: Callable[[str], None]) -> Started:
    """Return what the shim tells of a query that begins (`RunningQuery.describe` in Java)."""
    kind = _KINDS.get(members["trigger"])
    takes_least = members.get("watermarkPolicy", "min").lower() != "max"
    return Started(
        Trigger() if kind is None else Trigger(kind, (members.get("intervalMillis") or 0) / 1000),
        governed=kind is not None,
        id=members["id"],
        name=called(members),
        stop=partial(stop, members["runId"]),
        watermarks=replace(watermarks_of(members["plan"]), takes_least=takes_least),
        settings=OfJob(members.get("options") or {}, members.get("properties") or {}),
        occurrences=tuple(members.get("sources") or ()),
        owner=(members["user"], members["session"]) if members.get("user") else None,
        resumed=bool(members.get("resumed")),
    )


def called(members: Mapping[str, str]) -> str:
    """Return how a query is called: by its name, or else by its id."""
    return members.get("name") or members["id"]


def without_class(failure: str) -> str:
    """Return the text of an exception of Java without the name of its class, as PySpark shows it."""
    before, colon, words = failure.partition(": ")
    return words if colon and " " not in before else failure
