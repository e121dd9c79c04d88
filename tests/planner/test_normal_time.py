"""A query in normal time, as Spark would drive it: rounds, gate, rate limits, pausing, stopping."""

from itertools import permutations

import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.model import (
    Answer,
    BatchReport,
    Hold,
    ReadLimit,
    Source,
    Survey,
    TakeAll,
    TakeLimit,
    TakeUpTo,
    Trigger,
    Wait,
)
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.source import SURVEY_SECONDS
from headgate_spark.planner.state import QueryState
from support.asked import AskedPlanner
from support.scripted_spark import BASE, START, ScriptedSpark, Stream, Uncounted


def control(interval: float | None = 5, **rest) -> QueryControl:
    return QueryControl(interval_seconds=interval, **rest)


def a_stream(pending: int = 1000, name: str = "flights") -> Stream:
    return Stream(name, {"0": pending})


# Rounds


def test_in_the_first_round_everything_waits_until_every_source_has_been_seen():
    spark = ScriptedSpark(a_stream(), a_stream(name="weather"), control=control())
    assert spark.round() == {"flights": Hold(HeldBy.FIRST_LOOK), "weather": Hold(HeldBy.FIRST_LOOK)}
    assert spark.round() == {"flights": TakeUpTo({"0": 1000}), "weather": TakeUpTo({"0": 1000})}


def test_a_query_of_one_source_need_not_wait_for_others():
    spark = ScriptedSpark(a_stream(), control=control())
    assert spark.round() == {"flights": TakeUpTo({"0": 1000})}


def test_one_survey_serves_all_sources_of_a_round():
    spark = ScriptedSpark(a_stream(), a_stream(name="weather"), control=control())
    spark.round()
    spark.surveys.clear()
    spark.round()
    assert [names for _, names in spark.surveys] == [("flights", "weather")]


def test_a_round_begins_when_a_source_is_asked_again():
    planner = AskedPlanner(
        QueryState("q", Trigger(), [Source("a", ReadLimit.GATE), Source("b", ReadLimit.GATE)], now=0)
    )
    planner.control(control(), 0)
    planner.admit("b", None, 0)
    planner.admit("a", None, 0.1)
    assert planner.admit("b", None, 0.1) == TakeAll()


def test_the_position_that_spark_hands_in_is_believed_over_what_was_planned():
    stream = a_stream(1000)
    spark = ScriptedSpark(a_stream(10, "first"), stream, control=control(0.2))
    spark.run_until(lambda: len(spark.batches) == 1)
    stream.arrive(1000)
    stream.start = {"0": 1500}
    spark.sources["first"].arrive(5)
    spark.run_until(lambda: len(spark.batches) == 2)
    assert stream.start == {"0": 2000}


@pytest.fixture
def ten_a_second() -> QueryPlanner:
    """A planner of one source, that may take ten records a second."""
    planner = QueryPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(sources={"a": SourceControl(rate_limit=RateControl(records_per_second=10))}), 0)
    return planner


def test_asking_again_in_the_same_trigger_gives_the_same_answer(ten_a_second: QueryPlanner):
    assert ten_a_second.admit("a", {"0": 0, "1": 0}, 1) == Survey(("a",))
    answer = ten_a_second.plan("a", {"a": {"0": 70, "1": 30}}, 1)
    assert sum(answer.ends.values()) == 50
    assert ten_a_second.plan("a", {"a": {"0": 90, "1": 50}}, 2) == answer
    assert ten_a_second.admit("a", {"0": 0, "1": 0}, 5) == answer
    assert ten_a_second.figures(5).sources[0].planned_records_total == 50


def test_an_answer_that_never_came_there_is_given_again_in_the_next_trigger(ten_a_second: QueryPlanner):
    answers = []
    for _ in range(3):
        ten_a_second.trigger_begins((), 1)
        assert ten_a_second.admit("a", {"0": 0, "1": 0}, 1) == Survey(("a",))
        answers.append(ten_a_second.plan("a", {"a": {"0": 70, "1": 30}}, 1))
    assert sum(answers[0].ends.values()) == 50
    assert answers.count(answers[0]) == 3
    assert ten_a_second.figures(1).sources[0].planned_records_total == 50


