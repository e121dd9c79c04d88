"""What metrics and status are told."""

import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.model import BatchReport, ReadLimit, Source, Trigger
from headgate_spark.planner.state import QueryState
from support.asked import AskedPlanner
from support.scripted_spark import BASE, ScriptedSpark, Stream, Uncounted


def control(interval: float = 5, **rest) -> QueryControl:
    return QueryControl(interval_seconds=interval, **rest)


def a_stream(pending: int = 1000, name: str = "flights") -> Stream:
    return Stream(name, {"0": pending})


def test_before_the_first_trigger_nothing_is_known():
    spark = ScriptedSpark(a_stream(), control=control())
    flights = spark.source("flights")
    assert flights.pending_records is None
    assert flights.idle_seconds is None
    assert spark.figures.throughput_records_per_second is None
    assert spark.figures.grant_records is None


def test_pending_counts_from_the_committed_position_while_a_batch_runs():
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(batch=BatchControl(initial_records=60)), 0)
    planner.admit("a", {"0": 0}, 0)
    planner.plan("a", {"a": {"0": 100}}, 0)
    source = planner.figures(5).sources[0]
    assert (source.pending_records, source.planned_records_total, source.processed_records_total) == (
        100,
        60,
        0,
    )
    assert source.idle_seconds == 0


def test_planned_and_processed_records_are_counted():
    spark = ScriptedSpark(a_stream(), Uncounted("events", ReadLimit.FILES, [7, 7, 7]), control=control(0.5))
    spark.run_for(20)
    assert (
        spark.source("flights").planned_records_total
        == spark.source("flights").processed_records_total
        == 1000
    )
    assert (
        spark.source("events").planned_records_total == spark.source("events").processed_records_total == 21
    )


def test_throughput_leaves_the_fixed_cost_of_a_batch_out():
    spark = ScriptedSpark(
        a_stream(10**7),
        control=control(10, batch=BatchControl(initial_records=5000)),
        fixed_seconds=3,
        records_per_second=20_000,
    )
    spark.run_until(lambda: len(spark.batches) == 5)
    assert spark.figures.throughput_records_per_second == pytest.approx(20_000, rel=0.01)


def test_held_time_adds_up_by_reason():
    spark = ScriptedSpark(a_stream(), control=control(5))
    spark.arrivals = lambda seconds: spark.sources["flights"].arrive(round(seconds * 100))
    spark.run_for(50)
    flights = spark.source("flights")
    busy = sum(batch.seconds for batch in spark.batches)
    assert sum(flights.held_seconds.values()) == pytest.approx(spark.now - spark.began - busy, abs=1)
    assert flights.held_seconds[HeldBy.INTERVAL] > 40


def test_between_two_batches_that_a_rate_cut_the_rate_is_what_holds():
    limits = {"flights": SourceControl(rate_limit=RateControl(records_per_second=10))}
    spark = ScriptedSpark(a_stream(1000), control=control(5, sources=limits))
    spark.run_for(48)
    assert spark.held_by("flights") is HeldBy.RATE_LIMIT
    assert spark.source("flights").held_seconds[HeldBy.RATE_LIMIT] > 30


def test_what_held_a_source_in_the_last_minute_is_told_to_the_second_and_forgotten_after_it():
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.GATE)], now=0))

    def lately(now):
        return planner.figures(now).sources[0].held_lately_seconds

    paused, free = ({"a": SourceControl(paused=is_paused)} for is_paused in (True, False))
    assert lately(0) == {}
    for now in (0, 10, 25):
        planner.control(control(sources=paused), now)
        planner.admit("a", None, now)
    assert lately(25) == {HeldBy.PAUSED: 25}
    assert lately(90) == {HeldBy.PAUSED: 60}
    planner.control(control(sources=free), 90)
    planner.admit("a", None, 90)
    assert lately(120)[HeldBy.PAUSED] == 30
    assert HeldBy.PAUSED not in lately(150)
    planner.control(control(sources=paused), 200)
    planner.admit("a", None, 200)
    assert lately(207)[HeldBy.PAUSED] == 7


