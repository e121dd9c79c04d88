"""Limits in files, learnt from records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.planner.files import FileCount


def a_count(*batches: tuple[int, int], growth: float = 4) -> FileCount:
    count = FileCount()
    for files, records in batches:
        count.read(files, records, growth)
    return count


def test_the_first_batch_is_one_file():
    assert FileCount().for_records(10**9) == 1


def test_the_limit_grows_by_a_bounded_factor():
    assert a_count((1, 100)).for_records(10**9) == 4
    assert a_count((1, 100), (4, 400)).for_records(10**9) == 16


def test_the_limit_comes_to_the_files_that_hold_the_grant():
    assert a_count((1, 100), (4, 400), (16, 1600)).for_records(2000) == 20


def test_a_batch_is_at_least_one_file():
    assert a_count((1, 100_000)).for_records(5) == 1


def test_larger_files_than_expected_are_noticed_at_once():
    assert a_count((1, 100), (4, 4000)).for_records(10_000) == 10


def test_a_batch_that_brought_little_halves_the_limit():
    assert a_count((1, 100), (4, 400), (16, 150)).for_records(10**9) == 8


def test_small_files_after_a_large_one_are_measured_again():
    count = a_count((1, 1_000_000))
    read = []
    for _ in range(12):
        files = count.for_records(100_000)
        count.read(files, files * 10, 4)
        read.append(files)
    assert read[0] == 1
    assert max(read) > 1000


def test_a_batch_that_spans_a_backlog_is_not_bounded_by_the_one_before():
    assert a_count((1, 100)).for_records(10_000, grows_freely=True) == 100


def test_a_limit_is_one_that_spark_can_count():
    most_records = 10**12  # the largest `batch.maxRecords`
    count = a_count((1, 100))
    assert count.for_records(most_records, grows_freely=True) == 2**31 - 1
    count.measured(1, 10**8)
    assert count.bytes_for(most_records, 4) == 2**63 - 1


def test_a_batch_without_records_teaches_nothing():
    assert a_count((1, 100), (4, 0)).records_per_file == 100


@pytest.mark.parametrize("per_batch", [1, 2, 3, 5])
def test_a_lull_does_not_let_the_limit_creep_up(per_batch):
    count = a_count((1, 100))
    for _ in range(50):
        files = count.for_records(10**6)
        count.read(files, 100 * min(per_batch, files), 4)
    assert count.for_records(10**6) <= 8 * per_batch


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 10**6)), max_size=20),
    st.integers(0, 10**9),
    st.floats(1, 10),
)
def test_the_limit_is_at_least_one_and_grows_no_faster_than_allowed(batches, records, growth):
    count, last = FileCount(), 0
    for files, read in batches:
        count.read(files, read, growth)
        last = files if read else last
    limit = count.for_records(records)
    assert 1 <= limit <= max(1, last * growth)