# The gate


def test_batches_come_an_interval_apart_and_do_not_drift():
    spark = ScriptedSpark(a_stream(), control=control(5))
    spark.arrivals = lambda seconds: spark.sources["flights"].arrive(round(seconds * 100))
    spark.run_for(100)
    assert len(spark.batches) == 20
    assert spark.planned_at[-1] == pytest.approx(95, abs=2 * BASE)


def test_an_interval_that_is_not_set_is_that_of_the_jobs_own_trigger():
    spark = ScriptedSpark(a_stream(), control=control(None), trigger=Trigger(interval_seconds=7))
    spark.arrivals = lambda seconds: spark.sources["flights"].arrive(round(seconds * 100))
    spark.run_for(30)
    assert spark.planned_at == pytest.approx([0, 7, 14, 21, 28], abs=2 * BASE)


@pytest.mark.parametrize(
    ("interval", "within"), [(0, BASE), (0.1, BASE), (1, BASE), (5, 0.5), (60, SURVEY_SECONDS)]
)
@pytest.mark.parametrize("arrives", [0.05, 0.33, 1.21])
def test_records_that_arrive_in_an_idle_query_are_read_at_the_next_look(interval, within, arrives):
    stream = a_stream(10)
    spark = ScriptedSpark(stream, control=control(interval))
    spark.run_for(100 + arrives)
    stream.arrive(10)
    spark.run_for(within)
    assert len(spark.batches) == 2


def test_a_closed_gate_asks_for_latest_positions_only_now_and_then():
    spark = ScriptedSpark(a_stream(), control=control(60))
    spark.run_for(30)
    assert len(spark.surveys) == pytest.approx(30 / SURVEY_SECONDS, abs=2)
    spark.sources["flights"].arrive(50)
    spark.run_for(SURVEY_SECONDS + BASE)
    assert spark.source("flights").pending_records == 50


def test_a_query_that_is_not_listed_is_only_gated_by_its_own_trigger():
    spark = ScriptedSpark(a_stream(10**9), trigger=Trigger(interval_seconds=3))
    assert spark.round() == {"flights": TakeAll()}
    assert spark.surveys == []


def test_a_checkpoint_that_is_asked_for_comes_at_once_and_only_once():
    stream = a_stream(10)
    spark = ScriptedSpark(stream, control=control(60))
    spark.round()
    stream.arrive(10)
    spark.control(control(60, checkpoint_request="now"))
    spark.round()
    assert len(spark.batches) == 2
    stream.arrive(10)
    spark.control(control(60, checkpoint_request="now"))
    spark.run_for(10)
    assert len(spark.batches) == 2


def test_a_change_of_the_interval_is_in_force_within_two_triggers():
    spark = ScriptedSpark(a_stream(), control=control(60))
    spark.arrivals = lambda seconds: spark.sources["flights"].arrive(round(seconds * 100))
    spark.run_for(10)
    spark.control(control(0.5))
    before = spark.now
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.batches[1].planned_at - before < 0.5 + 2 * BASE


def test_the_minimum_pause_is_kept():
    spark = ScriptedSpark(a_stream(), control=control(1, min_pause_seconds=4), fixed_seconds=2)
    spark.arrivals = lambda seconds: spark.sources["flights"].arrive(round(seconds * 100))
    spark.run_for(60)
    pauses = [b.planned_at - a.ended_at for a, b in zip(spark.batches, spark.batches[1:], strict=False)]
    assert min(pauses) >= 4 - 1e-6
    assert HeldBy.MIN_PAUSE in spark.source("flights").held_seconds


# What a batch takes


def test_a_batch_takes_no_more_than_its_grant():
    spark = ScriptedSpark(a_stream(10**7), control=control(batch=BatchControl(initial_records=700)))
    spark.round()
    assert spark.sizes == [700]
    assert spark.figures.grant_records == 700


