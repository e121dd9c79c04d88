"""Properties that name what the job does not have are told of, with what may be meant."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from headgate_contract.settings.said import in_properties
from headgate_contract.settings.strangers import named_query, of_queries, of_sources
from headgate_spark.engine.strangers import SETTLED_SECONDS, Strangers

OF = "spark.headgate.queries."


@pytest.mark.parametrize(
    ("key", "query"),
    [
        (f"{OF}orders.interval", "orders"),
        (f"{OF}orders.eu.batch.maxRecords", "orders.eu"),
        (f"{OF}orders.eu.sources.a.b.rateLimit.duringBacklog.recordsPerSecond", "orders.eu"),
        (f"{OF}orders.intervall", "orders"),
        ("spark.headgate.interval", None),
        ("spark.sql.shuffle.partitions", None),
    ],
)
def test_a_property_names_its_query(key: str, query: str | None) -> None:
    assert named_query(key) == query


@pytest.mark.parametrize(
    ("queries", "told"),
    [
        (["orders"], "the job has started no query ordres; did you mean orders?"),
        (["lines", "bills"], "the job has started no query ordres; it has bills, lines"),
    ],
)
def test_a_query_that_the_job_does_not_have_is_told_with_the_nearest(queries: list[str], told: str) -> None:
    key = f"{OF}ordres.interval"
    assert list(of_queries({key: "1s"}, queries)) == [f"property {key}: {told}"]


def test_nothing_is_told_of_a_query_that_has_started_nor_of_what_was_refused_at_its_start() -> None:
    properties = {
        f"{OF}orders.interval": "1s",
        f"{OF}orders.intervall": "1s",
        "spark.headgate.interval": "2s",
    }
    assert list(of_queries(properties, ["orders"])) == []


def test_a_source_that_the_query_does_not_have_is_told_with_the_nearest() -> None:
    key = f"{OF}q.sources.order.paused"
    said = in_properties({key: "true", f"{OF}q.sources.lines.paused": "true"}, "q").sources
    assert list(of_sources("q", said, ["orders", "lines"])) == [
        f"property {key}: query q has no source order; did you mean orders?"
    ]


def test_a_query_that_starts_late_is_waited_for() -> None:
    now = 0.0
    strangers = Strangers(lambda: now)
    properties = {f"{OF}first.interval": "1s", f"{OF}second.interval": "1s", f"{OF}thrid.interval": "1s"}
    strangers.begins("first", properties)
    now = SETTLED_SECONDS - 1
    assert strangers.sentences == []
    strangers.begins("second", properties)
    now += SETTLED_SECONDS - 1
    assert strangers.sentences == []
    now += 1
    assert ["no query thrid" in sentence for sentence in strangers.sentences] == [True]
    strangers.begins("thrid", properties)
    now += SETTLED_SECONDS
    assert strangers.sentences == []


def test_a_driver_that_ends_before_it_has_waited_tells_at_its_end() -> None:
    now = 0.0
    strangers = Strangers(lambda: now)
    with capture_logs() as log:
        strangers.tell_at_end()
        strangers.begins("first", {f"{OF}frist.interval": "1s"})
        strangers.tell()
        assert log == []
        strangers.tell_at_end()
        now = SETTLED_SECONDS
        strangers.tell()
    assert ["no query frist" in entry["problem"] for entry in log] == [True]


def test_what_was_told_while_the_driver_ran_is_not_told_at_its_end() -> None:
    now = 0.0
    strangers = Strangers(lambda: now)
    strangers.begins("first", {f"{OF}frist.interval": "1s"})
    now = SETTLED_SECONDS
    with capture_logs() as log:
        strangers.tell()
        strangers.tell_at_end()
    assert len(log) == 1