def test_held_time_goes_on_while_another_source_is_read():
    planner = AskedPlanner(
        QueryState("q", Trigger(), [Source("a", ReadLimit.GATE), Source("b", ReadLimit.GATE)], now=0)
    )
    planner.control(control(sources={"b": SourceControl(paused=True)}), 0)
    for now in (0, 1):
        planner.admit("a", None, now)
        planner.admit("b", None, now)
    assert planner.figures(600).sources[1].held_seconds[HeldBy.PAUSED] == 600


def test_a_source_with_nothing_new_is_idle_from_its_last_record_on():
    spark = ScriptedSpark(a_stream(10), control=control(5))
    spark.run_for(60)
    assert spark.source("flights").idle_seconds == pytest.approx(60, abs=1)
    spark.sources["flights"].arrive(5)
    spark.run_for(0.5 + BASE)
    assert spark.source("flights").idle_seconds < 1


@pytest.mark.parametrize("source", [a_stream(10), Uncounted("flights", ReadLimit.ROWS, [10])])
def test_a_source_is_not_idle_while_its_records_are_read(source):
    spark = ScriptedSpark(source, control=control(1), fixed_seconds=100)
    spark.run_for(103)
    assert spark.source("flights").idle_seconds < 5


def test_offsets_without_rows_are_activity():
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(1), 0)
    planner.admit("a", {"0": 0}, 50)
    planner.plan("a", {"a": {"0": 10}}, 50)
    planner.batch_ended(BatchReport({"a": 0}, 1, 51))
    assert planner.figures(52).sources[0].idle_seconds == 2


def test_a_closed_gate_does_not_keep_a_source_from_being_idle():
    spark = ScriptedSpark(a_stream(10), control=control(3600))
    spark.run_for(60)
    assert spark.held_by("flights") is HeldBy.INTERVAL
    assert spark.source("flights").idle_seconds == pytest.approx(60, abs=1)


@pytest.mark.parametrize("pending", [0, 10])
def test_a_source_that_people_paused_is_never_idle(pending):
    spark = ScriptedSpark(a_stream(pending), control=control(sources={"flights": SourceControl(paused=True)}))
    spark.run_for(60)
    assert spark.source("flights").idle_seconds == 0
    assert spark.source("flights").paused


def test_a_source_with_pending_records_is_not_idle():
    limit = {"flights": SourceControl(rate_limit=RateControl(records_per_second=0.1))}
    spark = ScriptedSpark(a_stream(10_000), control=control(1, sources=limit))
    spark.run_for(60)
    assert spark.source("flights").idle_seconds == 0


def test_a_silent_source_is_idle_beside_a_busy_one():
    busy = a_stream(10**9, "busy")
    spark = ScriptedSpark(busy, a_stream(0), control=control(1))
    spark.run_for(60)
    assert spark.source("flights").idle_seconds == pytest.approx(60, abs=3)


def test_a_source_that_cannot_be_counted_is_idle_once_it_had_nothing():
    spark = ScriptedSpark(Uncounted("events", ReadLimit.GATE, [10]), control=control(1))
    spark.round()
    assert spark.source("events").idle_seconds is None
    spark.run_for(60)
    assert spark.source("events").idle_seconds == pytest.approx(60, abs=2)


def test_the_base_is_reported_where_the_interval_is_below_it():
    assert ScriptedSpark(a_stream(), control=control(0.02)).figures.interval_seconds == BASE


def test_pending_and_idle_are_unknown_when_the_source_cannot_tell():
    stream = a_stream()
    spark = ScriptedSpark(stream, control=control(1))
    spark.run_for(5)
    stream.reachable = False
    spark.run_for(5)
    assert spark.source("flights").pending_records is None
    assert spark.source("flights").idle_seconds is None
