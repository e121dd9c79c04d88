"""A query in backlog: long batches without waiting, and back to live without a round trip."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.memory import MemoryBound
from headgate_spark.planner.model import BatchReport, ReadLimit, Source, Survey, TakeUpTo, Trigger
from headgate_spark.planner.state import QueryState
from support.asked import AskedPlanner
from support.scripted_spark import BASE, ScriptedSpark, Stream, Uncounted

BATCH = BatchControl(initial_records=10_000)


def control(backlog: bool = True, *, normal: float = 5, during: float | None = 60, **rest) -> QueryControl:
    return QueryControl(
        interval_seconds=normal,
        interval_during_backlog_seconds=during,
        backlog=backlog,
        **{"batch": BATCH} | rest,
    )


def a_stream(pending: int = 10_000_000, name: str = "flights", partitions: int = 4) -> Stream:
    return Stream(name, {str(partition): pending // partitions for partition in range(partitions)})


def gaps(spark: ScriptedSpark) -> list[float]:
    """Seconds between the end of a batch and the planning of the next."""
    return [b.planned_at - a.ended_at for a, b in zip(spark.batches, spark.batches[1:], strict=False)]


def test_a_query_with_work_never_waits():
    spark = ScriptedSpark(a_stream(), control=control())
    spark.run_until(lambda: spark.sources["flights"].pending == 0)
    assert len(spark.batches) > 5
    assert max(gaps(spark)) == pytest.approx(0)


def test_batches_grow_until_they_take_the_interval_of_the_backlog():
    spark = ScriptedSpark(a_stream(50_000_000), control=control(), fixed_seconds=2)
    spark.run_until(lambda: len(spark.batches) == 8)
    assert spark.sizes[:4] == [10_000, 40_000, 160_000, 640_000]
    assert spark.batches[-1].seconds == pytest.approx(60, rel=0.1)


def test_the_verdict_is_in_force_at_the_next_trigger():
    stream = a_stream(1000)
    spark = ScriptedSpark(stream, control=control(False, normal=600))
    spark.run_for(10)
    stream.arrive(10**6)
    spark.control(control(normal=600))
    spark.round()
    assert len(spark.batches) == 2
    assert spark.figures.backlog
    assert spark.figures.interval_seconds == 60


def test_a_batch_that_took_everything_lets_the_next_one_come_after_the_normal_interval():
    spark = ScriptedSpark(a_stream(8000), control=control())
    spark.arrivals = lambda seconds: spark.sources["flights"].arrive(round(seconds * 100))
    spark.run_for(21)
    assert spark.planned_at == pytest.approx([0, 5, 10, 15, 20], abs=2 * BASE)


def test_a_source_that_could_not_tell_where_it_is_has_not_been_read_up_to_its_end():
    weather = a_stream(100, "weather")
    weather.reachable = False
    spark = ScriptedSpark(a_stream(100), weather, control=control(normal=600, during=600))
    spark.run_for(5)
    weather.reachable = True
    spark.run_for(3 * BASE)
    assert weather.pending == 0


def test_that_holds_even_if_the_backlog_is_left_before_the_batch_ends():
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(normal=5), 0)
    planner.admit("a", {"0": 0}, 0)
    planner.plan("a", {"a": {"0": 10}}, 0)
    planner.control(control(False, normal=5), 3)
    planner.batch_ended(BatchReport({"a": 10}, 4, 4))
    planner.admit("a", {"0": 10}, 5)
    assert planner.plan("a", {"a": {"0": 20}}, 5) == TakeUpTo({"0": 20})


def test_sources_take_turns_where_there_is_not_a_record_for_each():
    spark = ScriptedSpark(
        a_stream(), a_stream(100, name="weather"), control=control(batch=BatchControl(max_records=1))
    )
    spark.run_until(lambda: len(spark.batches) == 10)
    assert spark.sources["weather"].pending == 95


def test_leaving_a_backlog_pulls_the_next_batch_to_the_normal_interval():
    spark = ScriptedSpark(a_stream(), control=control(during=1800), records_per_second=1000)
    spark.run_until(lambda: len(spark.batches) == 1)
    spark.control(control(False, during=1800))
    left_at = spark.now
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.batches[1].planned_at - left_at <= 5 + BASE


def test_an_interval_of_a_backlog_that_is_not_set_is_the_normal_one():
    spark = ScriptedSpark(a_stream(), control=control(during=None))
    assert spark.figures.interval_seconds == 5
    spark.run_until(lambda: len(spark.batches) == 8)
    assert spark.batches[-1].seconds == pytest.approx(5, rel=0.2)


def test_without_any_interval_a_backlog_is_still_read_in_batches_of_the_target():
    spark = ScriptedSpark(a_stream(), control=QueryControl(backlog=True, batch=BATCH))
    spark.run_until(lambda: len(spark.batches) == 6)
    assert max(spark.sizes) < 1_000_000


def test_a_batch_whose_report_is_missing_does_not_make_a_backlog_wait():
    planner = AskedPlanner(QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(control(during=120), 0)
    for start in (0, 10_000, 20_000):
        assert planner.admit("a", {"0": start}, start / 1000) == Survey(("a",))
        assert planner.plan("a", {"a": {"0": 10**9}}, start / 1000) == TakeUpTo({"0": start + 10_000})
    assert planner.figures(20).sources[0].planned_records_total == 30_000


# One batch for the backlog


def test_an_interval_of_zero_reads_the_backlog_as_one_batch():
    spark = ScriptedSpark(a_stream(), a_stream(5000, "weather"), control=control(during=0))
    spark.run_until(lambda: bool(spark.batches))
    assert spark.sizes == [10_005_000]
    assert spark.figures.interval_seconds == 0


def test_its_ends_are_fixed_when_the_backlog_is_first_planned():
    stream = a_stream(2500)
    spark = ScriptedSpark(stream, control=control(during=0, batch=BatchControl(max_records=1000)))
    spark.arrivals = lambda _: stream.arrive(300)
    spark.run_until(lambda: len(spark.batches) == 4)
    first = 2500 + 300
    assert spark.sizes == [1000, 1000, first - 2000, 900]
    assert max(gaps(spark)) == pytest.approx(0)


def test_its_ends_hold_no_longer_than_the_backlog():
    stream = a_stream(5000)
    spark = ScriptedSpark(stream, control=control(during=0, batch=BatchControl(max_records=1000)))
    spark.round()
    spark.control(control(False, normal=0.2, during=0))
    stream.arrive(5000)
    spark.run_for(5)
    assert stream.pending == 0


def test_a_second_backlog_has_ends_of_its_own():
    stream = a_stream(1000)
    spark = ScriptedSpark(stream, control=control(during=0))
    spark.round()
    spark.control(control(False, during=0))
    spark.run_for(20)
    stream.arrive(5000)
    spark.control(control(during=0))
    spark.round()
    assert spark.sizes == [1000, 5000]


def in_files(files: int, *, most: int, **rest) -> ScriptedSpark:
    events = Uncounted("flights", ReadLimit.FILES, [10_000] * files)
    return ScriptedSpark(events, control=control(during=0, batch=BatchControl(max_records=most)), **rest)


def test_one_file_tells_how_many_make_up_the_one_batch():
    spark = in_files(400, most=10**8)
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.sizes == [10_000, 3_990_000]
    assert max(gaps(spark)) == pytest.approx(0)


def test_files_are_bounded_by_maximum_records_where_one_batch_was_asked_for():
    spark = in_files(36, most=100_000)
    spark.run_until(lambda: spark.sources["flights"].pending == 0)
    assert spark.sizes == [10_000, 100_000, 100_000, 100_000, 50_000]
    assert spark.figures.grant_records == 100_000


def in_files_of(records: list[int], *, most: int, size: Callable[[int], int]) -> list[int]:
    """The batches of a backlog of files, of which each has so many records."""
    events = Uncounted("flights", ReadLimit.FILES, records, size=size)
    spark = ScriptedSpark(events, control=control(during=0, batch=BatchControl(max_records=most)))
    spark.run_until(lambda: events.pending == 0)
    return spark.sizes


def of_text(records: int) -> int:
    return 100 * records


def of_columns(records: int) -> int:
    """Columns have a header, a footer and dictionaries, however few records there are."""
    return 5_000 + 20 * records


@pytest.mark.parametrize("size", [of_text, of_columns])
def test_a_first_file_that_is_much_smaller_than_the_others_lets_no_batch_exceed_maximum_records(size) -> None:
    assert max(in_files_of([10, *[50_000] * 40], most=170_000, size=size)) == 150_000
    assert max(in_files_of([10, *[100] * 9, *[50_000] * 40], most=170_000, size=size)) <= 170_000


def test_a_source_of_files_says_whether_its_last_batch_was_cut_in_files_or_in_bytes() -> None:
    events = Uncounted("flights", ReadLimit.FILES, [10_000] * 40, size=of_text)
    spark = ScriptedSpark(events, control=control(during=0, batch=BatchControl(max_records=100_000)))
    read_limits = [spark.source("flights").read_limit]

    def batch() -> None:
        before = len(spark.batches)
        spark.run_until(lambda: len(spark.batches) > before)
        read_limits.append(spark.source("flights").read_limit)

    for _ in range(3):
        batch()
    spark.control(control(False, during=0))
    events.arrive(10_000)
    batch()

    assert read_limits == [
        ReadLimit.FILES,
        ReadLimit.FILES,
        ReadLimit.BYTES,
        ReadLimit.BYTES,
        ReadLimit.FILES,
    ]


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=60), st.integers(1, 10**6))
def test_batches_of_files_with_records_of_one_size_keep_to_maximum_records_or_are_one_file(
    files: list[int], most: int
) -> None:
    for batch in in_files_of(list(files), most=most, size=of_text):
        assert batch <= max(most, *files)


@pytest.mark.parametrize("size", [of_text, of_columns])
def test_files_of_one_size_are_still_one_file_and_one_batch(size) -> None:
    assert in_files_of([100_000] * 40, most=10**8, size=size) == [100_000, 3_900_000]


def test_files_are_bounded_by_what_memory_has_shown_from_the_first_batch_of_a_run_on():
    spark = in_files(9, most=10**8, bound=MemoryBound(halved_to=40_000))
    spark.run_until(lambda: spark.sources["flights"].pending == 0)
    assert spark.sizes == [10_000, 40_000, 40_000]


def test_one_batch_of_files_teaches_what_it_took():
    spark = in_files(400, most=10**8)
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.figures.throughput_records_per_second == pytest.approx(50_000, rel=0.1)


def test_a_source_that_cannot_be_cut_is_read_whole_and_nobody_knows_how_much_that_is():
    events = Uncounted("flights", ReadLimit.GATE, [1000] * 40)
    spark = ScriptedSpark(events, control=control(during=0, batch=BatchControl(max_records=5000)))
    spark.run_until(lambda: bool(spark.batches))
    assert spark.sizes == [40_000]
    assert spark.figures.grant_records is None


def test_nor_how_much_a_batch_has_beside_one_that_can_be():
    clicks = Uncounted("clicks", ReadLimit.GATE, [1000] * 40)
    spark = ScriptedSpark(a_stream(5000), clicks, control=control(during=0))
    spark.run_until(lambda: bool(spark.batches))
    assert spark.figures.grant_records is None


def test_rows_are_bounded_by_maximum_records_alone_where_one_batch_was_asked_for():
    events = Uncounted("flights", ReadLimit.ROWS, [10**6])
    spark = ScriptedSpark(events, control=control(during=0, batch=BatchControl(max_records=600_000)))
    spark.run_until(lambda: events.pending == 0)
    assert spark.sizes == [600_000, 400_000]


# Rate limits


def limited(rate: float, during: float | None, *, backlog: bool = True, interval: float = 60) -> QueryControl:
    limits = SourceControl(
        rate_limit=RateControl(records_per_second=rate),
        rate_limit_during_backlog=None if during is None else RateControl(records_per_second=during),
    )
    return control(backlog, during=interval, sources={"flights": limits})


def test_the_limit_of_the_backlog_is_in_force_with_the_verdict():
    spark = ScriptedSpark(a_stream(), control=limited(100, None))
    spark.run_for(20)
    assert max(spark.sizes) > 10_000
    spark.control(limited(100, None, backlog=False))
    assert spark.source("flights").rate_limit_records_per_second == 100
    done = len(spark.batches)
    spark.run_for(20)
    assert max(spark.sizes[done:]) <= 500


def test_a_batch_that_its_rate_limit_cut_waits_for_a_full_bucket():
    spark = ScriptedSpark(a_stream(), control=limited(100, 100))
    spark.run_for(300)
    assert set(spark.sizes[2:-1]) <= set(range(990, 1001))
    processed, seconds = sum(spark.sizes), spark.now - spark.began
    assert processed == pytest.approx(100 * seconds + 1000, rel=0.02)


def test_at_the_latest_it_waits_until_due():
    spark = ScriptedSpark(a_stream(), control=limited(100, 100, interval=6))
    spark.control(
        control(
            during=6,
            sources={"flights": SourceControl(rate_limit_during_backlog=RateControl(records_per_second=100))},
        )
    )
    spark.run_for(60)
    assert max(b - a for a, b in zip(spark.planned_at, spark.planned_at[1:], strict=False)) <= 6 + 2 * BASE


def test_lifting_the_limit_ends_the_wait():
    spark = ScriptedSpark(a_stream(), control=limited(100, 100))
    spark.run_for(15)
    spark.control(limited(100, None))
    done = len(spark.batches)
    spark.round()
    assert len(spark.batches) == done + 1


def capped(records: int, rate: float | None = None) -> QueryControl:
    limit = RateControl(records_per_checkpoint=records, records_per_second=rate)
    return control(during=10, sources={"flights": SourceControl(rate_limit_during_backlog=limit)})


@pytest.mark.parametrize("rate", [None, 1000.0])
def test_a_batch_that_its_limit_per_checkpoint_cut_goes_on_when_it_is_due(rate):
    spark = ScriptedSpark(a_stream(), control=capped(500, rate))
    spark.run_for(61)
    assert spark.sizes == [500] * 7
    assert spark.planned_at == pytest.approx([0, 10, 20, 30, 40, 50, 60], abs=2 * BASE)


def test_where_the_bucket_holds_less_than_a_checkpoint_may_have_the_bucket_is_waited_for():
    limit = RateControl(records_per_checkpoint=500, records_per_second=100, max_burst_seconds=2)
    sources = {"flights": SourceControl(rate_limit_during_backlog=limit)}
    spark = ScriptedSpark(a_stream(), control=control(during=10, sources=sources))
    spark.run_for(60)
    assert sum(spark.sizes) == pytest.approx(60 * 100, rel=0.1)


@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES])
def test_a_limit_per_checkpoint_also_paces_sources_that_cannot_be_counted(read_limit):
    events = Uncounted("flights", read_limit, [500] * 1000)
    spark = ScriptedSpark(events, control=capped(500))
    spark.run_for(61)
    assert spark.planned_at == pytest.approx([0, 10, 20, 30, 40, 50, 60], abs=0.5)


def test_records_that_arrive_while_a_batch_takes_everything_wait_for_the_normal_interval():
    stream = a_stream(50_000)
    grant = BatchControl(initial_records=10**6)
    spark = ScriptedSpark(stream, control=control(normal=20, during=600, batch=grant), fixed_seconds=3)
    spark.round()
    stream.arrive(1000)
    spark.run_for(30)
    assert spark.planned_at == pytest.approx([0, 20], abs=2 * BASE)


def test_a_source_that_its_rate_limit_cut_does_not_slow_the_other_down():
    sources = {"flights": SourceControl(rate_limit_during_backlog=RateControl(records_per_second=10))}
    spark = ScriptedSpark(a_stream(), a_stream(name="weather"), control=control(sources=sources))
    spark.run_until(lambda: len(spark.batches) == 6)
    assert max(gaps(spark)) == pytest.approx(0)


# Sources that cannot be counted


def test_a_source_of_files_is_read_without_waiting_until_it_has_nothing():
    events = Uncounted("flights", ReadLimit.FILES, [10_000] * 100)
    spark = ScriptedSpark(events, control=control())
    spark.run_until(lambda: events.pending == 0)
    assert max(gaps(spark)) == pytest.approx(0)


def test_a_source_of_rows_that_brings_less_than_it_may_has_been_read_up_to_its_end():
    events = Uncounted("flights", ReadLimit.ROWS, [5000])
    spark = ScriptedSpark(events, control=control())
    spark.arrivals = lambda seconds: events.arrive(round(seconds * 10))
    spark.run_for(11)
    assert spark.planned_at == pytest.approx([0, 5, 10], abs=0.5)
