"""From a changed control document to the planning that acts by it.

A live query is given document after document: another commit interval, a verdict, another rate. Each change
lets the query plan a batch that it was not allowed to plan before, so the planning of that batch is the moment
at which the change was in force: later than the moment at which the driver has read it, and what a user sees.
"""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.event_log import Batch, EventLog
from benchmarks.local.child import Child
from benchmarks.local.drivers import START_SECONDS, Place, Resource, by_document, publish
from benchmarks.local.recording import STEADY, prepare
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenario import Bench, Scenario
from benchmarks.local.statistics import percentile
from headgate_contract import ControlDocument, QueryControl, RateControl, SourceControl

QUERY = "reaction"
ROUNDS = 15
"""Changes of each kind."""
CLOSED_SECONDS, OPEN_SECONDS = 60.0, 0.01
"""An interval that keeps the gate shut while a change is waited for, and one that any trigger may open."""
CLOSED_RATE, OPEN_RATE = 0.01, 100_000.0
"""Records per second: one in a hundred seconds, and more than arrive."""
QUIET_SECONDS = 1.0
"""Without a batch for so long, the gate is shut."""
DEADLINE = 60.0
SEED = 4


@dataclass(frozen=True)
class Change:
    """Two states of the query: one in which it plans nothing more, and one in which it does."""

    shut: QueryControl
    opened: QueryControl


def limited(records_per_second: float) -> QueryControl:
    """Return a query with a rate limit that may plan at every trigger."""
    limit = RateControl(records_per_second=records_per_second)
    return QueryControl(interval_seconds=OPEN_SECONDS, sources={STEADY.name: SourceControl(rate_limit=limit)})


CHANGES = {
    "interval": Change(
        QueryControl(interval_seconds=CLOSED_SECONDS), QueryControl(interval_seconds=OPEN_SECONDS)
    ),
    "verdict": Change(
        QueryControl(interval_seconds=CLOSED_SECONDS),
        QueryControl(interval_seconds=CLOSED_SECONDS, backlog=True, reason="WatermarkLag"),
    ),
    "rate": Change(limited(CLOSED_RATE), limited(OPEN_RATE)),
}


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Change the document again and again."""
    resource, place = Resource.read(), bench.place("reaction")
    data = prepare(STEADY, bench.data)
    paths = [f"--data={data}", f"--checkpoint={place.checkpoint}", f"--live={place.live}"]
    arguments = [*paths, f"--cut={resource.cut}", f"--query={QUERY}"]
    started_with = document(0, CHANGES["interval"].opened)
    with by_document(place, "forward.py", arguments, resource.properties(place), started_with) as child:
        subject = Subject(place, child)
        subject.next_batch(START_SECONDS)
        place.live.touch()
        seconds = reactions(subject)
    p95 = {kind: percentile(values, 95) for kind, values in seconds.items()}
    bench.tell(", ".join(f"{kind} p95 {value:.3f} s" for kind, value in p95.items()))
    everything = [value for values in seconds.values() for value in values]
    details = {"changes": len(everything), "p95_seconds": p95, "largest_seconds": max(everything)}
    return {"reaction_p95_seconds": Measured([percentile(everything, 95)], details)}


class Subject:
    """The query that is given documents."""

    def __init__(self, place: Place, child: Child) -> None:
        self._place = place
        self._child = child
        self._log: EventLog = place.events
        self._generation = 0

    def change(self, control: QueryControl) -> float:
        """Publish a document; returns when that began, in seconds since 1970.

        Not when it was done: on a busy disk a rename can be seen long before it returns, and a driver that has
        acted by then would seem not to have acted at all.
        """
        self._generation += 1
        began = time.time()
        publish(self._place, document(self._generation, control))
        return began

    def next_batch(self, seconds: float) -> Batch:
        """Wait for a batch that has not been seen; raises TimeoutError."""
        seen = len(self._log.batches)
        return self._child.wait_for(
            "a batch", lambda: next(iter(self._log.follow()[seen:]), None), seconds, every=0.02
        )

    def wait_until_shut(self) -> None:
        """Wait until no batch comes any more."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            try:
                self.next_batch(QUIET_SECONDS)
            except TimeoutError:
                return
        raise TimeoutError(f"the query still plans batches {DEADLINE:.0f} s after its gate was shut")


def reactions(subject: Subject) -> dict[str, Sequence[float]]:
    """Return the seconds that each change took, by kind."""
    wait = random.Random(SEED)
    seconds: dict[str, list[float]] = {kind: [] for kind in CHANGES}
    for _ in range(ROUNDS):
        for kind, change in CHANGES.items():
            subject.change(change.shut)
            subject.wait_until_shut()
            time.sleep(wait.uniform(0, 0.2))  # so that changes meet the trigger at any phase
            seconds[kind].append(reaction(subject, change.opened))
    return dict(seconds)


def reaction(subject: Subject, control: QueryControl) -> float:
    """Return the seconds from a change to the first planning that could act by it.

    While a batch runs nothing is planned, whatever the driver knows: a change that meets one counts from its end.
    """
    since = subject.change(control)
    while (batch := subject.next_batch(DEADLINE)).planned < since:
        since = max(since, batch.committed)
    return batch.planned - since


def document(generation: int, control: QueryControl) -> ControlDocument:
    """Return a document for the one query."""
    return ControlDocument(generation=generation, queries={QUERY: control})


SCENARIO = Scenario("reaction", (Figure("reaction_p95_seconds", "s", Goal("<=", 0.25)),), measure, repeats=3)
