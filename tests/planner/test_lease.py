"""What the engine may hold by itself: as nothing was ever leased, only with fewer questions."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BacklogControl, BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.model import NOTHING_READ, ReadLimit, Trigger, TriggerKind
from support.examples import examples
from support.scripted_spark import BASE, ScriptedSpark, Stream, Uncounted

NAMES = ("flights", "weather")
NEVER = BacklogControl(pending_records=10**9)


def control(interval: float = 0.1, **rest) -> QueryControl:
    return QueryControl(interval_seconds=interval, **rest)


def a_stream(pending: int = 10, name: str = "flights") -> Stream:
    return Stream(name, {"0": pending})


def questions(spark: ScriptedSpark, seconds: float) -> int:
    """How often the planner is asked in so many seconds."""
    before = spark.asked
    spark.run_for(seconds)
    return spark.asked - before


def test_an_idle_query_is_asked_about_once_a_second():
    spark = ScriptedSpark(a_stream(), control=control())
    spark.run_for(10)
    assert questions(spark, 60) == pytest.approx(57, abs=3)


def test_so_is_a_closed_gate():
    spark = ScriptedSpark(a_stream(), a_stream(name="weather"), control=control(3600))
    spark.run_for(10)
    assert questions(spark, 60) == pytest.approx(2 * 55, abs=10)


def test_so_is_a_query_whose_sources_are_paused_or_wait_behind_a_history():
    sources = {"archive": SourceControl(paused=True), "live": SourceControl(after="archive")}
    live = a_stream(10, "live")
    spark = ScriptedSpark(a_stream(10, "archive"), live, control=control(sources=sources))
    spark.run_for(10)
    spark.arrivals = lambda seconds: live.arrive(round(seconds * 100))
    assert questions(spark, 60) == pytest.approx(2 * 55, abs=10)


def test_a_source_that_cannot_be_counted_is_left_alone_between_looks():
    spark = ScriptedSpark(Uncounted("events", ReadLimit.FILES, []), control=control(5))
    spark.run_for(10)
    looks = 60 / (0.5 + 2 * BASE)
    assert 2 * looks <= questions(spark, 60) + 4 <= 3 * looks


@pytest.mark.parametrize(
    "settings",
    [
        {"sources": {"flights": SourceControl(rate_limit=RateControl(records_per_second=0.01))}},
        {"batch": BatchControl(max_records=1), "sources": {}},
    ],
)
def test_while_records_wait_at_an_open_gate_every_trigger_is_asked_about(settings):
    spark = ScriptedSpark(a_stream(10**6), control=control(**settings))
    spark.run_for(10)
    batches = len(spark.batches)
    assert questions(spark, 10) >= 99 - (len(spark.batches) - batches) / 2


def test_a_source_that_cannot_tell_where_it_is_is_asked_about_at_every_trigger():
    stream = a_stream()
    stream.reachable = False
    spark = ScriptedSpark(stream, control=control())
    assert questions(spark, 10) == pytest.approx(100, abs=1)


@pytest.mark.parametrize("kind", [TriggerKind.AVAILABLE_NOW, TriggerKind.ONCE])
def test_a_run_that_ends_by_itself_leases_nothing(kind):
    spark = ScriptedSpark(a_stream(0), control=control(), trigger=Trigger(kind))
    spark.round()
    assert spark.planner.lease(spark.now) is None


def test_a_query_that_stops_leases_nothing():
    spark = ScriptedSpark(a_stream(0), control=control(3600))
    spark.run_for(1)
    spark.planner.stop(spark.now)
    assert questions(spark, 10) == pytest.approx(100, abs=20)


def test_a_full_bucket_is_not_slept_through():
    limit = SourceControl(rate_limit_during_backlog=RateControl(records_per_second=1000, max_burst_seconds=1))
    backlog = control(5, interval_during_backlog_seconds=600, backlog=True, sources={"flights": limit})
    spark = ScriptedSpark(a_stream(10**9), control=backlog)
    spark.run_for(60)
    assert sum(spark.sizes) == pytest.approx(60 * 1000, rel=0.05)


sources = st.builds(
    SourceControl,
    paused=st.sampled_from([False, False, True]),
    rate_limit=st.none() | st.builds(RateControl, records_per_second=st.floats(0.1, 1e4)),
)
controls = st.builds(
    QueryControl,
    interval_seconds=st.sampled_from([0.0, 0.1, 0.25, 1.0]),
    interval_during_backlog_seconds=st.sampled_from([0.0, 20.0]),
    min_pause_seconds=st.sampled_from([0.0, 3.0]),
    backlog=st.booleans(),
    sources=st.dictionaries(st.sampled_from(NAMES), sources),
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.sampled_from(NAMES), st.integers(1, 10**5)),
        st.tuples(st.just("control"), controls),
        st.tuples(st.just("run"), st.floats(0.1, 12)),
        st.tuples(st.just("lose"), st.sampled_from(NAMES)),
        st.tuples(st.just("find"), st.sampled_from(NAMES)),
    ),
    max_size=15,
)


def batches(history, *, leases: bool):
    """When each batch is planned, and what of."""
    streams = (Stream(name, {"0": 100, "1": 7}) for name in NAMES)
    spark = ScriptedSpark(*streams, control=control(), leases=leases, memory=NOTHING_READ)
    for event in history:
        match event:
            case "arrive", name, records:
                spark.sources[name].arrive(records)
            case "control", document:
                spark.control(document)
            case "run", seconds:
                spark.run_for(seconds)
            case "lose" | "find" as what, name:
                spark.sources[name].reachable = what == "find"
    spark.run_for(5)
    return [(at, batch.records) for at, batch in zip(spark.planned_at, spark.batches, strict=True)]


@settings(max_examples=examples(150), deadline=None)
@given(events)
def test_up_to_an_interval_of_a_second_leases_change_no_batch(history):
    assert batches(history, leases=True) == batches(history, leases=False)


@settings(max_examples=examples(100), deadline=None)
@given(events)
def test_a_threshold_that_nothing_crosses_makes_no_batch_later_nor_another(history):
    """Each query is looked at more often for its threshold, and otherwise is as one without."""

    def with_thresholds(event):
        if event[0] != "control":
            return event
        watched = {
            name: replace(event[1].sources.get(name, SourceControl()), backlog=NEVER) for name in NAMES
        }
        return "control", replace(event[1], sources=watched)

    assert batches(map(with_thresholds, history), leases=True) == batches(history, leases=True)


@given(interval=st.floats(1, 120), arrives=st.floats(0, 30))
def test_above_that_a_batch_is_late_by_a_tenth_of_the_interval_at_most(interval, arrives):
    stream = a_stream()
    spark = ScriptedSpark(stream, control=control(interval))
    spark.run_for(200 + arrives)
    arrived = spark.now
    stream.arrive(10)
    spark.run_until(lambda: len(spark.batches) == 2, within=10)
    assert spark.batches[1].planned_at - arrived <= min(interval / 10, 2) + BASE
