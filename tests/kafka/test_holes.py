"""Markers of transactions and aborted records: the index names them, and to a source they are not there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from headgate_spark.kafka.lookups import BEGINNING, END, LATEST_RECORD, Record, UnansweredError
from headgate_spark.kafka.offset_gaps import OffsetGaps
from headgate_spark.kafka.record_times import RecordTimes
from headgate_spark.planner.event_times import Found

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
NOW_MS = 2 * YEAR_MS
PARTITION = "t/0"


class Kind(Enum):
    RECORD = auto()
    ABORTED = auto()
    OPEN = auto()
    """Of a transaction that has not ended."""
    MARKER = auto()


Entry = tuple[Kind, int]
"""What is at an offset, and its timestamp."""


@dataclass
class Log:
    """One partition, with Kafka's index, its producers and a reader of single records."""

    entries: list[Entry]
    committed: bool = False
    told_without: Collection[str] | Exception = ()
    reads: list[Mapping[str, int]] = field(default_factory=list)
    fetched: int = 1000
    """Offsets that a fetch holds; a read goes on to the first one with a record."""
    silent: Collection[str] = ()

    @property
    def end(self) -> int:
        opened = (n for n, (kind, _) in enumerate(self.entries) if kind is Kind.OPEN)
        return next(opened, len(self.entries)) if self.committed else len(self.entries)

    @property
    def readable(self) -> list[Record]:
        kinds = {Kind.RECORD} if self.committed else set(Kind) - {Kind.MARKER}
        return [Record(n, at) for n, (kind, at) in enumerate(self.entries[: self.end]) if kind in kinds]

    def find(self, asked: Mapping[str, int]) -> dict[str, Found | None]:
        return {partition: self._first(at) for partition, at in asked.items()}

    def _first(self, at: int) -> Found | None:
        if at in (BEGINNING, END):
            return Found(0 if at == BEGINNING else self.end, -1)
        if at == LATEST_RECORD:
            at = max((stamp for _, stamp in self.entries), default=0)
        found = next((Found(n, stamp) for n, (_, stamp) in enumerate(self.entries) if stamp >= at), None)
        return None if found is None or found.offset >= self.end else found

    def without_transactions(self, partitions: Collection[str]) -> Collection[str]:
        if isinstance(self.told_without, Exception):
            raise self.told_without
        return self.told_without

    def read(self, asked: Mapping[str, int], most: int) -> dict[str, list[Record]]:
        self.reads.append(asked)
        read = {
            partition: self._read(at)[:most]
            for partition, at in asked.items()
            if partition not in self.silent
        }
        if len(read) < len(asked):
            raise UnansweredError(f"{self.silent} did not answer", read)
        return read

    def _read(self, at: int) -> list[Record]:
        left = [record for record in self.readable if record.offset >= at]
        fetches = (left[0].offset - at) // self.fetched + 1 if left else 0
        return [record for record in left if record.offset < at + fetches * self.fetched]

    def ends(self, partitions: Collection[str] = (PARTITION,)) -> dict[str, int]:
        return dict.fromkeys(partitions, self.end)

    def close(self) -> None:
        pass


def times(log: Log) -> RecordTimes:
    return RecordTimes("flights", log, lambda: log, clock=lambda: NOW_MS / 1000, earliest=0)


def records(*stamps: int) -> list[Entry]:
    return [(Kind.RECORD, at) for at in stamps]


def aborted(*stamps: int) -> list[Entry]:
    return [(Kind.ABORTED, at) for at in stamps]


MARKER = [(Kind.MARKER, NOW_MS)]
REPLAYED = [*records(10, 20), *MARKER, *records(30, 40), *MARKER]


@pytest.mark.parametrize(
    ("after", "found"),
    [(5, Found(0, 10)), (19, Found(1, 20)), (20, Found(3, 30)), (30, Found(4, 40)), (40, None)],
)
def test_a_record_that_a_marker_hides_is_found(after: int, found: Found | None):
    assert times(Log(REPLAYED)).first_later({PARTITION: after}) == {PARTITION: found}


def test_the_latest_record_is_none_of_the_markers():
    assert times(Log(REPLAYED)).latest([PARTITION]) == {PARTITION: Found(4, 40)}


def test_markers_before_records_that_are_stamped_ahead_change_nothing():
    ahead = NOW_MS + HOUR_MS // 2
    told = times(Log([*records(ahead), *MARKER, *records(ahead + 10), *MARKER]))
    assert told.latest([PARTITION]) == {PARTITION: Found(2, ahead + 10)}
    assert told.first_later({PARTITION: NOW_MS - 1}) == {PARTITION: Found(0, ahead)}
    assert told.first_later({PARTITION: ahead}) == {PARTITION: Found(2, ahead + 10)}


