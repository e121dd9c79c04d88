"""A threshold for the lag of a query without event times is told of: late enough to know, and once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.looping import Loop, application, query, source

LAG = {"watermark_lag_seconds": 1.0}


def told(
    backlog: Mapping[str, Any], data_batches: float, of_source: Mapping[str, float], **of_query: float
) -> list[str]:
    """The messages of two turns."""
    loop = Loop(declared=application(queries=[query(sources=[source(backlog=backlog)])]))
    loop.run_until_running()
    loop.world.metrics.reports(
        "delays", sources={"flights": {"pending_records": 5.0, **of_source}}, **of_query
    )
    labels = {"application": "flights", "query": "delays"}
    for kind, batches in (("data", data_batches), ("no_data", 9.0)):
        loop.world.metrics.values.append(("headgate_query_batches_total", {**labels, "kind": kind}, batches))
    events = [event for _ in range(2) for event in loop.acknowledged_turn().events]
    return [event.message for event in events if event.reason == "NoEventTime" and event.is_warning]


def test_a_lag_that_nobody_can_tell_is_told_once_with_the_remedy() -> None:
    assert told({"watermarkLag": "5m"}, 2.0, {}) == [
        "query delays: backlog.watermarkLag of flights never says yes, since the query has no event time: name its "
        "column with withWatermark(), also where nothing else needs one, or set backlog.pendingRecords or "
        "backlog.query instead"
    ]


@pytest.mark.parametrize(
    ("backlog", "batches", "of_source", "of_query"),
    [
        ({"pendingRecords": 5}, 9.0, {}, {}),
        ({"watermarkLag": "5m"}, 1.0, {}, {}),
        ({"watermarkLag": "5m"}, 9.0, LAG, {}),
        ({"watermarkLag": "5m"}, 9.0, {}, {"watermark_timestamp_seconds": 7.0}),
        ({"watermarkLag": "5m"}, 9.0, {}, {"future_batches_total": 3.0}),
    ],
    ids=["no threshold", "too early", "a lag", "a watermark", "event times of the future"],
)
def test_nothing_is_told_where_there_is_a_lag_or_may_be_one(
    backlog: Mapping[str, Any], batches: float, of_source: Mapping[str, float], of_query: Mapping[str, float]
) -> None:
    assert told(backlog, batches, of_source, **of_query) == []
