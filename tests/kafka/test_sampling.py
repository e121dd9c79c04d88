"""Event times found by looking at single records: exact where they rise, whatever is missing between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.kafka.sampling import RUN, Record, Sampler
from headgate_spark.planner.event_times import Found

NEVER = 10**9


class Log:
    """One partition in memory; offsets may be missing, and reads may be short."""

    def __init__(self, records: Sequence[Record], end: int | None = None, most: int = RUN) -> None:
        self.records = records
        self.end = end if end is not None else (records[-1].offset + 1 if records else 0)
        self.most = most
        self.reads = 0

    def read(self, asked: Mapping[str, int], most: int) -> dict[str, list[Record]]:
        self.reads += 1
        at = asked["t/0"]
        return {"t/0": [record for record in self.records if record.offset >= at][: min(most, self.most)]}

    def close(self) -> None:
        pass

    def ends(self, partitions: Collection[str]) -> dict[str, int]:
        return dict.fromkeys(partitions, self.end)


def valid(record: Record) -> int | None:
    return record.timestamp if 0 <= record.timestamp < NEVER else None


def first_later(log: Log, time: int, beginning: int = 0) -> Found | None:
    return Sampler(log, valid).first_later({"t/0": time}, {"t/0": beginning})["t/0"]


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
    found = first_later(Log(records), time)
    assert found == expected or not any(kind == "good" for kind in kinds[max(0, time) :][:RUN])


def test_a_search_takes_few_reads():
    log = Log([Record(n, 10 * n) for n in range(100_000)])
    sampler = Sampler(log, valid)
    assert sampler.first_later({"t/0": 333_330}, {"t/0": 0}) == {"t/0": Found(33_334, 333_340)}
    assert log.reads <= 20
    log.reads = 0
    assert sampler.first_later({"t/0": 333_340}, {"t/0": 0}) == {"t/0": Found(33_335, 333_350)}
    assert log.reads <= 2


def test_nothing_before_the_beginning_is_found():
    assert first_later(Log([Record(n, n) for n in range(100)]), 10, beginning=50) == Found(50, 50)


def test_the_latest_of_the_last_records_is_told():
    log = Log([Record(n, n) for n in range(100)] + [Record(100, 50), Record(101, NEVER + 1)])
    sampler = Sampler(log, valid)
    assert sampler.latest({"t/0": 0}) == {"t/0": Found(99, 99)}
    assert sampler.latest({"t/0": 102}) == {"t/0": None}
