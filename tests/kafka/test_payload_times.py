"""Event times inside values: what counts, what does not, and how a partition without any is named."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from headgate_contract import EventTimeControl
from headgate_spark.kafka.lookups import BEGINNING, Record
from headgate_spark.kafka.payload import reader_of
from headgate_spark.kafka.payload_times import PayloadTimes
from headgate_spark.planner.event_times import Found

NOW = 1_800_000_000.0
HOUR_MS = 3_600_000
START = 1_700_000_000_000
COLUMN = "$.at"


def at(millis: int) -> bytes:
    return b'{"at": %d}' % millis


def values(*seconds: int) -> list[bytes | None]:
    return [at(START + 1000 * s) for s in seconds]


class Broker:
    """Partitions whose records all have one timestamp."""

    def __init__(self, begins_at: int = 0, **logs: list[bytes | None]) -> None:
        self.logs = {f"{name}/0": log for name, log in logs.items()}
        self.begins_at = begins_at
        self.lookups = 0
        self.closed = 0

    def find(self, asked: Mapping[str, int]) -> dict[str, Found | None]:
        assert set(asked.values()) == {BEGINNING}, "timestamps of records are not asked for"
        self.lookups += 1
        return dict.fromkeys(asked, Found(self.begins_at, -1))

    def read(self, asked: Mapping[str, int], most: int) -> dict[str, Sequence[Record]]:
        return {
            partition: [Record(n + self.begins_at, 17, v) for n, v in enumerate(self.logs[partition])][
                max(0, at - self.begins_at) :
            ][:most]
            for partition, at in asked.items()
        }

    def ends(self, partitions: Collection[str] = ()) -> dict[str, int]:
        return {partition: self.begins_at + len(self.logs[partition]) for partition in partitions}

    def close(self) -> None:
        self.closed += 1


def times(broker: Broker) -> PayloadTimes:
    reader = reader_of("rides", EventTimeControl(column=COLUMN))
    return PayloadTimes("rides", broker, broker, reader, clock=lambda: NOW)


def found(offset: int, second: int) -> Found:
    return Found(offset, START + 1000 * second)


def test_event_times_are_those_of_the_values_and_not_of_the_records():
    told = times(Broker(a=values(*range(100)), b=values(*range(0, 200, 2))))
    assert told.latest(["a/0", "b/0"]) == {"a/0": found(99, 99), "b/0": found(99, 198)}
    asked = dict.fromkeys(("a/0", "b/0"), START + 50_000)
    assert told.first_later(asked) == {"a/0": found(51, 51), "b/0": found(26, 52)}
    assert told.first_later({"a/0": START + 99_000}) == {"a/0": None}


def test_a_log_whose_first_records_are_gone_is_searched_from_where_it_begins():
    broker = Broker(begins_at=5000, a=values(*range(100)))
    told = times(broker)
    assert told.first_later({"a/0": -1}) == {"a/0": found(5000, 0)}
    told.first_later({"a/0": START})
    assert broker.lookups == 1


def test_records_without_a_readable_event_time_do_not_count():
    log = [None, b"no json", *values(1), b'{"to": 1}', None, *values(2), at(int(NOW * 1000) + HOUR_MS + 1)]
    told = times(Broker(a=log))
    assert told.first_later({"a/0": -1}) == {"a/0": found(2, 1)}
    assert told.first_later({"a/0": START + 1000}) == {"a/0": found(5, 2)}
    assert told.first_later({"a/0": START + 2000}) == {"a/0": None}
    assert told.latest(["a/0"]) == {"a/0": found(5, 2)}


def test_an_event_time_exactly_as_far_ahead_as_is_allowed_counts():
    last = int(NOW * 1000) + HOUR_MS
    assert times(Broker(a=[at(last)])).latest(["a/0"]) == {"a/0": Found(0, last)}


def test_a_partition_of_which_nothing_can_be_read_is_named_once_with_the_reason_and_its_siblings_go_on():
    broker = Broker(a=[b'{"to": 1}'] * 500, b=values(1, 2))
    told = times(broker)
    with capture_logs() as logs:
        for _ in range(3):
            assert told.latest(["a/0", "b/0"]) == {"a/0": None, "b/0": found(1, 2)}
    (entry,) = logs
    assert (entry["source"], entry["partition"], entry["column"]) == ("rides", "a/0", COLUMN)
    assert entry["last_record"] == "it has no such member"
    assert "Correct eventTime.column or eventTime.format" in entry["event"]
    assert told.sampled.unreadable == {"a/0": entry["offset"]}
    broker.logs["a/0"] += values(3)
    assert told.latest(["a/0"]) == {"a/0": found(500, 3)}
    assert told.sampled.unreadable == {}


def test_an_empty_partition_is_not_unreadable():
    told = times(Broker(a=[]))
    with capture_logs() as logs:
        assert told.latest(["a/0"]) == {"a/0": None}
        assert told.first_later({"a/0": -1}) == {"a/0": None}
    assert logs == []
    assert told.sampled.unreadable == {}


def test_records_that_are_too_far_ahead_are_named_once_for_each_partition():
    ahead = at(int(NOW * 1000) + 2 * HOUR_MS)
    told = times(Broker(a=[*values(1), ahead, ahead], b=[ahead, *values(2)]))
    with capture_logs() as logs:
        for _ in range(2):
            told.latest(["a/0", "b/0"])
            told.first_later({"a/0": -1, "b/0": -1})
    assert [(entry["partition"], entry["offset"]) for entry in logs] == [("a/0", 1), ("b/0", 0)]
    assert told.sampled.far_ahead == {"a/0": 1, "b/0": 0}


@pytest.mark.parametrize("small", [0, 7, 99_999_999])
def test_a_number_that_may_be_a_counter_counts_as_seconds_and_is_named_once(small: int):
    log = [at(n) for n in range(small, small + 3)]
    told = times(Broker(a=log, b=log))
    with capture_logs() as logs:
        assert told.latest(["a/0", "b/0"])["a/0"] == Found(2, 1000 * (small + 2))
        told.first_later({"a/0": -1, "b/0": -1})
    (entry,) = logs
    assert (entry["source"], entry["partition"], entry["column"]) == ("rides", "a/0", COLUMN)
    assert entry["value"] == small + entry["offset"]
    for form in ("ISO 8601", "seconds", "milliseconds", "microseconds", "nanoseconds"):
        assert form in entry["event"]


def test_a_date_of_long_ago_is_what_it_says_and_so_is_a_number_from_1973_on():
    with capture_logs() as logs:
        found = times(Broker(a=[b'{"at": "1971-01-01"}'], b=[at(100_000_000)])).latest(["a/0", "b/0"])
    assert found == {"a/0": Found(0, 31_536_000_000), "b/0": Found(0, 100_000_000_000)}
    assert logs == []


def test_out_of_orderness_is_what_was_seen():
    told = times(Broker(a=values(0, 5, 3, 9, 8)))
    told.latest(["a/0"])
    assert told.sampled.out_of_orderness == 2000


def test_both_clients_are_given_back():
    broker = Broker(a=[])
    times(broker).close()
    assert broker.closed == 2
