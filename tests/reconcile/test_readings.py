from __future__ import annotations

from headgate.reconcile.ports import Reading
from headgate.reconcile.readings import (
    BACKLOG_QUERY,
    HELD_LATELY,
    DriverMetrics,
    SourceMetrics,
    backlog_queries,
    sort,
)


def reading(name: str, value: float, at: float = 100.0, **labels: str) -> Reading:
    return Reading(name=f"headgate_{name}", labels={"application": "flights", **labels}, value=value, at=at)


def sorted_(*readings: Reading, oldest: float = 0.0) -> DriverMetrics:
    metrics = sort(readings, oldest=oldest)
    assert metrics is not None
    return metrics


def test_readings_are_sorted_by_query_and_source() -> None:
    metrics = sorted_(
        reading("control_generation", 7),
        reading("driver_stopping", 1),
        reading("query_active", 1, query="a"),
        reading("query_batches_total", 5, query="a", kind="data"),
        reading("query_batches_total", 2, query="a", kind="no_data"),
        reading("query_batch_duration_seconds_sum", 12.5, query="a"),
        reading("query_batch_duration_seconds_count", 5, query="a"),
        reading("source_pending_records", 9, query="a", source="x"),
        reading("source_pending_records", 0, query="a", source="y"),
        reading("source_info", 1, query="a", source="y", lane="files"),
        reading("source_held_seconds_total", 3, query="a", source="y", reason="Paused"),
        reading("query_active", 0, query="b"),
    )
    assert (metrics.control_generation, metrics.stopping) == (7, True)
    assert sorted(metrics.queries) == ["a", "b"]
    a = metrics.queries["a"]
    assert (a.active, a.data_batches, a.no_data_batches) == (True, 5, 2)
    assert (a.batch_seconds_sum, a.batch_seconds_count) == (12.5, 5)
    assert a.sources["x"] == SourceMetrics(pending_records=9)
    assert a.sources["y"] == SourceMetrics(pending_records=0, lane="files", held_seconds={"Paused": 3})
    assert metrics.queries["b"].active is False


def test_what_is_absent_is_unknown_and_zero_is_zero() -> None:
    source = sorted_(reading("source_pending_records", 0, query="a", source="x")).queries["a"].sources["x"]
    assert source.pending_records == 0
    assert source.watermark_lag_seconds is None
    assert source.phase is None


def test_a_value_that_is_no_number_is_unknown() -> None:
    metrics = sorted_(
        reading("query_active", 1, query="a"),
        reading("query_throughput_records_per_second", float("nan"), query="a"),
    )
    assert metrics.queries["a"].throughput is None


def test_readings_that_are_too_old_are_unknown() -> None:
    old = reading("query_grant_records", 10, at=39.9, query="a")
    fresh = reading("query_active", 1, at=40.0, query="a")
    metrics = sorted_(old, fresh, oldest=40.0)
    assert metrics.queries["a"].grant_records is None
    assert metrics.queries["a"].active is True
    assert metrics.at == 40.0
    assert sort([old], oldest=40.0) is None


def test_the_answer_to_an_expression_is_no_word_of_the_driver() -> None:
    answer = Reading(name=BACKLOG_QUERY, labels={"query": "a", "source": "x"}, value=1.0, at=100.0)
    assert sort([answer], oldest=0.0) is None
    assert backlog_queries([answer], oldest=100.0) == {("a", "x"): 1.0}
    assert backlog_queries([answer], oldest=100.1) == {}


def test_a_history_tells_that_nothing_held_a_source_from_that_nobody_watched() -> None:
    def held(reason: str, seconds: float, source: str) -> Reading:
        labels = {"query": "a", "source": source, "reason": reason}
        return Reading(name=HELD_LATELY, labels=labels, value=seconds, at=100.0)

    sources = (
        sorted_(
            held("", 0.0, "free"),
            held("", 0.0, "held"),
            held("Paused", 3.0, "held"),
            reading("source_phase", 0, query="a", source="new"),
        )
        .queries["a"]
        .sources
    )
    assert sources["free"].held_lately == {"": 0.0}
    assert sources["held"].held_lately == {"": 0.0, "Paused": 3.0}
    assert sources["new"].held_lately is None
