"""What a driver says of what it cannot do for a query is in the status of that query."""

from __future__ import annotations

from headgate.api.status import QueryStatus
from headgate_contract import metrics as names
from support.looping import Loop

LABELS = {"application": "flights", "query": "delays"}


def running() -> Loop:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports("delays")
    loop.world.metrics.reports("totals")
    loop.acknowledged_reconcile()
    return loop


def delays(loop: Loop) -> QueryStatus:
    assert loop.memory.status is not None
    return loop.memory.status.queries[0]


def test_a_query_that_is_not_asked_to_be_live_so_says_nothing() -> None:
    status = delays(running())
    assert status.real_time is None
    assert status.real_time_refused is None


def test_what_is_not_known_of_a_snapshot_is_told() -> None:
    loop = running()
    cause = "partition flights/0 ends with a record of a snapshot, and nothing says that the snapshot is over"
    labels = LABELS | {"source": "flights", "cause": cause}
    loop.world.metrics.values.append((names.SOURCE_SNAPSHOT_PROBLEM.name, labels, 1.0))
    outcome = loop.acknowledged_reconcile()
    told = {source.name: source.snapshot_problem for source in delays(loop).sources}
    assert told["flights"] == cause
    assert [event.message for event in outcome.events if event.reason == "SnapshotUnknown"] == [
        f"query delays, source flights: {cause}"
    ]


def test_that_it_keeps_its_own_trigger_is_told() -> None:
    loop = running()
    assert delays(loop).trigger_problem is None
    cause = "Spark 4.4.0 does not let its trigger be shortened (no such field): it is governed at its own"
    loop.world.metrics.values.append((names.QUERY_TRIGGER_PROBLEM.name, LABELS | {"cause": cause}, 1.0))
    loop.acknowledged_reconcile()
    assert delays(loop).trigger_problem == cause


def test_why_it_is_not_live_so_is_told() -> None:
    loop = running()
    cause = "it needs 9 task slots all the time, and 2 of 2 are free for it; add executors, or have fewer partitions"
    loop.world.metrics.values += [
        (names.QUERY_REAL_TIME.name, LABELS, 0.0),
        (names.QUERY_REAL_TIME_REFUSED.name, LABELS | {"cause": cause}, 1.0),
    ]
    loop.acknowledged_reconcile()
    assert delays(loop).real_time is False
    assert delays(loop).real_time_refused == cause