def test_an_aborted_record_counts_where_it_is_read():
    entries = [*records(10), *aborted(500, 600), *MARKER, *records(20)]
    assert times(Log(entries)).first_later({PARTITION: 10}) == {PARTITION: Found(1, 500)}
    assert times(Log(entries)).latest([PARTITION]) == {PARTITION: Found(2, 600)}
    assert times(Log(entries, committed=True)).first_later({PARTITION: 10}) == {PARTITION: Found(4, 20)}
    assert times(Log(entries, committed=True)).latest([PARTITION]) == {PARTITION: Found(4, 20)}


def test_what_is_not_committed_yet_is_not_there():
    log = Log([*records(10), *MARKER, (Kind.OPEN, 30), *records(40)], committed=True)
    assert times(log).latest([PARTITION]) == {PARTITION: Found(0, 10)}
    assert times(log).first_later({PARTITION: 10}) == {PARTITION: None}
    log.committed = False
    assert times(log).latest([PARTITION]) == {PARTITION: Found(3, 40)}
    assert times(log).first_later({PARTITION: 10}) == {PARTITION: Found(2, 30)}


def test_the_latest_record_is_found_before_a_long_aborted_transaction():
    """What is not read is far longer than what is looked at together."""
    log = Log([*records(*range(1000)), *MARKER, *aborted(*range(5000, 6000)), *MARKER], committed=True)
    assert times(log).latest([PARTITION]) == {PARTITION: Found(999, 999)}


def test_a_partition_with_nothing_but_holes_has_no_event_time_and_lacks_nothing():
    log = Log([*aborted(10, 20), *MARKER], committed=True)
    told = times(log)
    with capture_logs() as logs:
        assert told.latest([PARTITION]) == {PARTITION: None}
    assert logs == []
    assert told.first_later({PARTITION: 0}) == {PARTITION: None}
    assert told.sampled.unreadable == {}


