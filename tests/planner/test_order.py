"""Whatever the order in which Spark asks the sources of a query, it is planned as one."""

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.event_times import EventTimesUnknownError, Partition
from headgate_spark.planner.model import (
    BatchReport,
    Hold,
    ReadLimit,
    Source,
    Survey,
    TakeUpTo,
    Trigger,
    TriggerKind,
)
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.state import QueryState
from support.aligned_spark import Driver, backlog, member
from support.event_logs import FakeEventTimes, event_time
from support.examples import examples
from support.scripted_spark import ScriptedSpark, Stream, Uncounted

MOST = 12


@st.composite
def orders(draw: st.DrawFn, least: int = 1) -> list[str]:
    """Draw how many sources there are, and in which order Spark asks them."""
    names = [f"s{i}" for i in range(draw(st.integers(least, MOST)))]
    return draw(st.permutations(names))


def query(order: list[str], control: QueryControl, *, records: int, **kwargs: object) -> ScriptedSpark:
    """Return a query whose sources were opened in the order of their names."""
    streams = [Stream(name, {"0": records}) for name in sorted(order)]
    return ScriptedSpark(*streams, control=control, order=order, **kwargs)  # type: ignore[arg-type]


@given(orders())
def test_each_batch_reads_every_source(order: list[str]):
    spark = query(
        order,
        QueryControl(interval_seconds=5, batch=BatchControl(initial_records=10_000, max_records=10_000)),
        records=100_000,
    )
    spark.run_for(30)
    assert len(spark.batches) >= 5
    assert all(batch.records.keys() == set(order) for batch in spark.batches)
    gaps = [after - before for before, after in zip(spark.planned_at, spark.planned_at[1:], strict=False)]
    assert all(gap == pytest.approx(5, abs=0.15) for gap in gaps)
    assert spark.figures.data_batches == len(spark.batches)


@settings(max_examples=examples(30))
@given(
    orders(least=2),
    st.sampled_from([ReadLimit.OFFSETS, ReadLimit.FILES]),
    st.floats(0.3, 100),
    st.floats(0.1, 1),
)
def test_a_batch_has_a_record_for_each_source_however_slow_the_first_one_was(
    order: list[str], read_limit: ReadLimit, cold: float, warm: float
):
    files = [Uncounted(name, read_limit, [10] * 20) for name in sorted(order)]
    streams = [Stream(name, {"0": 200}) for name in sorted(order)]
    control = QueryControl(interval_seconds=0.1, batch=BatchControl(initial_records=10 * len(order)))
    spark = ScriptedSpark(
        *(files if read_limit is ReadLimit.FILES else streams),
        control=control,
        order=order,
        fixed_seconds=cold,
    )
    spark.run_until(lambda: bool(spark.batches))
    spark.fixed_seconds = warm
    for _ in range(5):
        waiting = {name for name, source in spark.sources.items() if source.pending}
        before = len(spark.batches)
        spark.run_until(lambda n=before, left=bool(waiting): len(spark.batches) > n or not left)
        assert all(batch.records.keys() >= waiting for batch in spark.batches[before:])


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("had", [0, 3])
@pytest.mark.parametrize("interval", [0.5, 1, 2.5])
def test_turns_do_not_fall_on_the_looks_of_sources_that_have_nothing(place: int, had: int, interval: float):
    kinds = (ReadLimit.GATE, ReadLimit.ROWS, ReadLimit.FILES)
    sources = [Uncounted(kind.value, kind, [1] * had) for kind in kinds]
    stream = Stream("orders", {"0": 10**6})
    control = QueryControl(interval_seconds=interval, batch=BatchControl(initial_records=1, max_records=1))
    spark = ScriptedSpark(*sources[:place], stream, *sources[place:], control=control)
    spark.run_for(60 * interval)
    assert stream.start["0"] >= 15


@pytest.mark.parametrize("most", [1, 3])
def test_every_partition_has_its_turn_in_a_query_that_is_restarted_after_each_batch(most: int):
    stream = Stream("orders", dict.fromkeys("01234567", 100))
    control = QueryControl(batch=BatchControl(initial_records=most, max_records=most))
    for _ in range(8):
        spark = ScriptedSpark(stream, control=control, resumed={"orders": dict(stream.start)})
        spark.run_until(lambda told=spark: bool(told.batches))
    assert all(stream.start.values())