def test_the_first_batch_after_a_stall_takes_no_longer_than_twice_its_target():
    stream = a_stream(2_000_000)
    spark = ScriptedSpark(stream, control=control(2, batch=BatchControl(initial_records=5000)))
    spark.run_until(lambda: stream.pending == 0)
    stream.arrive(60 * 40_000)
    spark.run_until(lambda: stream.pending == 0)
    stalled = next(b for b in spark.batches if b.total == max(spark.sizes))
    assert stalled.seconds <= 2 * 2


def test_batches_come_to_take_their_target_whatever_a_record_costs():
    for records_per_second in (300, 30_000, 3_000_000):
        stream = a_stream(10**9)
        spark = ScriptedSpark(
            stream, control=control(5), records_per_second=records_per_second, fixed_seconds=1
        )
        spark.run_until(lambda spark=spark: len(spark.batches) == 12)
        assert 2.5 <= spark.batches[-1].seconds <= 10


def test_sources_share_a_grant_by_what_is_pending():
    spark = ScriptedSpark(
        a_stream(30_000),
        a_stream(10_000, "weather"),
        control=control(batch=BatchControl(initial_records=4000)),
    )
    spark.run_until(lambda: bool(spark.batches))
    assert spark.batches[0].records == {
        "flights": pytest.approx(3000, abs=2),
        "weather": pytest.approx(1000, abs=2),
    }


def test_a_batch_with_offsets_but_no_rows_is_a_batch():
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(60), 0)
    planner.admit("a", {"0": 0}, 0)
    planner.plan("a", {"a": {"0": 10}}, 0)
    planner.batch_ended(BatchReport({"a": 0}, 0.2, 0.2))
    assert planner.admit("a", {"0": 10}, 0.3) == Hold(HeldBy.INTERVAL)
    assert planner.figures(0.3).sources[0].pending_records == 0
    assert planner.figures(0.3).data_batches == 1


def test_no_data_batches_move_nothing_and_are_counted_apart():
    stream = a_stream(10)
    spark = ScriptedSpark(stream, control=control(5))
    spark.round()
    spark.planner.batch_ended(BatchReport({}, 0.1, spark.now))
    spark.run_for(4.5)
    stream.arrive(10)
    spark.run_for(1)
    assert spark.planned_at == pytest.approx([0, 5], abs=0.2)
    assert (spark.figures.data_batches, spark.figures.no_data_batches) == (2, 1)


def after_batches_without_data(*seconds: float, interval: float) -> AskedPlanner:
    """Return a planner that planned a batch at 0, and knows how long batches without data take."""
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(interval), 0)
    for taken in seconds:
        planner.batch_ended(BatchReport({}, taken, 0))
    planner.admit("a", {"0": 0}, 0)
    planner.plan("a", {"a": {"0": 10}}, 0)
    planner.batch_ended(BatchReport({"a": 10}, 0.4, 0.4))
    return planner


def test_a_gate_that_opens_before_a_batch_without_data_would_be_over_is_waited_for():
    planner = after_batches_without_data(0.25, interval=0.5)
    assert planner.admit("a", {"0": 10}, 0.4) == Wait(pytest.approx(0.1), HeldBy.INTERVAL)
    assert isinstance(planner.admit("a", {"0": 10}, 0.5), Survey)


@pytest.mark.parametrize(
    ("taken", "interval"),
    [((), 0.5), ((0.05,), 0.5), ((5.0, 0.05), 0.5), ((0.25,), 10)],
    ids=["not known", "is over in time", "was slow once", "long before the gate opens"],
)
def test_any_other_batch_without_data_runs_at_once(taken: tuple[float, ...], interval: float):
    planner = after_batches_without_data(*taken, interval=interval)
    assert planner.admit("a", {"0": 10}, 0.4) == Hold(HeldBy.INTERVAL)