def test_a_record_dated_far_ahead_is_named_and_passed_over_among_markers_too():
    far = NOW_MS + 2 * HOUR_MS
    told = times(Log([*REPLAYED, *records(far, 50, 60), *MARKER]))
    assert told.latest([PARTITION]) == {PARTITION: Found(8, 60)}
    assert told.sampled.far_ahead == {PARTITION: 6}
    assert told.first_later({PARTITION: 40}) == {PARTITION: Found(7, 50)}
    last = times(Log([*REPLAYED, *records(far), *MARKER]))
    assert last.latest([PARTITION]) == {PARTITION: Found(4, 40)}


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), max_size=40),
            st.sampled_from([Kind.RECORD, Kind.ABORTED]),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.sampled_from([NOW_MS - YEAR_MS, NOW_MS - 60, NOW_MS + HOUR_MS // 2]),
    st.lists(st.integers(-1, 400), min_size=1, max_size=6),
    st.booleans(),
    st.integers(1, 100),
)
def test_where_timestamps_rise_the_answers_are_those_of_a_log_without_holes(
    transactions, start, asked, committed, fetched
):
    """Whenever transactions ended, whatever was asked before, and however little a fetch holds; some records are of
    no transaction."""
    entries: list[Entry] = []
    at, wall = start, NOW_MS - 100
    for steps, kind, is_marked in transactions:
        for step in steps:
            at += step
            entries.append((kind if is_marked else Kind.RECORD, at))
        wall += 3
        entries += [(Kind.MARKER, wall)] if is_marked else []
    log = Log(entries, committed, fetched=fetched)
    told = times(log)
    for after in asked:
        expected = next((r for r in log.readable if r.timestamp > start + after), None)
        found = told.first_later({PARTITION: start + after})[PARTITION]
        assert (found and found.offset) == (expected and expected.offset)
        last = told.latest([PARTITION])[PARTITION]
        assert (last and last.time) == max((r.timestamp for r in log.readable), default=None)


# When it is looked -------------------------------------------------------------------------------


@dataclass
class Clock:
    seconds: float = NOW_MS / 1000

    def __call__(self) -> float:
        return self.seconds


def holes(log: Log, clock: Callable[[], float]) -> OffsetGaps:
    return OffsetGaps("flights", log, lambda: log, clock=clock)


def latest(log: Log) -> dict[str, Found | None]:
    return log.find({PARTITION: LATEST_RECORD})


def test_an_offset_is_read_once():
    log, clock = Log(list(REPLAYED)), Clock()
    told = holes(log, clock)
    for _ in range(3):
        assert told.among({PARTITION: Found(2, NOW_MS), "u/0": None}) == {PARTITION}
        assert told.among({PARTITION: Found(3, 30)}) == set()
    assert log.reads == [{PARTITION: 2}, {PARTITION: 3}]


def test_where_nobody_writes_transactions_the_end_is_read_once_and_after_a_jump():
    log, clock = Log(records(NOW_MS), told_without=[PARTITION]), Clock()
    told = holes(log, clock)
    told.among_latest(latest(log))
    told.refresh()
    for _ in range(20):
        clock.seconds += 0.25
        log.entries += records(round(clock.seconds * 1000))
        assert told.among_latest(latest(log)) == set()
    clock.seconds += 600
    log.entries += records(round(clock.seconds * 1000))
    assert told.among_latest(latest(log)) == set()
    assert len(log.reads) == 1, "time has passed, so that it is no jump"
    log.entries += [(Kind.MARKER, round(clock.seconds * 1000) + 1500)]
    assert told.among_latest(latest(log)) == {PARTITION}
    assert len(log.reads) == 2


@pytest.mark.parametrize("without", [(), RuntimeError("not authorized")])
def test_where_somebody_may_write_transactions_each_end_is_read(without: Collection[str] | Exception):
    log, clock = Log(records(NOW_MS), told_without=without), Clock()
    told = holes(log, clock)
    for n in range(5):
        told.among_latest(latest(log))
        told.refresh()
        assert told.may_be_in(PARTITION)
        log.entries += records(NOW_MS + n + 1)
    assert len(log.reads) == 5


def test_who_writes_is_asked_less_often_where_that_takes_long_and_it_is_said_once():
    class Busy(Log):
        questions = 0

        def without_transactions(self, partitions: Collection[str]) -> Collection[str]:
            self.questions += 1
            clock.seconds += 5
            return super().without_transactions(partitions)

    log, clock = Busy(records(NOW_MS), told_without=[PARTITION]), Clock()
    told = holes(log, clock)
    with capture_logs() as logs:
        for _ in range(21):
            told.refresh()
            clock.seconds += 10
    assert log.questions == 3, "once in a hundred seconds"
    (line,) = logs
    assert (line["source"], line["seconds"]) == ("flights", 5)


def test_where_a_hole_was_met_each_end_is_read_until_it_is_known_again_who_writes():
    log, clock = Log(list(REPLAYED), told_without=[PARTITION]), Clock()
    told = holes(log, clock)
    told.refresh()
    assert told.among_latest(latest(log)) == {PARTITION}
    assert told.may_be_in(PARTITION)
    for n in (1, 2):
        log.entries += records(NOW_MS + n)
        assert told.among_latest(latest(log)) == set()
    assert len(log.reads) == 3
    told.refresh()
    assert not told.may_be_in(PARTITION)
    log.entries += records(NOW_MS + 3)
    assert told.among_latest(latest(log)) == set()
    assert len(log.reads) == 3


def test_what_was_read_while_another_partition_was_silent_is_not_read_again():
    log = Log(list(REPLAYED), silent=["u/0"])
    told = holes(log, Clock())
    found = {PARTITION: Found(2, NOW_MS), "u/0": Found(3, 30)}
    with pytest.raises(UnansweredError, match="u/0"):
        told.among(found)
    log.silent = ()
    assert told.among(found) == {PARTITION}
    assert log.reads == [{PARTITION: 2, "u/0": 3}, {"u/0": 3}]


def test_where_nobody_writes_transactions_answers_are_not_read_close_to_what_was_asked_for():
    """As they are where records are dense; a marker would lie further ahead, or hide little."""
    log = Log(records(*range(0, 90_000, 500)), told_without=[PARTITION])
    told = times(log)
    told.latest([PARTITION])
    told.refresh()
    assert len(log.reads) == 1
    for at in range(0, 80_000, 100):
        assert told.first_later({PARTITION: at}) == {PARTITION: Found(at // 500 + 1, (at // 500 + 1) * 500)}
    assert len(log.reads) == 1


def test_where_nobody_writes_transactions_any_more_a_marker_of_old_is_found():
    log = Log([*REPLAYED, *records(NOW_MS)], told_without=[PARTITION])
    told = times(log)
    told.latest([PARTITION])
    told.refresh()
    assert told.first_later({PARTITION: 20}) == {PARTITION: Found(3, 30)}


def test_how_far_records_are_out_of_order_is_told_where_they_are_looked_at_behind_a_marker():
    told = times(Log([*records(10, 60, 20, 70), *MARKER]))
    assert told.sampled.out_of_orderness is None, "the index alone was asked"
    told.first_later({PARTITION: 5})
    assert told.sampled.out_of_orderness is None, "no more than whether there is a record was read"
    told.latest([PARTITION])
    assert told.sampled.out_of_orderness == 40
