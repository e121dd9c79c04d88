"""From the crossing of a threshold to the planning that goes by the settings of a backlog: the driver's own reflex.

A live query waits for its interval; in a backlog its next batch is due at once. Records cross a threshold at a moment
that a seed draws, with no operator, scrape or document in the way, and the planning of the next batch is the moment
at which the settings of a backlog were in force. `pending`: so many records come at once; the crossing is when the
first of them was sent. They are looked at ten times in an interval, so that is measured at one of a second and, for
the details alone, of five. `lag`: a record comes that will be too old in a moment, and that moment is the crossing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import Bench, properties
from benchmarks.live.driver import (
    ECHO,
    PARTITIONS,
    QUERY,
    START_SECONDS,
    Topics,
    arguments,
    on_a_broker,
    topics,
)
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Sender
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place, by_document, metrics
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile
from headgate_contract import BacklogControl, ControlDocument, QueryControl, ReentryControl, SourceControl

CROSSINGS, LEAST_CROSSINGS = 40, 3
"""Of each kind."""
SEED = 20261125
INTERVALS = {"pending": 1.0, "pending_5s": 5.0, "lag": 60.0}
"""By kind. In the run by lag a record has to wait for longer than it may."""
CLOSED_SECONDS = 60.0
PENDING, BURST = 1_000, 2_000
LAG_SECONDS, AHEAD_SECONDS = 20.0, 4.0
"""A record is sent so long before it is too old: longer than a driver takes to see it."""
DEADLINE_SECONDS = 60.0
COUNTED = ("pending", "lag")


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    with on_a_broker(given) as bench:
        return measured(bench, max(LEAST_CROSSINGS, round(CROSSINGS * given.scale)))


def measured(bench: Bench, crossings: int) -> Mapping[str, Measured]:
    """Cross both thresholds again and again."""
    found = {kind: run(bench, kind, crossings) for kind in INTERVALS}
    details = {
        kind: {"p50": percentile(values, 50), "p95": percentile(values, 95), "largest": max(values)}
        for kind, values in found.items()
    }
    bench.tell(", ".join(f"{kind}: {value}" for kind, value in details.items()))
    p95 = percentile([seconds for kind in COUNTED for seconds in found[kind]], 95)
    return {"reflex_reaction_p95_seconds": Measured([p95], details | {"crossings": crossings})}


def run(bench: Bench, kind: str, crossings: int) -> list[float]:
    """Return the seconds that each crossing took."""
    draw, place = random.Random(f"{SEED}-{kind}"), bench.place(f"reflex-{kind}")
    with topics(bench, "reflex") as used:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        sender.at_once(1)
        given = arguments(bench, place, used, count=False)
        conf = properties(place.directory / "events")
        with by_document(place, ECHO, given, conf, document(kind, used)) as child:
            log = Log(place, child)
            log.next_batch(START_SECONDS)
            return [crossing(kind, sender, log, draw) for _ in range(crossings)]


class Log:
    """The batches of the query, one after the other."""

    def __init__(self, place: Place, child: Child) -> None:
        self._place, self._events, self._child = place, place.events, child

    def await_live(self) -> None:
        """Wait until the query is in no backlog any more."""
        self._child.wait_for("it to be live", self._is_live, DEADLINE_SECONDS, every=0.02)

    def _is_live(self) -> bool | None:
        told = {sample.name: sample.value for sample in metrics(self._place)}
        return True if told.get("headgate_query_backlog") == 0 else None

    def next_batch(self, seconds: float = DEADLINE_SECONDS) -> Batch:
        """Wait for a batch that has not been seen."""
        seen = len(self._events.batches)
        return self._child.wait_for(
            "a batch", lambda: next(iter(self._events.follow()[seen:]), None), seconds, every=0.02
        )


def crossing(kind: str, sender: Sender, log: Log, draw: random.Random) -> float:
    """Have a threshold crossed, and return how long it took until the next batch was planned.

    The records of one crossing are read by the batch that it leads to, so the gate is closed for the next one.
    """
    log.await_live()
    time.sleep(draw.uniform(0, min(INTERVALS[kind], 5.0) / 2))
    at = time.time()
    if kind != "lag":
        sender.at_once(BURST)
    else:
        at += AHEAD_SECONDS
        sender.at_once(1, dated=at - LAG_SECONDS)
    return log.next_batch().planned - at


def document(kind: str, used: Topics) -> ControlDocument:
    """Return what the driver is told. The way back into a backlog is by the same threshold, at once."""
    by_pending = kind != "lag"
    backlog = (
        BacklogControl(pending_records=PENDING)
        if by_pending
        else BacklogControl(watermark_lag_seconds=LAG_SECONDS)
    )
    reentry = ReentryControl(above_seconds=LAG_SECONDS, pending_records_above=PENDING, dwell_seconds=0)
    query = QueryControl(
        interval_seconds=INTERVALS[kind],
        interval_during_backlog_seconds=CLOSED_SECONDS,
        reentry=reentry,
        sources={used.into: SourceControl(backlog=backlog)},
    )
    return ControlDocument(generation=1, queries={QUERY: query})


SCENARIO = Scenario("reflex", (Figure("reflex_reaction_p95_seconds", "s", Goal("<=", 0.3)),), measure)
