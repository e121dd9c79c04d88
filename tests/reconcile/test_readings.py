"""From samples to what a driver has reported, by the table of metrics."""

from __future__ import annotations

import pytest

from headgate.reconcile import metric_table
from headgate.reconcile.metric_table import LONGEST_TEXT, MOST_TEXTS, ROWS, since
from headgate.reconcile.readings import Answered, DriverMetrics, QueryMetrics, SourceMetrics
from headgate_contract.lag_votes import LagVoter
from support.reported import Value, reported


def sample(name: str, value: float, **labels: str) -> Value:
    return f"headgate_{name}", {"application": "flights", **labels}, value


def driver(*values: Value) -> DriverMetrics:
    return reported(values, at=100.0)


def test_samples_find_their_query_and_source() -> None:
    found = driver(
        sample("control_generation", 7),
        sample("driver_stopping", 1),
        sample("query_active", 1, query="a"),
        sample("query_batches_total", 5, query="a", kind="data"),
        sample("query_batches_total", 2, query="a", kind="no_data"),
        sample("query_batch_duration_seconds_sum", 12.5, query="a"),
        sample("query_batch_duration_seconds_count", 5, query="a"),
        sample("source_pending_records", 9, query="a", source="x"),
        sample("source_pending_records", 0, query="a", source="y"),
        sample("source_info", 1, query="a", source="y", read_limit="files"),
        sample("source_held_seconds_total", 3, query="a", source="y", reason="Paused"),
        sample("query_active", 0, query="b"),
    )
    assert (found.control_generation, found.stopping) == (7, True)
    a = found.queries["a"]
    assert (a.active, a.data_batches, a.no_data_batches) == (True, 5, 2)
    assert (a.batch_seconds_sum, a.batch_seconds_count) == (12.5, 5)
    assert a.sources["x"] == SourceMetrics(pending_records=9)
    assert a.sources["y"] == SourceMetrics(pending_records=0, read_limit="files", held_seconds={"Paused": 3})
    assert found.queries["b"].active is False


def test_a_cause_is_read_without_what_is_secret_in_it() -> None:
    cause = "no connection to jdbc:postgresql://db/x?password=x7Kq"
    found = driver(
        sample("query_failed", 1, query="a", cause=cause),
        sample("source_out_of_reach", 1, query="a", source="x", cause=cause),
        sample("checkpoint_unfenced", 1, cause=cause),
    )
    assert repr(found).count("(hidden)") == 3
    assert "x7Kq" not in repr(found)


def test_of_texts_that_a_page_makes_up_no_more_are_kept_than_a_driver_of_ours_has() -> None:
    words = [f"{number:05} {'x' * 2000}" for number in range(1_000)]
    found = driver(
        *(sample("setting_unmatched", 1, cause=one) for one in words),
        *(sample("source_held_back_seconds", 1, query="a", source="x", reason=one) for one in words),
        sample("source_out_of_reach", 1, query="a", source="x", cause=words[0]),
    )
    source = found.queries["a"].sources["x"]
    assert len(found.unmatched) == len(source.held_lately or ()) == MOST_TEXTS
    assert {len(found.unmatched[0]), len(source.out_of_reach or "")} == {LONGEST_TEXT}


def test_what_is_absent_is_unknown_and_zero_is_zero() -> None:
    source = driver(sample("source_pending_records", 0, query="a", source="x")).queries["a"].sources["x"]
    assert source.pending_records == 0
    assert source.watermark_lag_seconds is None
    assert source.phase is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 2.0**54])
def test_a_value_that_cannot_be_is_unknown(value: float) -> None:
    found = driver(
        sample("query_active", 1, query="a"),
        sample("query_throughput_records_per_second", value, query="a"),
    )
    assert found.queries["a"].throughput is None


def test_a_sample_that_does_not_say_what_it_is_of_is_left_out() -> None:
    found = driver(
        sample("query_active", 1),
        sample("source_pending_records", 1, query="a"),
        sample("source_pending_records", 1, source="x"),
    )
    assert found.queries == {}


@pytest.mark.parametrize(("started", "ended"), [(0, 1), (1, 0)])
def test_a_query_that_says_that_it_has_ended_has_whatever_else_it_says(started: int, ended: int) -> None:
    said = {
        started: sample("query_started_timestamp_seconds", 5, query="a"),
        ended: sample("query_active", 0, query="a"),
    }
    assert driver(said[0], said[1]).queries["a"].active is False


def test_the_voters_of_a_source_are_those_that_say_yes_and_are_known_here() -> None:
    votes = [("PendingRecords", 1), ("WatermarkLag", 0), ("OfTheFuture", 1), ("PendingRecords", 1)]
    found = driver(
        *(sample("source_backlog_vote", vote, query="a", source="x", voter=name) for name, vote in votes)
    )
    assert found.queries["a"].sources["x"].votes == (LagVoter.PENDING_RECORDS,)


def test_what_is_too_old_is_unknown_and_so_is_a_page_that_says_nothing() -> None:
    found = driver(sample("query_active", 1, query="a"))
    assert since(found, 100.0) is found
    assert since(found, 100.1) is None
    assert since(DriverMetrics(at=100.0), 0.0) is None
    assert since(driver(sample("control_generation", 0)), 0.0) is not None


def test_the_answer_to_an_expression_is_no_word_of_the_driver() -> None:
    found = DriverMetrics(answers={("a", "x"): Answered(1.0, 100.0)})
    assert since(found, 0.0) is None
    assert found.answers_since(100.0) == {("a", "x"): 1.0}
    assert found.answers_since(100.1) == {}


def test_each_row_names_a_field_that_there_is_and_each_field_has_a_row() -> None:
    without = {
        DriverMetrics: {"at", "attempt", "queries", "source_count", "older", "answers"},
        QueryMetrics: {"sources", "arrival_rate", "no_data_batches"},
        SourceMetrics: set[str](),
    }
    for of, others in without.items():
        named = {row.field for row in metric_table.BY_SAMPLE.values() if row.of is of}
        assert named == set(of.__struct_fields__) - others
    assert len({row.metric.name for row in ROWS}) == len(ROWS)
