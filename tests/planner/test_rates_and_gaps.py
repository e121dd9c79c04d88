"""A rate limit counts records where Spark has told how many there were, and offsets where it has not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import QueryControl, RateControl, SourceControl
from headgate_spark.planner.model import ReadLimit, Trigger, TriggerKind
from support.examples import examples
from support.planning_laws import RateLaw
from support.scripted_spark import ScriptedSpark, Stream, Uncounted

RATE = 1000
LIMIT = SourceControl(
    rate_limit=RateControl(records_per_second=RATE),
    rate_limit_during_backlog=RateControl(records_per_second=RATE),
)


def limited(topic: Stream, *others: Stream | Uncounted, **rest: object) -> ScriptedSpark:
    control = QueryControl(interval_seconds=5, sources={topic.name: LIMIT}, backlog=True)
    return ScriptedSpark(topic, *others, control=control, **rest)  # type: ignore[arg-type]


def test_a_gap_that_others_bring_records_beside_is_passed_by_a_bucket_a_batch() -> None:
    topic, other = Stream("users", {"0": 10**8}, density=0.0), Stream("orders", {"0": 0})
    spark = limited(topic, other)
    spark.arrivals = lambda seconds: other.arrive(round(1000 * seconds))
    spark.run_for(300)
    assert topic.start["0"] > 10 * 300 * RATE


@pytest.mark.parametrize("density", [0.5, 0.1, 0.01])
def test_a_compacted_topic_is_read_at_the_rate_of_its_records(density: float) -> None:
    topic = Stream("users", {"0": 10_000_000}, density=density)
    spark = limited(topic)
    spark.run_for(300)
    read = sum(spark.sizes)
    assert read > min(0.9 * 300 * RATE, 10 * density * 300 * RATE)
    assert read <= 300 * RATE + 5 * RATE + 1


@pytest.mark.parametrize("ends", [False, True])
def test_where_spark_has_told_of_no_record_at_all_offsets_count(ends: bool) -> None:
    """It tells none either where it could not find its sources in the plan."""
    topic = Stream("users", {"0": 100_000}, density=0.0)
    spark = limited(topic, trigger=Trigger(TriggerKind.AVAILABLE_NOW) if ends else None)
    spark.run_until(lambda: topic.pending == 0)
    assert spark.now - spark.began >= (100_000 - 5 * RATE) / RATE - 1


def test_nor_beside_a_source_that_it_may_not_tell_apart() -> None:
    topic = Stream("users", {"0": 100_000}, density=0.0)
    spark = limited(topic, Uncounted("files", ReadLimit.FILES, [10] * 10_000))
    spark.run_until(lambda: topic.pending == 0)
    assert spark.now - spark.began >= (100_000 - 5 * RATE) / RATE - 1


@settings(max_examples=examples(40))
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 8)), min_size=1, max_size=12),
    st.sampled_from([0.5, 5, 30]),
    st.booleans(),
)
def test_no_window_has_more_records_than_its_rate_and_a_burst_whatever_the_density(
    parts: list[tuple[float, float]], interval: float, backlog: bool
) -> None:
    """The density changes when some time has passed, in the midst of a batch as well."""
    topic, other = Stream("users", {"0": 10**9}), Stream("orders", {"0": 10**9})
    control = QueryControl(interval_seconds=interval, sources={"users": LIMIT}, backlog=backlog)
    spark, law = ScriptedSpark(topic, other, control=control, fixed_seconds=0.3), RateLaw()
    for density, seconds in parts:
        topic.density = density
        until = spark.now + seconds
        while spark.now < until:
            batches, now = len(spark.batches), spark.now
            spark.round()
            read = spark.batches[-1].records.get("users", 0) if len(spark.batches) > batches else 0
            law.check(RATE, RATE * min(max(interval, 1), 10), read, now)
