"""A threshold for the lag of a query without event times is told of: late enough to know, and once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headgate_contract import metrics as names
from support.looping import Loop, application, query, source

LAG = {"watermark_lag_seconds": 1.0}


def told(
    backlog: Mapping[str, Any], data_batches: float, of_source: Mapping[str, float], **of_query: float
) -> list[str]:
    """The messages of two reconciles."""
    loop = Loop(declared=application(queries=[query(sources=[source(backlog=backlog)])]))
    loop.run_until_running()
    loop.world.metrics.reports(
        "delays", sources={"flights": {"pending_records": 5.0, **of_source}}, **of_query
    )
    labels = {"application": "flights", "query": "delays"}
    for kind, batches in (("data", data_batches), ("no_data", 9.0)):
        loop.world.metrics.values.append(("headgate_query_batches_total", {**labels, "kind": kind}, batches))
    events = [event for _ in range(2) for event in loop.acknowledged_reconcile().events]
    return [event.message for event in events if event.reason == "NoEventTime" and event.is_warning]


def test_a_lag_that_nobody_can_tell_is_told_once_with_the_remedy() -> None:
    assert told({"watermarkLag": "5m"}, 2.0, {}) == [
        "query delays: backlog.watermarkLag of flights never says yes, since the query has no event time and no "
        "Kafka source of it whose records can be looked at: name the column with withWatermark(), also where nothing "
        "else needs one, or set backlog.pendingRecords or backlog.query instead"
    ]


@pytest.mark.parametrize(
    ("backlog", "batches", "of_source", "of_query"),
    [
        ({"pendingRecords": 5}, 9.0, {}, {}),
        ({"watermarkLag": "5m"}, 1.0, {}, {}),
        ({"watermarkLag": "5m"}, 9.0, LAG, {}),
        ({"watermarkLag": "5m"}, 9.0, {}, {"watermark_timestamp_seconds": 7.0}),
        ({"watermarkLag": "5m"}, 9.0, {}, {"future_batches_total": 3.0}),
        ({"watermarkLag": "5m"}, 9.0, {}, {"real_time": 1.0}),
    ],
    ids=["no threshold", "too early", "a lag", "a watermark", "event times of the future", "real-time mode"],
)
def test_nothing_is_told_where_there_is_a_lag_or_may_be_one(
    backlog: Mapping[str, Any], batches: float, of_source: Mapping[str, float], of_query: Mapping[str, float]
) -> None:
    assert told(backlog, batches, of_source, **of_query) == []


@pytest.mark.parametrize(
    ("backlog", "batches", "of_source", "real_time", "expected"),
    [
        ({"pendingRecords": 5}, 9.0, {}, 0.0, None),
        ({"watermarkLag": "5m"}, 1.0, {}, 0.0, ("Unknown", "MetricsUnavailable")),
        ({"watermarkLag": "5m"}, 2.0, {}, 0.0, ("False", "NoEventTime")),
        ({"watermarkLag": "5m"}, 2.0, {"watermark_lag_seconds": 0.0}, 0.0, ("True", "LagReported")),
        ({"watermarkLag": "5m"}, 2.0, {}, 1.0, None),
        ({"watermarkLag": "5m"}, 2.0, {"watermark_lag_seconds": 9.0}, 1.0, ("True", "LagReported")),
    ],
    ids=[
        "no threshold",
        "too early",
        "nobody can tell",
        "a lag of 0",
        "by unread records alone, in real-time mode",
        "a lag in real-time mode",
    ],
)
def test_the_condition_says_whether_a_lag_is_known(
    backlog: Mapping[str, Any],
    batches: float,
    of_source: Mapping[str, float],
    real_time: float,
    expected: tuple[str, str] | None,
) -> None:
    loop = Loop(declared=application(queries=[query(sources=[source(backlog=backlog)])]))
    loop.run_until_running()
    loop.world.metrics.reports(
        "delays", sources={"flights": {"pending_records": 5.0, **of_source}}, real_time=real_time
    )
    labels = {"application": "flights", "query": "delays", "kind": "data"}
    loop.world.metrics.values.append(("headgate_query_batches_total", labels, batches))
    loop.acknowledged_reconcile()
    conditions = {each.type: each for each in loop.world.reports.statuses[-1].conditions}
    found = conditions.get("LagKnown")
    assert (None if found is None else (found.status.value, found.reason)) == expected


def test_the_partition_that_is_furthest_behind_is_in_the_status() -> None:
    loop = Loop(declared=application(queries=[query(sources=[source(backlog={"watermarkLag": "5m"})])]))
    loop.run_until_running()
    loop.world.metrics.reports("delays", sources={"flights": {"pending_records": 5.0, **LAG}})
    labels = {"application": "flights", "query": "delays", "source": "flights", "partition": "flights/3"}
    loop.world.metrics.values.append((names.SOURCE_WATERMARK_HELD_BY_PARTITION.name, labels, 1.0))
    loop.acknowledged_reconcile()
    (found,) = loop.world.reports.statuses[-1].queries
    assert found.sources[0].watermark_held_by_partition == "flights/3"


def test_a_change_stream_that_does_not_tell_of_its_snapshot_is_told_of_once() -> None:
    loop = Loop(declared=application(queries=[query(sources=[source(backlog={"snapshot": "Debezium"})])]))
    loop.run_until_running()
    loop.world.metrics.reports("delays", sources={"flights": {"pending_records": 5.0}})
    labels = {"application": "flights", "query": "delays", "source": "flights", "cause": "partition t/0: no"}
    loop.world.metrics.values.append((names.SOURCE_SNAPSHOT_PROBLEM.name, labels, 1.0))
    events = [event for _ in range(2) for event in loop.acknowledged_reconcile().events]
    told = [event.message for event in events if event.reason == "SnapshotUnknown" and event.is_warning]
    assert told == ["query delays, source flights: partition t/0: no"]
