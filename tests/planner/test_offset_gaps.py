"""Offsets without a record: compaction leaves them, and transactions do."""

from dataclasses import dataclass

import pytest

from headgate_contract import BatchControl, QueryControl
from headgate_spark.planner.memory import MemoryUse
from headgate_spark.planner.sizing import BatchSizer, Grant
from support.scripted_spark import ScriptedSpark, Stream

RECORDS_PER_SECOND = 50_000


@dataclass
class HalfCompacted(Stream):
    """A topic of one partition whose log is compacted up to an offset, and has all its records behind that."""

    dense_from: int = 0
    left: float = 0.0
    """Part of the offsets before it that have a record."""

    def read(self, answer: object) -> int:
        before = self.start["0"]
        count = super().read(answer)
        dense = max(0, self.start["0"] - max(before, self.dense_from))
        return dense + int((count - dense) * self.left)


def catching_up(stream: Stream, during: float, fixed: float, **rest) -> ScriptedSpark:
    query = QueryControl(
        interval_seconds=min(during, 1.0),
        interval_during_backlog_seconds=during,
        backlog=True,
        batch=BatchControl(**rest),
    )
    return ScriptedSpark(
        stream, control=query, fixed_seconds=fixed, records_per_second=float(RECORDS_PER_SECOND)
    )


@pytest.mark.parametrize("density", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize(("during", "fixed"), [(0.5, 0.2), (1, 0.3), (10, 0.3), (60, 0.5), (120, 1.0)])
def test_a_compacted_topic_is_read_much_faster_than_one_that_has_all_its_records(
    density: float, during: float, fixed: float
) -> None:
    topic = Stream("users", {"0": 2_000_000_000}, density=density)
    spark = catching_up(topic, during, fixed)
    spark.run_for(600)
    of_records = RECORDS_PER_SECOND * (during - fixed) / during
    assert topic.start["0"] / (spark.now - spark.began) > min(0.8 / density, 9) * of_records
    assert max(batch.seconds for batch in spark.batches[1:]) < 1.1 * during + fixed


@pytest.mark.parametrize("left", [0.1, 0.01, 0.001, 0.0])
@pytest.mark.parametrize("during", [10, 60, 120])
def test_where_each_offset_has_a_record_again_no_batch_takes_more_than_twice_its_target(
    left: float, during: float
) -> None:
    topic = HalfCompacted("users", {"0": 140_000_000}, dense_from=40_000_000, left=left)
    spark = catching_up(topic, during, 0.5)
    spark.run_until(lambda: topic.pending == 0, within=7200)
    assert max(batch.seconds for batch in spark.batches) < 2.1 * during
    late = spark.batches[len(spark.batches) // 2 :]
    assert sum(batch.seconds > 1.2 * during for batch in late) <= 2, "it is known by then what a record costs"


def test_before_the_first_record_batches_go_over_more_than_a_first_one_may() -> None:
    topic = HalfCompacted("users", {"0": 100_000_000}, dense_from=99_999_000)
    spark = catching_up(topic, 60, 0.5)
    spark.run_until(lambda: topic.pending == 0)
    assert len(spark.batches) < 260
    assert spark.batches[-1].total == 1000


def test_a_query_that_is_live_keeps_up_with_a_topic_of_small_transactions() -> None:
    topic = Stream("users", {str(n): 0 for n in range(4)}, density=0.3)
    spark = ScriptedSpark(topic, control=QueryControl(interval_seconds=0.5), fixed_seconds=0.3)
    spark.arrivals = lambda seconds: topic.arrive(round(50_000 * seconds))
    spark.run_for(300)
    topic.arrive(5_000_000)
    spark.run_for(300)
    assert topic.pending < 100_000


def test_throughput_is_of_records() -> None:
    topic = Stream("users", {"0": 500_000_000}, density=0.1)
    spark = catching_up(topic, 60, 0.5)
    spark.run_for(120)
    assert spark.figures.throughput_records_per_second == pytest.approx(RECORDS_PER_SECOND, rel=0.1)


def test_memory_bounds_what_a_batch_goes_over() -> None:
    sizer = BatchSizer()
    sizer.ended(Grant(100_000, 10), 10_000, 1.0, cut=True, batch_id=1, offsets=100_000)
    sizer.took_memory(1, MemoryUse(spilled_bytes=1, working_bytes=100))
    assert sizer.memory.records == 100_000


def test_what_is_kept_for_the_next_run_is_of_records() -> None:
    sizer = BatchSizer()
    sizer.ended(Grant(100_000, 10), 10_000, 1.0, cut=True, offsets=100_000)
    assert sizer.large_batch is not None
    assert sizer.large_batch.records == 10_000