@settings(max_examples=examples(30))
@given(orders(least=2), st.data(), st.integers(1, 3))
def test_every_source_has_its_turn_in_a_query_that_is_restarted_after_a_few_batches(
    order: list[str], data: st.DataObject, batches: int
):
    most = data.draw(st.integers(1, len(order) - 1), label="records of a batch")
    files = data.draw(st.sets(st.sampled_from(order)), label="sources of files")
    empty = 0 if files else data.draw(st.integers(0, 2), label="batches without data for each with some")
    sources = {name: Stream(name, {"0": 100}) for name in sorted({*order} - files)}
    sources |= {name: Uncounted(name, ReadLimit.FILES, [1] * 100) for name in sorted(files)}
    control = QueryControl(batch=BatchControl(initial_records=most, max_records=most))
    for ran in range(0, len(order), batches):
        resumed = {name: dict(s.start) for name, s in sources.items() if isinstance(s, Stream)}
        spark = ScriptedSpark(
            *sources.values(),
            control=control,
            order=order,
            resumed=resumed,
            last_batch=ran * (1 + empty) - 1 if ran else None,
        )
        spark.run_until(lambda told=spark: len(told.batches) == batches)
    assert all(source.pending < 100 for source in sources.values())


@pytest.mark.parametrize(("ahead", "most"), [(1, 1), (3, 1), (4, 4)])
def test_members_that_wait_for_another_keep_no_turn_from_the_others(ahead: int, most: int):
    late = {f"ahead-{n}": {"0": list(range(10**6, 10**6 + 100))} for n in range(ahead)}
    control = QueryControl(
        interval_seconds=1,
        batch=BatchControl(initial_records=most, max_records=most),
        sources={name: member(1.0, idle_after=3600) for name in (*late, "behind")},
    )
    run = Driver().query("q", control, **late, behind={"0": list(range(10_000))}, other={"0": [5] * 1000})
    run.spark.run_for(30)
    assert min(run.ends[name]["0"] for name in ("behind", "other")) >= 14


class SilentEventTimes(FakeEventTimes):
    """Of a source whose broker does not answer."""

    def expect(self, ends: Mapping[Partition, int]) -> None:
        super().expect({partition: end for partition, end in ends.items() if partition.source != "silent"})

    def _ask(self, partitions: Collection[Partition]) -> None:
        if any(partition.source == "silent" for partition in partitions):
            raise EventTimesUnknownError("source silent: its broker does not answer")


@pytest.mark.parametrize("order", [("silent", "other"), ("other", "silent")])
def test_a_group_that_cannot_move_keeps_no_turn_from_another(order: tuple[str, str]):
    control = QueryControl(
        interval_seconds=1,
        batch=BatchControl(initial_records=1, max_records=1),
        sources={name: member(1.0, group=name) for name in order},
    )
    run = Driver(SilentEventTimes).query("q", control, **{name: {"0": list(range(1000))} for name in order})
    run.spark.run_for(30)
    assert run.ends["silent"]["0"] == 0
    assert run.ends["other"]["0"] >= 14


@given(orders())
def test_an_interval_of_zero_reads_a_backlog_as_one_batch(order: list[str]):
    control = QueryControl(interval_seconds=5, interval_during_backlog_seconds=0, backlog=True)
    spark = query(order, control, records=1000)
    spark.run_for(30)
    assert spark.sizes == [1000 * len(order)]


@given(orders(), st.sampled_from([3, 50, 1000]))
def test_each_source_has_its_rate(order: list[str], rate: int):
    limits = {name: SourceControl(rate_limit=RateControl(records_per_second=rate)) for name in order}
    spark = query(order, QueryControl(interval_seconds=1, sources=limits), records=10**6)
    spark.run_for(60)
    for source in spark.figures.sources:
        assert source.planned_records_total == source.processed_records_total
        assert 57 * rate <= source.planned_records_total <= 61.2 * rate + 2


@given(orders())
def test_a_query_with_nothing_to_read_is_left_alone(order: list[str]):
    spark = query(order, QueryControl(interval_seconds=1), records=10)
    spark.run_for(10)
    asked = spark.asked
    spark.run_for(60)
    assert spark.asked - asked <= 70 * len(order)


@given(orders(), st.booleans())
def test_a_run_that_ends_by_itself_reads_everything(order: list[str], limited: bool):
    limit = RateControl(records_per_second=400) if limited else None
    control = QueryControl(
        batch=BatchControl(initial_records=300, max_records=1000),
        sources={name: SourceControl(rate_limit=limit) for name in order},
    )
    spark = query(order, control, records=1000, trigger=Trigger(TriggerKind.AVAILABLE_NOW), leases=False)
    spark.run_for(1000)
    assert spark.ended == "idle"
    assert {name: source.pending for name, source in spark.sources.items()} == dict.fromkeys(order, 0)


