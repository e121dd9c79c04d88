"""What the memory of batches says of the size of the next ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl
from headgate_spark.planner.memory import MemoryBound, MemoryUse
from headgate_spark.planner.sizing import BatchSizer, Grant, with_remainder
from support.scripted_spark import ScriptedSpark, Stream

GIB = 2**30
ROOMY = MemoryUse(spilled_bytes=0, working_bytes=GIB, fullest_task=0.3)
NEARLY_FULL = MemoryUse(spilled_bytes=0, working_bytes=GIB, fullest_task=0.8)
SPILLED = MemoryUse(spilled_bytes=GIB // 2, working_bytes=GIB, fullest_task=1.0)
HEAVILY = MemoryUse(spilled_bytes=GIB, working_bytes=GIB, fullest_task=1.0)
UNKNOWN_SHARE = MemoryUse(spilled_bytes=0, working_bytes=GIB, fullest_task=None)


@pytest.mark.parametrize(
    ("use", "grown_to", "halved_to"),
    [
        (ROOMY, None, None),
        (UNKNOWN_SHARE, None, None),
        (NEARLY_FULL, 1000, None),
        (SPILLED, 1000, None),
        (HEAVILY, 1000, 500),
    ],
    ids=["roomy", "unknown", "nearly full", "spilled", "spilled heavily"],
)
def test_a_batch_that_was_pressed_ends_growth_and_one_that_spilled_heavily_is_halved(
    use, grown_to, halved_to
):
    bound = MemoryBound().after(1000, use, full=True)
    assert (bound.grown_to, bound.halved_to) == (grown_to, halved_to)


def test_a_bound_is_lowered_and_not_raised():
    bound = MemoryBound().after(1000, SPILLED, full=True).after(1200, SPILLED, full=True)
    assert bound.grown_to == 1000
    assert bound.after(700, SPILLED, full=True).grown_to == 700


def test_room_in_a_smaller_batch_takes_nothing_back():
    bound = MemoryBound().after(1000, HEAVILY, full=True)
    assert bound.after(500, ROOMY, full=True) == bound


def test_a_batch_that_ran_out_of_data_sets_no_bound():
    assert MemoryBound().after(10, HEAVILY, full=False) == MemoryBound()


def test_a_spill_that_does_not_shrink_with_the_batch_is_not_for_its_size():
    bound = MemoryBound().after(1000, HEAVILY, full=True).after(500, HEAVILY, full=True)
    assert bound == MemoryBound(size_is_to_blame=False)
    assert bound.after(4000, HEAVILY, full=True) == bound


def test_a_live_batch_that_spills_as_much_shows_the_same():
    bound = MemoryBound().after(1000, SPILLED, full=True).after(10, SPILLED, full=False)
    assert bound.records is None


def test_a_spill_that_shrinks_with_the_batch_goes_on_halving():
    half = MemoryUse(spilled_bytes=GIB // 2, working_bytes=GIB // 2)
    assert MemoryBound().after(1000, HEAVILY, full=True).after(500, half, full=True).records == 250


def test_a_batch_that_died_is_halved_whatever_its_spills_say():
    assert MemoryBound(size_is_to_blame=False).halved(1001).records == 500
    assert MemoryBound().halved(1).records == 1


uses = st.builds(
    MemoryUse,
    spilled_bytes=st.integers(0, 4 * GIB),
    working_bytes=st.integers(0, 4 * GIB),
    fullest_task=st.none() | st.floats(0, 2),
)


@given(st.lists(st.tuples(st.integers(1, 10**9), uses, st.booleans()), max_size=30))
def test_a_bound_leaves_at_least_a_record_and_rises_only_when_it_is_given_up(batches):
    bound = MemoryBound()
    for records, use, full in batches:
        before, bound = bound, bound.after(records, use, full=full)
        assert bound.records is None or bound.records >= 1
        if bound.size_is_to_blame and before.records is not None:
            assert bound.records is not None
            assert bound.records <= before.records
        if not before.size_is_to_blame:
            assert bound == before


# The bound in grants

BATCH = BatchControl(target_seconds=10, initial_records=1000, max_growth=4, max_records=1_000_000)


def ended(sizer, batch_id, records):
    sizer.ended(Grant(records, 10), records, 0.001, cut=True, batch_id=batch_id)


def test_a_grant_does_not_grow_beyond_the_first_batch_that_spilled():
    sizer = BatchSizer()
    ended(sizer, 1, 1000)
    assert sizer.grant(10, BATCH).records == 4000
    sizer.took_memory(1, SPILLED)
    assert sizer.grant(10, BATCH).records == 1000


def test_what_a_batch_took_may_be_known_one_batch_late():
    sizer = BatchSizer()
    ended(sizer, 1, 1000)
    ended(sizer, 2, 4000)
    sizer.took_memory(1, SPILLED)
    assert sizer.grant(10, BATCH).records == 1000


def test_memory_of_a_batch_that_nobody_reported_teaches_nothing():
    sizer = BatchSizer()
    sizer.took_memory(7, HEAVILY)
    assert sizer.memory == MemoryBound()


def test_a_remainder_is_not_taken_along_past_what_fits():
    memory = MemoryBound(grown_to=1000)
    assert with_remainder(Grant(1000, 10), 1200, BATCH, memory).records == 1000
    assert with_remainder(Grant(1000, 10), 1200, BATCH, MemoryBound()).records == 1200


# The bound in a run

BACKLOG = QueryControl(
    interval_seconds=1, interval_during_backlog_seconds=60, backlog=True, batch=BatchControl(max_growth=10)
)


def test_a_run_begins_with_what_an_earlier_one_learnt():
    spark = ScriptedSpark(
        Stream("a", {"0": 10_000_000}), control=BACKLOG, bound=MemoryBound(grown_to=70_000, halved_to=50_000)
    )
    spark.run_until(lambda: len(spark.batches) == 10)
    assert spark.sizes[:3] == [50_000] * 3
    assert max(spark.sizes) == 50_000
    assert spark.figures.memory_bound_records == 50_000


def test_a_query_whose_batches_spill_settles_at_a_size_that_fits():
    fits = 300_000
    spark = ScriptedSpark(Stream("a", {"0": 50_000_000}), control=BACKLOG, fixed_seconds=0.5)
    weighed = 0
    while len(spark.batches) < 40:
        spark.round()
        for batch_id, batch in enumerate(spark.batches[weighed:], weighed):
            excess = max(0, batch.total - fits)
            spark.planner.took_memory(
                batch_id, MemoryUse(spilled_bytes=excess * 1000, working_bytes=fits * 500)
            )
        weighed = len(spark.batches)
    assert len(set(spark.sizes[10:])) == 1
    assert fits / 2 <= spark.sizes[-1] <= 1.5 * fits


def test_one_batch_spans_a_backlog_unless_such_a_batch_was_too_large():
    whole = QueryControl(interval_seconds=1, interval_during_backlog_seconds=0, backlog=True)
    spark = ScriptedSpark(Stream("a", {"0": 1_000_000}), control=whole, bound=MemoryBound(grown_to=100_000))
    spark.run_until(lambda: len(spark.batches) == 1)
    assert spark.sizes == [1_000_000]
    spark = ScriptedSpark(Stream("a", {"0": 1_000_000}), control=whole)
    spark.planner.was_too_large(800_000)
    spark.run_until(lambda: len(spark.batches) == 3)
    assert spark.sizes == [400_000, 400_000, 200_000]
