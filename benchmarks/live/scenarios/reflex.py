"""From the crossing of a threshold to the planning that goes by the settings of a backlog: the driver's own reflex.

A live query waits for its interval of a minute, so no batch is due; in a backlog its next one is due at once. Records
cross a threshold at a moment that a seed draws, with no operator, scrape or document in the way. `pending`: so many
come at once; the crossing is when the first of them was sent. `lag`: some come that will be too old in a moment, and
that moment is the crossing. Only a backlog has a rate limit, so the first batch that it has cut was planned when the
settings of a backlog were in force.
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
from benchmarks.local.results import Figure, Goal, Measured, Since
from benchmarks.local.statistics import percentile
from headgate_contract import (
    BacklogControl,
    ControlDocument,
    QueryControl,
    RateControl,
    ReentryControl,
    SourceControl,
)

CLOSED = Since("5dd310ac", "2026-11-30")
"""Since this commit the gate is closed at each crossing: before, some batches were due by the clock."""
CROSSINGS, LEAST_CROSSINGS = 40, 3
"""Of each kind."""
SEED = 20261125
KINDS = ("pending", "lag")
INTERVAL_SECONDS = 60.0
"""Of normal time and of a backlog: whichever is in force, no batch is due by the clock while this measures."""
PENDING, BURST, RATE = 1_000, 2_000, 400
"""More than so many records put the query into backlog, so many come at once, and a backlog reads so many a second:
it lasts for longer than a page of metrics is kept."""
STEP_SECONDS = 2.0
"""A crossing comes up to so long after the backlog before is seen to be over."""
LAG_SECONDS, AHEAD_SECONDS = 20.0, 4.0
"""A record is sent so long before it is too old: longer than a driver takes to see it."""
DEADLINE_SECONDS = 30.0
"""Shorter than the interval: a batch that was only due is none of a backlog."""


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    with on_a_broker(given) as bench:
        return measured(bench, max(LEAST_CROSSINGS, round(CROSSINGS * given.scale)))


def measured(bench: Bench, crossings: int) -> Mapping[str, Measured]:
    """Cross both thresholds again and again."""
    found = {kind: run(bench, kind, crossings) for kind in KINDS}
    details = {
        kind: {"p50": percentile(values, 50), "p95": percentile(values, 95), "largest": max(values)}
        for kind, values in found.items()
    }
    bench.tell(", ".join(f"{kind}: {value}" for kind, value in details.items()))
    p95 = percentile([seconds for kind in KINDS for seconds in found[kind]], 95)
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
            log.batch_since(0.0, seconds=START_SECONDS)
            return [crossing(kind, sender, log, draw) for _ in range(crossings)]


class Log:
    """The batches of the query, one after the other."""

    def __init__(self, place: Place, child: Child) -> None:
        self._place, self._events, self._child = place, place.events, child

    def await_verdict(self, *, backlog: bool) -> None:
        """Wait until a page of metrics says that the query is in backlog, or that it is in none any more."""

        def is_told() -> bool | None:
            told = {sample.name: sample.value for sample in metrics(self._place)}
            return True if told.get("headgate_query_backlog") == float(backlog) else None

        self._child.wait_for(f"a backlog: {backlog}", is_told, DEADLINE_SECONDS, every=0.02)

    def batch_since(self, begin: float, most: int = BURST, seconds: float = DEADLINE_SECONDS) -> Batch:
        """Wait for the first batch of so many records at most that was planned since `begin` (Unix seconds)."""

        def found() -> Batch | None:
            new = (batch for batch in self._events.follow() if batch.planned >= begin)
            return next((batch for batch in new if 0 < batch.records <= most), None)

        return self._child.wait_for("a batch", found, seconds, every=0.02)


def crossing(kind: str, sender: Sender, log: Log, draw: random.Random) -> float:
    """Have a threshold crossed; return how long it took until a batch was planned that the rate of a backlog cut."""
    log.await_verdict(backlog=False)
    time.sleep(draw.uniform(0, STEP_SECONDS))
    sent = at = time.time()
    if kind == "pending":
        sender.at_once(BURST)
    else:
        at += AHEAD_SECONDS
        sender.at_once(BURST, dated=at - LAG_SECONDS)
    log.await_verdict(backlog=True)
    return log.batch_since(sent, RATE).planned - at


def document(kind: str, used: Topics) -> ControlDocument:
    """Return what the driver is told. The way back into a backlog is by the same threshold, at once."""
    threshold = (
        BacklogControl(pending_records=PENDING)
        if kind == "pending"
        else BacklogControl(watermark_lag_seconds=LAG_SECONDS)
    )
    rate = RateControl(records_per_second=RATE, max_burst_seconds=1)
    reentry = ReentryControl(above_seconds=LAG_SECONDS, pending_records_above=PENDING, dwell_seconds=0)
    query = QueryControl(
        interval_seconds=INTERVAL_SECONDS,
        interval_during_backlog_seconds=INTERVAL_SECONDS,
        reentry=reentry,
        sources={used.into: SourceControl(backlog=threshold, rate_limit_during_backlog=rate)},
    )
    return ControlDocument(generation=1, queries={QUERY: query})


SCENARIO = Scenario(
    "reflex", (Figure("reflex_reaction_p95_seconds", "s", Goal("<=", 0.3), CLOSED),), measure, repeats=2
)