def test_a_wait_is_never_longer_than_a_second():
    planner = after_batches_without_data(20, interval=10)
    assert planner.admit("a", {"0": 10}, 0.4) == Wait(1.0, HeldBy.INTERVAL)


def test_only_the_first_source_of_a_trigger_waits():
    planner = AskedPlanner(
        QueryState("q", Trigger(), [Source(name, ReadLimit.OFFSETS) for name in "ab"], now=0)
    )
    planner.control(control(10), 0)
    planner.batch_ended(BatchReport({}, 0.3, 0))

    def ask(name: str, at: int, now: float) -> Answer:
        answer = planner.admit(name, {"0": at}, now)
        if isinstance(answer, Survey):
            answer = planner.plan(name, {key: {"0": 10} for key in "ab"}, now)
        return answer

    for name in "abab":  # in its first round a query is only looked at
        ask(name, 0, 0.0)
    planner.batch_ended(BatchReport({"a": 10, "b": 10}, 9, 9))
    assert [ask("a", 10, 9.6), ask("b", 10, 9.8)] == [Hold(HeldBy.INTERVAL)] * 2


def test_a_batch_repeated_from_the_offset_log_counts_as_measured():
    spark = ScriptedSpark(a_stream(10**8), control=control(10))
    spark.planner.batch_ended(BatchReport({"flights": 200_000}, 4.0, START))
    spark.round()
    assert spark.sizes == [500_000]


# Positions that change under us


def test_a_partition_that_is_gone_stays_where_it_is():
    stream = Stream("flights", {"0": 10}, start={"0": 0, "1": 7})
    spark = ScriptedSpark(stream, control=control())
    assert spark.round() == {"flights": TakeUpTo({"0": 10, "1": 7})}


def test_a_topic_that_was_created_anew_is_not_read_backwards():
    stream = Stream("flights", {"0": 3, "1": 20}, start={"0": 500, "1": 10})
    spark = ScriptedSpark(stream, control=control())
    spark.run_until(lambda: stream.start["1"] == 20)
    assert stream.start == {"0": 500, "1": 20}
    assert spark.source("flights").pending_records == 0


def test_a_new_partition_is_taken_by_its_source_at_the_next_planning():
    stream = a_stream(10)
    spark = ScriptedSpark(stream, control=control(0.2))
    spark.round()
    stream.latest["1"] = 40
    spark.run_until(lambda: "1" in stream.start)
    assert stream.start == {"0": 10, "1": 40}
    assert spark.source("flights").planned_records_total == 50


def test_a_source_whose_latest_position_is_not_known_holds_and_its_siblings_go_on():
    weather = a_stream(name="weather")
    weather.reachable = False
    spark = ScriptedSpark(a_stream(), weather, control=control(0.2))
    spark.run_for(1)
    assert spark.sources["flights"].pending == 0
    assert spark.held_by("weather") is HeldBy.UNKNOWN
    assert spark.source("weather").pending_records is None
    weather.reachable = True
    spark.run_for(1)
    assert weather.pending == 0


# Rate limits


def limited(
    rate: float | None = None, per_checkpoint: int | None = None, interval: float = 0.5, pause: float = 0
) -> QueryControl:
    limit = RateControl(records_per_second=rate, records_per_checkpoint=per_checkpoint)
    sources = {"flights": SourceControl(rate_limit=limit)}
    return control(interval, sources=sources, min_pause_seconds=pause)


@pytest.mark.parametrize("pause", [0, 0.25, 4])
@pytest.mark.parametrize("rate", [3, 1000, 1_000_000])
def test_a_rate_is_kept_over_time(rate, pause):
    spark = ScriptedSpark(a_stream(10**9), control=limited(rate, pause=pause), records_per_second=10**8)
    spark.run_for(20)
    began = len(spark.batches)
    spark.run_for(60)
    first, *others = spark.batches[began:]
    planned = sum(batch.total for batch in others)
    assert planned == pytest.approx(rate * (others[-1].planned_at - first.planned_at), rel=0.02, abs=2)


