"""The end of a snapshot is found to the record, by few looks, in whatever a log may hold."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.kafka.envelope import Mark
from headgate_spark.kafka.snapshot_search import SnapshotSearch
from headgate_spark.planner.snapshots import SnapshotEnd

MOST_READS = 64
SNAPSHOT, CHANGE = Mark(is_snapshot=True, connector="shop"), Mark(is_snapshot=False, connector="shop")
LAST = Mark(is_snapshot=True, connector="shop", ends_table=True, ends_snapshot=True)
LAST_OF_TABLE = Mark(is_snapshot=True, connector="shop", ends_table=True)
Log = dict[int, Mark | None]
"""By offset; an offset that is not there is a hole."""


def searched(log: Log, begin: int, until: int) -> SnapshotSearch:
    search, offsets = SnapshotSearch("t", begin, until), sorted(offset for offset in log if offset < until)
    for _ in range(2 * MOST_READS):
        if not search.is_open:
            return search
        at = bisect_left(offsets, search.next_place)
        assert begin <= search.next_place < until
        search.narrow(*((offsets[at], log[offsets[at]]) if at < len(offsets) else (None, None)))
    raise AssertionError("it does not end")


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, int, int]:
    """A snapshot, then changes, anywhere among holes, of a log that is read from anywhere."""
    rows, changes = draw(st.integers(0, 300)), draw(st.integers(0, 300))
    holes = draw(st.sets(st.integers(0, rows + changes), max_size=40))
    first = draw(st.integers(0, 10**6))
    log: Log = {first + n: SNAPSHOT if n < rows else CHANGE for n in range(rows + changes) if n not in holes}
    until = first + rows + changes
    return log, draw(st.integers(first, until)), until


@given(logs())
def test_an_end_is_exact_with_holes_anywhere(drawn: tuple[Log, int, int]) -> None:
    log, begin, until = drawn
    search = searched(log, begin, until)
    rows = [offset for offset, mark in log.items() if mark is SNAPSHOT and begin <= offset < until]
    changes = [offset for offset, mark in log.items() if mark is CHANGE and begin <= offset < until]
    found = search.found
    assert search.reads <= MOST_READS
    assert found.is_open is not bool(changes)
    if rows and changes:
        assert max(rows) < found.end <= min(changes), (
            "behind the last record of the snapshot, before the first change"
        )
    elif rows:
        assert found.end == until, "what there is was written by the snapshot"
    else:
        assert found.end == begin


@given(logs(), st.randoms(use_true_random=False))
def test_what_compaction_removes_in_mid_search_changes_no_end(
    drawn: tuple[Log, int, int], draw: Random
) -> None:
    log, begin, until = drawn
    search = SnapshotSearch("t", begin, until)
    while search.is_open:
        gone = [offset for offset in log if draw.random() < 0.2 and offset != max(log)]
        log = {offset: mark for offset, mark in log.items() if offset not in gone}
        at = min((offset for offset in log if offset >= search.next_place), default=None)
        search.narrow(at, None if at is None else log[at])
    assert search.reads <= MOST_READS
    assert all(
        offset < search.found.end for offset, mark in log.items() if mark is SNAPSHOT and offset < until
    )
    assert all(
        search.found.end <= offset
        for offset, mark in log.items()
        if mark is CHANGE and begin <= offset < until
    )


@given(rows=st.integers(1, 2**50), changes=st.integers(1, 2**50))
def test_no_log_is_too_long(rows: int, changes: int) -> None:
    search = SnapshotSearch("t", 0, rows + changes)
    while search.is_open:
        at = search.next_place
        search.narrow(at, SNAPSHOT if at < rows else CHANGE)
    assert search.found.end == rows
    assert search.reads <= MOST_READS


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=6), st.data())
def test_of_several_snapshots_one_end_is_found_and_behind_it_the_next(
    snapshots: list[tuple[int, int]], data: st.DataObject
) -> None:
    marks = [mark for rows, changes in snapshots for mark in [SNAPSHOT] * rows + [CHANGE] * changes]
    log: Log = dict(enumerate(marks))
    at = data.draw(st.integers(0, len(marks) - 1))
    while at < len(marks):
        found = searched(log, at, len(marks)).found
        if marks[at] is SNAPSHOT:
            assert marks[found.end - 1] is SNAPSHOT
            assert marks[found.end] is CHANGE
            at = found.end
        else:
            assert found.end == at
            at += 1


def test_a_snapshot_that_goes_on_ends_where_the_log_does_after_two_looks() -> None:
    search = searched(dict.fromkeys(range(10**6), SNAPSHOT), 5, 10**6)
    assert search.found == SnapshotEnd(begin=5, end=10**6, until=10**6, is_open=True, connector="shop")
    assert search.reads == 2


def test_one_that_goes_on_ends_behind_the_markers_that_come_last() -> None:
    """Where the log does: what is read to there is not behind the end that was found."""
    found = searched(dict.fromkeys(range(10), SNAPSHOT), 0, 12).found
    assert found == SnapshotEnd(begin=0, end=12, until=12, is_open=True, connector="shop")


def test_many_records_that_do_not_tell_count_as_changes_behind_it() -> None:
    search = searched({n: SNAPSHOT if n < 5 else None for n in range(20)}, 0, 20)
    assert search.found == SnapshotEnd(begin=0, end=5, until=20, connector="shop")
    assert not search.is_unreadable


def test_a_log_without_records_of_a_snapshot_needs_one_look() -> None:
    search = searched(dict.fromkeys(range(1000), CHANGE), 5, 1000)
    assert search.found == SnapshotEnd(begin=5, end=5, until=1000, over=frozenset({("shop", None)}))
    assert search.reads == 1


def test_where_only_markers_are_left_nothing_is_known() -> None:
    assert searched({}, 5, 7).found == SnapshotEnd(begin=5, end=5, until=7, is_open=True)


@pytest.mark.parametrize(
    ("mark", "over"),
    [(SNAPSHOT, set()), (LAST, {("shop", None)}), (LAST_OF_TABLE, {("shop", "t")})],
    ids=["one of many", "the last of all tables", "the last of its table"],
)
def test_the_last_record_says_whether_the_snapshot_is_over(
    mark: Mark, over: set[tuple[str, str | None]]
) -> None:
    search = searched({**dict.fromkeys(range(9), SNAPSHOT), 9: mark}, 0, 10)
    assert search.found.is_open
    assert search.found.over == over


@given(rows=st.integers(1, 200), changes=st.integers(1, 200), foreign=st.integers(0, 3), data=st.data())
def test_a_few_records_that_do_not_tell_are_looked_past(
    rows: int, changes: int, foreign: int, data: st.DataObject
) -> None:
    marks: list[Mark | None] = [SNAPSHOT] * rows + [CHANGE] * changes
    at = data.draw(st.integers(0, rows))
    marks[at:at] = [None] * foreign
    search = searched(dict(enumerate(marks)), 0, len(marks))
    last = max(n for n, mark in enumerate(marks) if mark is SNAPSHOT)
    assert last < search.found.end <= marks.index(CHANGE)
    assert not search.is_unreadable


def test_a_log_that_does_not_tell_is_none_and_says_so() -> None:
    search = searched(dict.fromkeys(range(1000), None), 0, 1000)
    assert search.is_unreadable
    assert search.found.end == 0
    assert search.reads <= 4


@given(logs(), st.integers(0, 600))
def test_a_log_that_ends_before_the_place_is_at_its_end_there(drawn: tuple[Log, int, int], lost: int) -> None:
    """It has become shorter during the search, and the client begins anew."""
    log, begin, until = drawn
    left = {offset: mark for offset, mark in log.items() if offset < until - lost}
    search, first = SnapshotSearch("t", begin, until), min(log, default=begin)
    while search.is_open:
        at = min((offset for offset in left if offset >= search.next_place), default=first)
        search.narrow(at, left.get(at, SNAPSHOT))
    assert search.reads <= MOST_READS
    assert search.found.end <= until
