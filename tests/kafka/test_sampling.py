"""Event times found by looking at single records: exact where they rise, whatever is missing between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.kafka.lookups import Record, UnansweredError
from headgate_spark.kafka.sampling import RUN, Sampler
from headgate_spark.planner.event_times import Found

NEVER = 10**9


class Log:
    """One partition in memory; offsets may be missing, and reads may be short."""

    def __init__(self, records: Sequence[Record], end: int | None = None, most: int = RUN) -> None:
        self.records = records
        self.end = end if end is not None else (records[-1].offset + 1 if records else 0)
        self.most = most
        self.reads = 0
        self.silent: Collection[str] = ()
        self.at_a_time: int | None = None
        """Partitions for which there is room in one answer."""

    def read(self, asked: Mapping[str, int], most: int) -> dict[str, list[Record]]:
        self.reads += 1
        if self.at_a_time is not None:
            asked = dict(list(asked.items())[: self.at_a_time])
        read = {
            partition: self._read(at, most) for partition, at in asked.items() if partition not in self.silent
        }
        if len(read) < len(asked):
            raise UnansweredError(f"{self.silent} did not answer", read)
        return read

    def _read(self, at: int, most: int) -> list[Record]:
        begin = bisect_left(self.records, at, key=lambda record: record.offset)
        return list(self.records[begin : begin + min(most, self.most)])

    def close(self) -> None:
        pass

    def ends(self, partitions: Collection[str]) -> dict[str, int]:
        return dict.fromkeys(partitions, self.end)


def valid(_: str, record: Record) -> int | None:
    return record.timestamp if 0 <= record.timestamp < NEVER else None


def first_later(log: Log, time: int, beginning: int = 0) -> Found | None:
    return Sampler(log, log, valid).first_later({"t/0": time}, {"t/0": beginning})["t/0"]


def is_far_enough(log: Log, found: Found | None, time: int, slack: int) -> bool:
    """Tell whether nothing before what was found is later than asked for by more than some slack."""
    end = log.end if found is None else found.offset
    return all(valid("", r) is None or r.timestamp <= time + slack for r in log.records if r.offset < end)


rising = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), max_size=300)


@given(rising, st.integers(-1, 1600), st.integers(1, RUN), st.integers(0, 50))
def test_of_rising_event_times_the_first_later_record_is_found(steps, time, most, tail):
    records, offset, at = [], 0, 0
    for gap, step in steps:
        offset, at = offset + gap, at + step
        records.append(Record(offset, at))
    log = Log(records, offset + 1 + tail, most)
    expected = next((Found(r.offset, r.timestamp) for r in records if r.timestamp > time), None)
    assert first_later(log, time) == expected


@given(
    st.lists(st.sampled_from(["good", "missing", "future"]), min_size=1, max_size=200), st.integers(-1, 210)
)
def test_records_whose_time_does_not_count_are_passed_over(kinds, time):
    stamps = {"missing": -1, "future": NEVER + 5}
    records = [Record(n, stamps.get(kind, n)) for n, kind in enumerate(kinds)]
    expected = next((Found(n, n) for n, kind in enumerate(kinds) if kind == "good" and n > time), None)
    assert first_later(Log(records), time) == expected


stretches = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, RUN - 1), st.sampled_from([-1, NEVER + 5])), max_size=30
)
"""Numbers of records with an event time, of records behind them without one, and what these have instead."""


@given(
    stretches,
    st.lists(st.integers(0, 40), min_size=1, max_size=60),
    st.integers(0, 40),
    st.lists(st.integers(-1, 2200), min_size=1, max_size=8),
    st.integers(1, RUN),
)
def test_what_is_read_too_far_is_at_most_the_out_of_orderness(counts, lateness, disorder, asked, most):
    """Whatever is missing between the records, whatever was asked before, and however short reads are."""
    kinds = [kind for good, bad, stamp in counts for kind in [None] * good + [stamp] * bad]
    late = [min(lateness[n % len(lateness)], disorder) for n in range(len(kinds))]
    stamps = [max(0, n - late[n]) if kind is None else kind for n, kind in enumerate(kinds)]
    log = Log([Record(3 * n, stamp) for n, stamp in enumerate(stamps)], most=most)
    sampler = Sampler(log, log, valid)
    last = sampler.latest({"t/0": 0})["t/0"]
    assert is_far_enough(log, None, -1 if last is None else last.time, slack=disorder)
    for time in asked:
        found = sampler.first_later({"t/0": time}, {"t/0": 0})["t/0"]
        assert found is None or found.time > time
        assert is_far_enough(log, found, time, slack=disorder)
    assert sampler.out_of_orderness <= disorder


def test_how_much_the_records_are_out_of_order_is_told():
    log = Log([Record(n, n - 7 * (n % 2)) for n in range(10, 1000)])
    sampler = Sampler(log, log, valid)
    sampler.first_later({"t/0": 500}, {"t/0": 0})
    assert sampler.out_of_orderness == 6


def test_out_of_orderness_between_looks_is_told_too():
    log = Log([Record(n, n if n < 500 else n - 300) for n in range(1000)])
    sampler = Sampler(log, log, valid)
    for time in (480, 100):
        sampler.first_later({"t/0": time}, {"t/0": 0})
    assert 0 < sampler.out_of_orderness < 300


def test_a_long_stretch_without_event_times_is_passed_over_in_few_looks():
    records = [Record(n, n if n < 1000 or n > 900_000 else -1) for n in range(1_000_000)]
    log = Log(records)
    sampler = Sampler(log, log, valid)
    assert sampler.first_later({"t/0": 950_000}, {"t/0": 0}) == {"t/0": Found(950_001, 950_001)}
    assert sampler.first_later({"t/0": 999}, {"t/0": 0}) == {"t/0": Found(900_001, 900_001)}
    assert log.reads <= 250


def test_the_latest_is_looked_for_before_an_end_without_event_times():
    log = Log([Record(n, n if n < 1000 else -1) for n in range(100_000)])
    sampler = Sampler(log, log, valid)
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(999, 999)}
    reads = log.reads
    assert reads <= 30
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(999, 999)}
    assert log.reads == reads, "what was looked at is not looked at again"


def test_the_latest_is_found_behind_a_short_read_without_event_times():
    log = Log([Record(n, -1 if 65 <= n < 90 else n) for n in range(100)], most=16)
    assert Sampler(log, log, valid).latest({"t/0": 0}) == {"t/0": Found(99, 99)}
    assert first_later(log, 64) == Found(90, 90)


def test_what_was_read_while_another_partition_was_silent_is_kept():
    log = Log([Record(n, n) for n in range(100)])
    sampler = Sampler(log, log, valid)
    log.silent = {"u/0"}
    with pytest.raises(UnansweredError, match="u/0"):
        sampler.latest({"t/0": 0, "u/0": 0})
    log.silent, reads = set(), log.reads
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(99, 99)}
    assert log.reads == reads, "what was looked at is not looked at again"


def test_what_a_log_no_longer_has_is_forgotten():
    log = Log([Record(n, n) for n in range(100)])
    sampler = Sampler(log, log, valid)
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(99, 99)}
    log.records, log.end = [Record(n, 10 * n) for n in range(50)], 50
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(49, 490)}


def test_far_more_records_than_are_remembered_are_searched():
    log = Log([Record(n, n) for n in range(50_000)])
    sampler = Sampler(log, log, valid)
    for time in range(0, 50_000, 777):
        assert sampler.first_later({"t/0": time}, {"t/0": 0}) == {"t/0": Found(time + 1, time + 1)}


def test_a_search_takes_few_reads():
    log = Log([Record(n, 10 * n) for n in range(100_000)])
    sampler = Sampler(log, log, valid)
    assert sampler.first_later({"t/0": 333_330}, {"t/0": 0}) == {"t/0": Found(33_334, 333_340)}
    assert log.reads <= 20
    log.reads = 0
    assert sampler.first_later({"t/0": 333_340}, {"t/0": 0}) == {"t/0": Found(33_335, 333_350)}
    assert log.reads <= 2


def test_nothing_before_the_beginning_is_found():
    assert first_later(Log([Record(n, n) for n in range(100)]), 10, beginning=50) == Found(50, 50)


def test_the_latest_of_the_last_records_is_told():
    log = Log([Record(n, n) for n in range(100)] + [Record(100, 50), Record(101, NEVER + 1)])
    sampler = Sampler(log, log, valid)
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(99, 99)}
    assert sampler.latest({"t/0": 102}) == {"t/0": None}


def test_partitions_for_whose_values_there_was_no_room_are_asked_for_again():
    log = Log([Record(n, 10 * n) for n in range(100)])
    log.at_a_time = 2
    partitions = [f"t/{n}" for n in range(5)]
    sampler = Sampler(log, log, valid)
    assert sampler.first_later(dict.fromkeys(partitions, 500), dict.fromkeys(partitions, 0)) == dict.fromkeys(
        partitions, Found(51, 510)
    )
    assert sampler.latest(dict.fromkeys(partitions, 0)) == dict.fromkeys(partitions, Found(99, 990))


@given(length=st.integers(0, 300), end=st.integers(1, 300), time=st.integers(-1, 300))
def test_a_log_that_became_shorter_during_the_search_ends_it(length: int, end: int, time: int) -> None:
    """The client begins anew where it is asked for what is behind the end."""

    class Shorter(Log):
        def _read(self, at: int, most: int) -> list[Record]:
            return super()._read(at if at < length else 0, most)

    log = Shorter([Record(n, n) for n in range(length)] or [Record(0, 0)], end=max(end, length))
    found = first_later(log, time, beginning=end // 2)
    assert found is None or end // 2 <= found.offset < max(1, length)
    Sampler(log, log, valid).latest({"t/0": end // 2})


def test_a_short_run_without_event_times_before_markers_is_read_once() -> None:
    log = Log([Record(n, NEVER + 1) for n in range(3)], end=9)
    assert first_later(log, 0) is None