def test_a_few_records_a_second_go_round_all_partitions():
    stream = Stream("flights", {str(partition): 10**6 for partition in range(8)})
    spark = ScriptedSpark(stream, control=limited(3))
    spark.run_for(60)
    assert min(stream.start.values()) >= 20


def test_a_cap_per_checkpoint_bounds_each_batch():
    spark = ScriptedSpark(a_stream(10**6), control=limited(per_checkpoint=70))
    spark.run_for(5)
    assert set(spark.sizes) == {70}


def test_a_change_of_rate_is_in_force_at_the_next_planning():
    spark = ScriptedSpark(a_stream(10**8), control=limited(1000))
    spark.run_for(10)
    spark.control(limited(10))
    spark.run_for(10)
    assert spark.sizes[-1] <= 10
    assert spark.source("flights").rate_limit_records_per_second == 10


def test_a_source_without_tokens_holds_without_being_asked_anything():
    spark = ScriptedSpark(a_stream(10**6), control=limited(1, interval=0.1))
    spark.run_for(0.5)
    spark.surveys.clear()
    spark.round()
    assert spark.held_by("flights") is HeldBy.RATE_LIMIT
    assert spark.surveys == []


# Pausing and stopping


def test_a_paused_source_holds_and_the_other_goes_on():
    sources = {"weather": SourceControl(paused=True)}
    spark = ScriptedSpark(a_stream(), a_stream(name="weather"), control=control(sources=sources))
    spark.run_for(1)
    assert spark.held_by("weather") is HeldBy.PAUSED
    assert spark.sources["flights"].pending == 0
    spark.control(control())
    spark.run_for(6)
    assert spark.sources["weather"].pending == 0


def test_people_see_the_pending_records_of_a_paused_source():
    stream = a_stream(10)
    spark = ScriptedSpark(stream, control=control(sources={"flights": SourceControl(paused=True)}))
    spark.run_for(3)
    stream.arrive(90)
    spark.run_for(3)
    assert spark.source("flights").pending_records == 100


def test_after_a_stop_nothing_is_planned():
    spark = ScriptedSpark(a_stream(10**6), a_stream(name="weather"), control=control(0.2))
    spark.run_for(2)
    done = len(spark.batches)
    spark.planner.stop(spark.now)
    spark.run_for(10)
    assert len(spark.batches) == done
    assert spark.held_by("flights") is HeldBy.STOP


def test_a_stop_reaches_the_sources_that_are_still_to_be_asked_in_a_round():
    planner = AskedPlanner(
        QueryState("q", Trigger(), [Source("a", ReadLimit.GATE), Source("b", ReadLimit.GATE)], now=0)
    )
    planner.control(control(), 0)
    for _ in range(2):
        first = planner.admit("a", None, 0)
        planner.admit("b", None, 0) if first == Hold(HeldBy.FIRST_LOOK) else planner.stop(0)
    assert first == TakeAll()
    assert planner.admit("b", None, 0) == Hold(HeldBy.STOP)


# Sources that cannot be counted


@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("empty", [0, 2])
def test_every_source_has_its_turn_where_there_is_not_a_record_for_each(most, empty, interval):
    uncounted = [Uncounted(f"events-{n}", ReadLimit.ROWS, [10**6]) for n in range(3)]
    nothing = [Uncounted(f"empty-{n}", ReadLimit.ROWS) for n in range(empty)]
    streams = [a_stream(10**6, f"flights-{n}") for n in range(3)]
    settings = control(interval, batch=BatchControl(max_records=most))
    spark = ScriptedSpark(*nothing, *streams, *uncounted, control=settings, fixed_seconds=0.01)
    spark.run_until(lambda: len(spark.batches) == 24)
    read = {name for batch in spark.batches for name, records in batch.records.items() if records}
    assert read == {source.name for source in (*streams, *uncounted)}