@settings(max_examples=examples(30))
@given(orders(least=2), st.data(), st.sampled_from([100, 1000]), st.booleans())
def test_no_member_of_a_group_goes_past_its_limit(
    order: list[str], data: st.DataObject, grant: int, ends_by_itself: bool
):
    steps = {name: data.draw(st.sampled_from([10, 100, 700]), label=name) for name in order}
    logs = {name: {"0": list(range(0, 60_000, steps[name]))} for name in sorted(order)}
    driver = Driver()
    members = {name: member(1.0, idle_after=3600) for name in logs}
    trigger = Trigger(TriggerKind.AVAILABLE_NOW) if ends_by_itself else Trigger()
    run = driver.query("q", backlog(grant, **members), trigger, **logs)
    run.spark.order = order
    while run.spark.ended is None and run.spark.now < 1300 and (ends_by_itself or not run.is_through):
        before = run.ends
        run.spark.round()
        reached = run.latest_since(before)
        floor = min(event_time(log["0"], run.ends[name]["0"]) for name, log in logs.items())
        assert reached is None or reached <= floor + 1000
    assert run.is_through


def answered(planner: QueryPlanner, name: str, start: int, now: float = 0.0):
    answer = planner.admit(name, {"0": start}, now)
    if isinstance(answer, Survey):
        answer = planner.plan(name, {key: {"0": 1000} for key in answer.sources}, now)
    return answer


@pytest.fixture
def two() -> QueryPlanner:
    """Two sources that were looked at, with a hundred records a second each."""
    planner = QueryPlanner(
        QueryState("q", Trigger(), [Source("a", ReadLimit.OFFSETS), Source("b", ReadLimit.OFFSETS)], now=0.0)
    )
    limit = SourceControl(rate_limit=RateControl(records_per_second=100))
    planner.control(QueryControl(interval_seconds=1, sources={"a": limit, "b": limit}), 0.0)
    for name in "ab":
        assert isinstance(answered(planner, name, 0), Hold)
    planner.trigger_begins((), 0.0)
    return planner


def total(planner: QueryPlanner) -> dict[str, int]:
    return {source.name: source.planned_records_total for source in planner.figures(0.0).sources}


def test_of_an_answer_that_came_too_late_nothing_is_booked(two: QueryPlanner):
    for name in "ab":
        assert answered(two, name, 0) == TakeUpTo({"0": 100})
    assert total(two) == {"a": 100, "b": 100}
    two.trigger_begins({"b"}, 0.3)
    two.batch_ended(BatchReport({"a": 0, "b": 100}, 0.3, 0.3))
    assert total(two) == {"a": 0, "b": 100}
    two.trigger_begins((), 1.0)
    assert answered(two, "a", 0, 1.0) == TakeUpTo({"0": 100})
    assert answered(two, "b", 100, 1.0) == TakeUpTo({"0": 200})


def test_it_is_planned_again_at_once_where_no_batch_came_of_it(two: QueryPlanner):
    answered(two, "a", 0)
    two.trigger_begins((), 0.1)
    assert answered(two, "b", 0, 0.1) == TakeUpTo({"0": 100})
    assert answered(two, "a", 0, 0.1) == TakeUpTo({"0": 100})


def test_nobody_goes_ahead_of_a_source_whose_answer_was_lost_in_the_same_trigger(two: QueryPlanner):
    answered(two, "a", 0)
    two.trigger_goes_on({"b"}, 0.0)
    assert isinstance(answered(two, "b", 0), Hold)
    assert total(two) == {"a": 0, "b": 0}
    two.trigger_begins((), 0.1)
    assert {name: answered(two, name, 0, 0.1) for name in "ba"} == dict.fromkeys("ba", TakeUpTo({"0": 100}))


def test_a_source_that_is_elsewhere_than_its_checkpoint_said_is_planned_where_it_is():
    """It was planned with the first one, before Spark has said where it is."""
    sources = [Source(name, ReadLimit.OFFSETS) for name in "ab"]
    resumed = {"a": {"0": 0}, "b": {"0": 900}}
    planner = QueryPlanner(
        QueryState("q", Trigger(TriggerKind.AVAILABLE_NOW), sources, now=0.0, resumed=resumed)
    )
    planner.control(QueryControl(), 0.0)
    planner.trigger_begins((), 0.0)
    assert answered(planner, "a", 0) == TakeUpTo({"0": 1000})
    assert answered(planner, "b", 500) == TakeUpTo({"0": 1000})
