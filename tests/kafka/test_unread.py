"""Looking at unread records: on a thread of its own, in turns, and past whatever does not count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from headgate_contract import EventTimeControl
from headgate_spark.kafka import beside, unread
from headgate_spark.kafka.lookups import Record, UnansweredError
from headgate_spark.kafka.payload import Reader, reader_of
from headgate_spark.kafka.unread import SourceUnread
from headgate_spark.planner.unread import First
from support.waiting import wait_until

NOW = 1_700_000_000_000
HOUR = 3_600_000


@dataclass
class Broker:
    """Logs of partitions; what is not listed by offset is a hole."""

    logs: Mapping[str, Sequence[Record]]
    reads: list[Mapping[str, int]] = field(default_factory=list)
    silent: Collection[str] = ()
    failure: Exception | None = None
    room: int = 10**6
    """Partitions that one read answers."""
    may_answer: threading.Event = field(default_factory=threading.Event)
    connections: int = 0
    closed: int = 0

    def connect(self, where: EventTimeControl | None) -> tuple[Broker, Reader | None]:
        self.connections += 1
        return self, None if where is None else reader_of("t", where)

    def read(self, asked: Mapping[str, int], most: int) -> Mapping[str, Sequence[Record]]:
        assert self.may_answer.wait(30)
        self.reads.append(dict(asked))
        if self.failure is not None:
            raise self.failure
        found = {
            partition: [record for record in self.logs[partition] if record.offset >= at][:most]
            for partition, at in list(asked.items())[: self.room]
            if partition not in self.silent
        }
        if silent := [partition for partition in asked if partition in self.silent]:
            raise UnansweredError(f"partition {silent[0]}: no records came within 5 s", found)
        return found

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Broker], SourceUnread]]:
    monkeypatch.setattr(unread, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(beside, "REST", 0)
    opened: list[SourceUnread] = []

    def of(broker: Broker) -> SourceUnread:
        opened.append(SourceUnread("t", broker.connect, clock=lambda: NOW / 1000, least_rest=0.0))
        broker.may_answer.set()
        return opened[-1]

    yield of
    for each in opened:
        each.close()


def log(*times: int) -> list[Record]:
    return [Record(offset, at) for offset, at in enumerate(times)]


def found(source: SourceUnread, at: int = 0, end: int = 100, partition: str = "t/0") -> First:
    source.look({partition: (at,)}, {partition: end})
    wait_until(
        lambda: any(first.answers(at, end) for first in (source.known or {}).get(partition, ())), "a look"
    )
    return (source.known or {})[partition][-1]


def test_it_is_the_first_record_from_the_position_on(looking: Callable[[Broker], SourceUnread]) -> None:
    source = looking(Broker({"t/0": log(NOW - HOUR, NOW - 5, NOW)}))
    assert found(source, 1) == First(1, NOW - 5, until=100)


def test_markers_and_what_compaction_has_removed_are_passed_over(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    source = looking(Broker({"t/0": [Record(40, NOW - HOUR)]}))
    assert found(source, 3) == First(3, NOW - HOUR, until=100)


def test_where_only_markers_are_left_there_is_no_record(looking: Callable[[Broker], SourceUnread]) -> None:
    source = looking(Broker({"t/0": []}))
    assert found(source, 3, end=4) == First(3, None, is_none=True, until=4)


def test_of_partitions_that_are_gone_nothing_is_kept(looking: Callable[[Broker], SourceUnread]) -> None:
    source = looking(Broker({"t/0": log(NOW - 5), "t/1": log(NOW - 7)}))
    source.look({"t/0": (0,), "t/1": (0,)}, {"t/0": 1, "t/1": 1})
    wait_until(lambda: len(source.known or {}) == 2, "a look at both")
    source.look({}, {"t/0": 1})
    assert (source.known or {}).keys() == {"t/0"}


@pytest.mark.parametrize(
    ("timestamp", "told"),
    [
        (-1, "no timestamp"),
        (NOW + 2 * HOUR, "too far ahead"),
        (NOW * 1000, "too far ahead"),
        (NOW // 1000, "in seconds"),
    ],
    ids=["none", "the future", "microseconds", "seconds"],
)
def test_a_timestamp_that_means_nothing_does_not_count_and_is_named_once(
    timestamp: int, told: str, looking: Callable[[Broker], SourceUnread]
) -> None:
    source = looking(Broker({"t/0": log(timestamp, timestamp, NOW - 7), "t/1": log(timestamp)}))
    with capture_logs() as logs:
        assert found(source).time == NOW - 7
        assert found(source, partition="t/1").time is None
    (line,) = logs
    assert told in line["event"]
    assert (line["source"], line["partition"], line["offset"], line["timestamp"]) == (
        "t",
        "t/0",
        0,
        timestamp,
    )


def test_a_topic_that_stamps_its_records_itself_tells_when_they_came(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    assert found(looking(Broker({"t/0": log(NOW, NOW)}))).time == NOW


def test_where_event_times_are_in_values_they_count(looking: Callable[[Broker], SourceUnread]) -> None:
    values = [Record(0, NOW, b"null"), Record(1, NOW, b'{"at": 1699999990}')]
    source = looking(Broker({"t/0": values}))
    source.prepare(HOUR, EventTimeControl(column="at"))
    assert found(source).time == NOW - 10_000


def test_thousands_of_partitions_take_turns_and_all_are_looked_at(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    partitions = [f"t/{n}" for n in range(1000)]
    broker = Broker({partition: log(NOW - n) for n, partition in enumerate(partitions)}, room=100)
    source = looking(broker)
    source.look(dict.fromkeys(partitions, (0,)), dict.fromkeys(partitions, 1))
    wait_until(lambda: len(source.known or {}) == len(partitions), "a look")
    assert max(len(read) for read in broker.reads) <= unread.PARTITIONS
    assert {partition: first.time for partition, (first,) in (source.known or {}).items()} == {
        partition: NOW - n for n, partition in enumerate(partitions)
    }


def test_who_was_looked_at_longest_ago_is_first_whatever_is_asked_for_meanwhile(
    looking: Callable[[Broker], SourceUnread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "PARTITIONS", 2)
    partitions = ["t/0", "t/1", "t/2"]
    source = looking(Broker({partition: log(*[NOW] * 50) for partition in partitions}))
    for at in range(20):
        source.look(dict.fromkeys(partitions, (at,)), dict.fromkeys(partitions, 50))
        count = sum(map(len, (source.known or {}).values()))
        wait_until(
            lambda count=count: sum(map(len, (source.known or {}).values())) >= min(count + 1, 9), "a look"
        )
    wait_until(lambda: all(first[-1].offset == 19 for first in (source.known or {}).values()), "a look")


def test_a_partition_that_does_not_answer_keeps_no_other_from_being_known(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    broker = Broker({"t/0": log(NOW), "t/1": log(NOW - 9)}, silent={"t/0"})
    source = looking(broker)
    source.look({"t/0": (0,), "t/1": (0,)}, {"t/0": 1, "t/1": 1})
    wait_until(lambda: "t/1" in (source.known or {}), "a look")
    broker.silent = ()
    wait_until(lambda: "t/0" in (source.known or {}), "a look")


def test_while_a_source_cannot_be_asked_that_is_told_once_with_the_remedy_and_it_goes_on_by_itself(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    broker = Broker({"t/0": log(NOW)}, failure=RuntimeError("org.apache.kafka.TimeoutException: no node"))
    source = looking(broker)
    with capture_logs() as logs:
        source.look({"t/0": (0,)}, {"t/0": 1})
        wait_until(lambda: len(broker.reads) >= 3, "a look")
        assert source.known is None
        broker.failure = None
        wait_until(lambda: bool(source.known), "a look")
    assert [line["source"] for line in logs if "See that its brokers answer" in line["event"]] == ["t"]
    assert broker.closed >= 3, "a client that has failed is not used again"


def test_nobody_waits_for_a_look(looking: Callable[[Broker], SourceUnread]) -> None:
    broker = Broker({"t/0": log(NOW)})
    source = looking(broker)
    broker.may_answer.clear()
    source.look({"t/0": (0,)}, {"t/0": 1})
    assert source.known == {}
    broker.may_answer.set()
    wait_until(lambda: bool(source.known), "a look")


def test_what_was_found_of_a_topic_that_is_another_now_is_forgotten(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    source = looking(Broker({"t/0": log(NOW)}))
    found(source)
    source.forget()
    assert source.known == {}


def lost(source: SourceUnread, broker: Broker) -> None:
    """Let a source not be able to tell, for a partition that is gone."""
    broker.failure = RuntimeError("UnknownTopicOrPartitionException")
    source.look({"gone/0": (0,)}, {"gone/0": 1})
    wait_until(lambda: source.known is None, "that it cannot tell")
    broker.failure = None
    broker.silent = {"gone/0"}


def test_what_is_asked_for_no_more_keeps_no_source_from_telling(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    broker = Broker({"t/0": log(NOW), "gone/0": []})
    source = looking(broker)
    lost(source, broker)
    source.look({}, {"t/0": 1})
    wait_until(lambda: source.known is not None, "that it can")
    assert found(source, 0, end=1).time == NOW


def test_one_that_could_not_tell_and_is_forgotten_tells_again(
    looking: Callable[[Broker], SourceUnread],
) -> None:
    broker = Broker({"t/0": log(NOW), "gone/0": []})
    source = looking(broker)
    lost(source, broker)
    broker.may_answer.clear()
    source.forget()
    broker.may_answer.set()
    wait_until(lambda: source.known is not None, "that it can")
    assert found(source, 0, end=1).time == NOW