@pytest.mark.parametrize("names", list(permutations(("empty", "other", "events"))))
def test_a_source_with_nothing_has_had_its_turn(names):
    files = {"empty": [], "other": [], "events": [5]}
    sources = [Uncounted(name, ReadLimit.ROWS, list(files[name])) for name in names]
    spark = ScriptedSpark(*sources, control=control(0, batch=BatchControl(max_records=1)))
    spark.run_for(60)
    assert not any(source.pending for source in sources)


def test_a_source_that_takes_rows_gets_its_share_in_rows():
    spark = ScriptedSpark(
        Uncounted("events", ReadLimit.ROWS, [10**6]),
        a_stream(10**6),
        control=control(batch=BatchControl(initial_records=1000)),
    )
    spark.run_until(lambda: bool(spark.batches))
    assert spark.answers["events"] == TakeLimit(500)
    assert spark.batches[0].total == 1000


def test_a_source_of_files_begins_with_one_file_and_grows_to_its_grant():
    spark = ScriptedSpark(
        Uncounted("events", ReadLimit.FILES, [1000] * 5000),
        control=control(0.2, batch=BatchControl(initial_records=50_000)),
    )
    spark.run_until(lambda: len(spark.batches) == 6)
    assert spark.sizes[:3] == [1000, 4000, 16_000]
    assert max(spark.sizes) <= 50_000


def test_a_source_that_cannot_be_bounded_is_let_go_or_held():
    spark = ScriptedSpark(Uncounted("events", ReadLimit.GATE, [1000]), control=control(5))
    assert spark.round() == {"events": TakeAll()}
    spark.round()
    assert spark.held_by("events") is HeldBy.INTERVAL


def test_a_look_that_finds_nothing_leaves_the_gate_open():
    events = Uncounted("events", ReadLimit.GATE, [10])
    spark = ScriptedSpark(events, control=control(5))
    spark.run_for(20)
    assert spark.source("events").pending_records == 0
    events.arrive(10)
    before = spark.now
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.now - before < 1
    assert spark.source("events").pending_records is None


def test_a_source_that_cannot_be_counted_is_not_listed_at_every_trigger():
    spark = ScriptedSpark(Uncounted("events", ReadLimit.FILES), control=control(10))
    looks = 0
    for _ in range(100):
        looks += isinstance(spark.round()["events"], TakeLimit)
    assert 8 <= looks <= 12


@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES, ReadLimit.GATE])
def test_a_rate_holds_in_the_long_run_where_a_batch_cannot_be_counted_before(read_limit):
    events = Uncounted("flights", read_limit, [100])
    spark = ScriptedSpark(events, control=limited(50, interval=0.1))
    spark.arrivals = lambda seconds: events.files.extend([100] * round(seconds * 10))
    spark.run_for(200)
    assert spark.source("flights").processed_records_total <= 50 * 200 + 1000 + max(spark.sizes)
    if read_limit is not ReadLimit.GATE:
        assert spark.source("flights").processed_records_total >= 0.9 * 50 * 200


def test_rows_that_did_not_come_are_given_back_to_the_rate_limit():
    events = Uncounted("flights", ReadLimit.ROWS, [1])
    spark = ScriptedSpark(events, control=limited(100))
    spark.run_for(0.3)
    events.arrive(99)
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.sizes == [1, 99]


def test_looks_that_find_nothing_use_up_no_tokens():
    events = Uncounted("flights", ReadLimit.ROWS)
    spark = ScriptedSpark(events, control=limited(100))
    spark.run_for(5)
    events.arrive(100)
    spark.run_until(lambda: bool(spark.batches))
    assert spark.sizes == [100]


def test_a_new_partition_that_was_taken_whole_is_a_debt_to_the_rate_limit():
    stream = a_stream(10**6)
    spark = ScriptedSpark(stream, control=limited(10, interval=0.1))
    spark.run_for(1)
    stream.latest["1"] = 1000
    spark.run_until(lambda: "1" in stream.start)
    done = len(spark.batches)
    spark.run_for(95)
    assert len(spark.batches) == done
    spark.run_for(10)
    assert len(spark.batches) > done
