"""What a run goes by before it has shown anything: the largest batch that earlier ones have kept."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl
from headgate_contract.codec import decode, encode
from headgate_spark.engine.batch_memory import BatchMemory
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.run_memory import RunMemory
from headgate_spark.engine.task_memory import MemorySettings
from headgate_spark.planner.memory import MemoryBound
from headgate_spark.planner.pace import OLDEST_SECONDS, RENEWED_SECONDS, Pace
from headgate_spark.planner.sizing import BatchSizer, Grant
from headgate_spark.planner.throughput import Sample
from support.engine import MadeUpCheckpoint
from support.scripted_spark import ScriptedSpark, Stream

BATCH = BatchControl(target_seconds=10, initial_records=1000, max_growth=4, max_records=1_000_000)
KEPT = Pace(records=100_000, seconds=10.0, at=0.0)
SMALL = MemorySettings(heap_bytes=2**30)


def first(pace: Pace | None, target: float, memory: MemoryBound | None = None) -> int:
    return BatchSizer(memory, pace).grant(target, BATCH).records


def second(pace: Pace | None, target: float, records: int, took: float) -> int:
    """The grant after a first batch of so many records, which took so many seconds."""
    sizer = BatchSizer(pace=pace)
    sizer.ended(Grant(records, target), records, took, cut=True)
    return sizer.grant(target, BATCH).records


@pytest.mark.parametrize(
    ("pace", "target", "memory", "records"),
    [
        (None, 10, None, 1000),
        (KEPT, 10, None, 50_000),
        (KEPT, 1, None, 5_000),
        (KEPT, 0.1, None, 1000),
        (KEPT, 1000, None, 400_000),
        (Pace(records=900_000, seconds=1.0, at=0.0), 1000, None, 1_000_000),
        (KEPT, 10, MemoryBound(grown_to=7000), 7000),
        (Pace(records=10, seconds=3.0, at=0.0), 1, None, 1000),
    ],
    ids=["nothing", "half", "shorter", "slow", "growth", "maxRecords", "memory", "less than initialRecords"],
)
def test_the_first_grant_is_half_of_what_was_shown(pace, target, memory, records):
    assert first(pace, target, memory) == records


def test_a_first_batch_tells_that_records_have_become_dearer():
    assert second(KEPT, 10, 50_000, took=10.0) <= 75_000
    assert second(KEPT, 10, 50_000, took=25.0) <= 25_000


def test_a_small_first_batch_is_followed_by_half_of_what_was_shown():
    assert second(KEPT, 10, 1000, took=1e-6) == 50_000
    assert second(KEPT, 10, 1000, took=10.0) <= 1500


def test_a_backlog_that_is_found_after_a_first_batch_is_read_as_was_shown():
    sizer = BatchSizer(pace=KEPT)
    sizer.ended(Grant(5000, 1.0), 5000, 1.0, cut=True)
    assert sizer.grant(60, BATCH).records == pytest.approx(300_000)


def test_what_this_run_has_shown_counts_for_more():
    sizer = BatchSizer(pace=KEPT)
    sizer.ended(Grant(50_000, 10.0), 50_000, 40.0, cut=True)
    assert sizer.grant(10, BATCH).records <= 12_500


@given(
    records=st.integers(1, 10**9),
    seconds=st.floats(0.001, 10_000),
    target=st.floats(0.1, 600),
    bound=st.none() | st.integers(1, 10**9),
)
def test_what_was_kept_only_raises_a_grant_and_never_above_a_bound(records, seconds, target, bound):
    memory = MemoryBound(grown_to=bound)
    granted = first(Pace(records=records, seconds=seconds, at=0.0), target, memory)
    assert granted >= first(None, target, memory)
    assert granted <= min(BATCH.max_records, bound or BATCH.max_records)
    assert granted <= max(BATCH.initial_records, BATCH.max_growth * records)


@pytest.mark.parametrize(
    ("batch", "later", "is_kept"),
    [
        (Sample(120_000, 12.0), 60, False),
        (Sample(125_000, 12.5), 60, True),
        (Sample(60_000, 6.0), 60, False),
        (Sample(60_000, 12.5), 60, True),
        (Sample(60_000, 2.9), 60, True),
        (Sample(40_000, 19.0), 60, False),
        (Sample(40_000, 20.0), 60, True),
        (Sample(10, 20.0), 60, True),
        (Sample(60_000, 6.0), RENEWED_SECONDS, True),
        (Sample(40_000, 4.0), RENEWED_SECONDS, False),
        (Sample(10, 1.0), OLDEST_SECONDS, True),
    ],
)
def test_the_largest_batch_is_kept_until_it_is_old(batch, later, is_kept):
    assert (KEPT.after(batch, later, is_first=False) != KEPT) is is_kept


@pytest.mark.parametrize(
    ("batch", "is_kept"),
    [
        (Sample(10, 1000.0), False),
        (Sample(100_000, 1000.0), False),
        (Sample(60_000, 2.9), True),
        (Sample(125_000, 1000.0), True),
    ],
)
def test_that_the_first_batch_of_a_run_was_slow_refutes_nothing(batch, is_kept):
    assert (KEPT.after(batch, 60, is_first=True) != KEPT) is is_kept


@pytest.mark.parametrize(
    ("records", "target", "large"),
    [
        (4000, 10.0, Sample(4000, 1.0)),
        (2000, 10.0, Sample(2000, 1.0)),
        (1500, 10.0, Sample(1500, 1.0)),
        (1000, 10.0, None),
        (4000, None, None),
    ],
    ids=["full", "half", "the rest, larger than before", "a rest like any other", "no target"],
)
def test_a_batch_that_is_full_or_larger_than_those_before_tells_of_large_ones(records, target, large):
    sizer = BatchSizer()
    sizer.ended(Grant(1000, 10.0), 1000, 1.0, cut=True)
    sizer.large_batch = None
    sizer.ended(Grant(4000, target), records, 1.0, cut=False)
    assert sizer.large_batch == large


def test_a_trickle_tells_nothing_of_large_batches():
    sizer = BatchSizer()
    sizer.ended(Grant(1000, 10.0), 5, 1.0, cut=False)
    assert sizer.large_batch is None


@pytest.mark.parametrize(("now", "pace"), [(5.0, KEPT), (OLDEST_SECONDS, None), (-1.0, None)])
def test_what_is_old_or_from_the_future_tells_nothing(now, pace):
    assert BatchMemory(pace=KEPT).pace_at(now) == pace


def test_it_outlives_a_run_under_the_same_settings_and_no_others():
    kept = BatchMemory().paced(Sample(100_000, 10.0), 0.0, SMALL, is_first=True)
    again = decode(BatchMemory, encode(kept))
    assert again.pace == KEPT
    assert again.under(SMALL).pace == KEPT
    assert again.under(MemorySettings(heap_bytes=2**31)).pace is None
    assert kept.paced(None, 1.0, SMALL, is_first=False) == kept
    assert kept.paced(Sample(90_000, 9.0), 1.0, SMALL, is_first=False) == kept
    assert decode(BatchMemory, {"repeated": 1}).pace is None


def a_run(backlog: bool, pace: Pace | None) -> ScriptedSpark:
    control = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=60,
        backlog=backlog,
        batch=BatchControl(initial_records=10_000),
    )
    return ScriptedSpark(Stream("flights", {"0": 4_000_000}), control=control, pace=pace)


def test_a_driver_that_comes_back_reads_a_backlog_in_a_few_batches():
    first = a_run(True, None)
    first.run_until(lambda: first.sources["flights"].pending == 0)
    assert first.sizes[:4] == [10_000, 40_000, 160_000, 640_000]
    largest, seconds = max(zip(first.sizes, (batch.seconds for batch in first.batches), strict=True))
    again = a_run(True, Pace(records=largest, seconds=seconds, at=0.0))
    again.run_until(lambda: again.sources["flights"].pending == 0)
    assert again.sizes[0] == pytest.approx(50_000 * 60 / 2, rel=0.1)
    assert len(again.sizes) <= 2


def test_what_a_run_kept_is_what_the_next_one_begins_with():
    checkpoint, state = MadeUpCheckpoint(), None
    checkpoint.left = Resumption(batch=0)
    for records in (1000, 9000, 8000, 3):
        state = CheckpointState("orders", checkpoint)
        state.resume(SMALL, with_topics=False)
        run = RunMemory("orders", state)
        run.settings = SMALL
        spark = a_run(True, None)
        run.batch_ended(spark.planner, 1, records, Sample(records, 1.0))
        run.batch_ended(spark.planner, 2, records, None)
    state.resume(SMALL, with_topics=False)
    kept = state.memory.pace_at(time.time())
    assert (kept.records, kept.seconds) == (9000, 1.0)
    assert len(checkpoint.batches.values) == 2
    checkpoint.left = Resumption()  # was deleted, and the folder beside it was not
    state.resume(SMALL, with_topics=False)
    assert state.memory.pace_at(time.time()) is None


@pytest.mark.parametrize(
    ("seconds", "kept"), [([10.0], (9000, 1.0)), ([1.0, 10.0], (1000, 10.0))], ids=["first", "later"]
)
def test_the_first_batch_of_a_run_does_not_refute_what_the_last_run_has_kept(seconds, kept):
    checkpoint = MadeUpCheckpoint()
    checkpoint.left = Resumption(batch=0)
    state = CheckpointState("orders", checkpoint)
    state.resume(SMALL, with_topics=False)
    state.remember(BatchMemory(settings=SMALL).paced(Sample(9000, 1.0), time.time(), SMALL, is_first=False))
    run = RunMemory("orders", state)
    run.settings = SMALL
    for took in seconds:
        run.batch_ended(a_run(True, None).planner, 1, 1000, Sample(1000, took))
    pace = state.memory.pace_at(time.time())
    assert (pace.records, pace.seconds) == kept
