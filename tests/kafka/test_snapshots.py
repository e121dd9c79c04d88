"""Snapshots are searched beside planning: all partitions at once, with few reads, whatever a broker does."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from headgate_spark.kafka import beside
from headgate_spark.kafka.lookups import Record, UnansweredError
from headgate_spark.kafka.snapshots import TRIES, KafkaSnapshots, SourceSnapshots
from headgate_spark.planner.snapshots import SearchRange
from support.debezium import CONNECTORS, avro, of_avro, plain
from support.waiting import wait_until


@dataclass
class Broker:
    """Partitions with so many rows of a snapshot and changes behind them; values are made when they are read."""

    rows: Mapping[str, tuple[int, int]]
    value: Callable[[str], bytes] = lambda flag: plain(CONNECTORS["mysql"](flag))
    failures: int = 0
    silent: set[str] = field(default_factory=set)
    reads: int = 0
    closed: int = 0

    def read(self, asked: Mapping[str, int], most: int) -> Mapping[str, Sequence[Record]]:
        self.reads += 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("org.apache.kafka.common.errors.TimeoutException: no node")
        found = {
            partition: self._records(partition, at)
            for partition, at in asked.items()
            if partition not in self.silent
        }
        if silent := self.silent & asked.keys():
            raise UnansweredError(f"partition {min(silent)}: no records came within 5 s", found)
        return found

    def _records(self, partition: str, at: int) -> Sequence[Record]:
        rows, changes = self.rows[partition]
        return [Record(at, 0, self.value("true" if at < rows else "false"))] if at < rows + changes else []

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def searching(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., SourceSnapshots]]:
    monkeypatch.setattr(beside, "REST", 0)
    opened: list[SourceSnapshots] = []

    def of(broker: Broker, decoder: Callable[[bytes], object] | None = None) -> SourceSnapshots:
        opened.append(SourceSnapshots("orders", lambda: broker, lambda: decoder, rest=0.0, retry=0.0))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


def ends(source: SourceSnapshots, broker: Broker) -> dict[str, int]:
    source.search({partition: SearchRange(0, sum(parts)) for partition, parts in broker.rows.items()})
    wait_until(lambda: len(source.known or {}) == len(broker.rows), "the ends")
    return {partition: found.end for partition, found in (source.known or {}).items()}


@pytest.mark.parametrize("connector", CONNECTORS)
def test_hundreds_of_partitions_are_searched_together(
    connector: str, searching: Callable[..., SourceSnapshots]
) -> None:
    draw = random.Random(1)
    rows = {f"t/{n}": (draw.randint(0, 10**6), draw.randint(0, 10**6)) for n in range(300)}
    broker = Broker(rows, lambda flag: plain(CONNECTORS[connector](flag)))
    source = searching(broker)
    assert ends(source, broker) == {partition: count for partition, (count, _) in rows.items()}
    assert max(source.reads.values()) <= 64
    assert broker.reads <= 2 * 64


def test_what_only_the_job_can_read_its_decoder_reads(searching: Callable[..., SourceSnapshots]) -> None:
    broker = Broker({"t/0": (70, 30)}, lambda flag: avro(CONNECTORS["mysql"](flag)))
    assert ends(searching(broker, of_avro), broker) == {"t/0": 70}


def test_without_a_decoder_that_is_named_with_the_partition_and_the_remedy(
    searching: Callable[..., SourceSnapshots],
) -> None:
    broker = Broker({"t/0": (70, 30)}, lambda flag: avro(CONNECTORS["postgresql"](flag)))
    source = searching(broker)
    assert ends(source, broker) == {"t/0": 0}
    assert source.problems.keys() == {"t/0"}
    assert "the job has no decoder" in source.problems["t/0"]
    assert "event_time.register" in source.problems["t/0"]


def test_a_broker_that_does_not_answer_is_asked_again_and_after_some_failures_nobody_waits_for_it(
    searching: Callable[..., SourceSnapshots],
) -> None:
    broker = Broker({"t/0": (70, 30)}, failures=TRIES - 1)
    assert ends(searching(broker), broker) == {"t/0": 70}
    assert broker.closed == TRIES - 1, "a client that has failed is not used again"
    broker = Broker({"t/0": (70, 30)}, failures=10**9)
    source = searching(broker)
    source.search({"t/0": SearchRange(0, 100)})
    wait_until(lambda: source.known is None, "that it cannot be told")
    assert "See that its brokers answer" in source.problems[""]
    broker.failures = 0
    wait_until(lambda: bool(source.known), "that it can again")


def test_a_partition_that_does_not_answer_keeps_no_other_from_being_known(
    searching: Callable[..., SourceSnapshots],
) -> None:
    broker = Broker({"t/0": (70, 30), "t/1": (0, 9)}, silent={"t/0"})
    source = searching(broker)
    source.search({"t/0": SearchRange(0, 100), "t/1": SearchRange(0, 9)})
    wait_until(lambda: broker.reads > TRIES, "failures")
    broker.silent = set()
    wait_until(lambda: {"t/0", "t/1"} <= (source.known or {}).keys(), "both")


def test_of_a_topic_that_is_another_now_nothing_is_known(searching: Callable[..., SourceSnapshots]) -> None:
    broker = Broker({"t/0": (70, 30)})
    source = searching(broker)
    ends(source, broker)
    source.forget()
    assert source.known == {}
    broker.rows = {"t/0": (5, 95)}
    assert ends(source, broker) == {"t/0": 5}
    assert broker.closed == 1, "it may have been connected to the topic as it was"


def test_a_source_that_is_none_of_kafka_says_what_to_do() -> None:
    never = KafkaSnapshots(lambda _: pytest.fail("nothing is connected"))
    assert never.known("files") is None
    assert "only Kafka sources" in never.problems("files")[""]


def test_a_decoder_that_the_query_names_holds(searching: Callable[..., SourceSnapshots]) -> None:
    broker = Broker({"t/0": (70, 30)}, lambda flag: avro(CONNECTORS["mysql"](flag)))
    sources = KafkaSnapshots(lambda _: lambda: broker)
    sources.decode_by({"orders": of_avro})
    sources.open("orders", {})
    sources.search("orders", {"t/0": SearchRange(0, 100)})
    wait_until(lambda: bool(sources.known("orders")), "the end")
    assert (sources.known("orders") or {})["t/0"].end == 70
    sources.close()


def test_what_is_searched_no_more_keeps_no_source_from_telling(
    searching: Callable[..., SourceSnapshots],
) -> None:
    broker = Broker({"t/0": (70, 30), "gone/0": (1, 1)}, silent={"gone/0"})
    source = searching(broker)
    source.search({"gone/0": SearchRange(0, 2)})
    wait_until(lambda: source.known is None, "that it cannot be told")
    source.search({})
    wait_until(lambda: source.known is not None, "that it can")
    source.search({"gone/0": SearchRange(0, 2)})
    wait_until(lambda: source.known is None, "that it cannot be told")
    source.forget()
    wait_until(lambda: source.known is not None, "that it can")
    broker.rows = {"t/0": (70, 30)}
    assert ends(source, broker) == {"t/0": 70}


@pytest.mark.parametrize("end", [SourceSnapshots.forget, SourceSnapshots.close])
def test_a_search_ends_with_what_it_was_for(
    end: Callable[[SourceSnapshots], None], searching: Callable[..., SourceSnapshots]
) -> None:
    """Its records are others, or nobody wants to know."""
    begun, may_go_on = threading.Event(), threading.Event()

    class Slow(Broker):
        def read(self, asked: Mapping[str, int], most: int) -> Mapping[str, Sequence[Record]]:
            begun.set()
            assert may_go_on.wait(30)
            return super().read(asked, most)

    broker = Slow({"t/0": (70, 30)})
    source = searching(broker)
    source.search({"t/0": SearchRange(0, 100)})
    assert begun.wait(30)
    end(source)
    may_go_on.set()
    wait_until(
        lambda: not any(each.name == "headgate-snapshot-orders" for each in threading.enumerate()), "its end"
    )
    assert broker.reads == 1


def test_of_partitions_that_are_gone_nothing_is_kept(searching: Callable[..., SourceSnapshots]) -> None:
    broker = Broker({"t/0": (70, 30), "t/1": (1, 1)}, lambda flag: avro(CONNECTORS["postgresql"](flag)))
    source = searching(broker)
    ends(source, broker)
    source.drop({"t/1"})
    assert (source.known or {}).keys() == source.problems.keys() == source.reads.keys() == {"t/0"}


def test_an_open_end_is_searched_again_where_the_log_has_grown_and_one_before_a_change_is_not(
    searching: Callable[..., SourceSnapshots],
) -> None:
    broker = Broker({"t/0": (70, 0), "t/1": (5, 5)})
    source = searching(broker)
    assert ends(source, broker) == {"t/0": 70, "t/1": 5}
    broker.rows = {"t/0": (90, 10), "t/1": (5, 50)}
    source.search({"t/0": SearchRange(0, 100), "t/1": SearchRange(0, 55)})
    wait_until(lambda: (source.known or {})["t/0"].end == 90, "where it ends now")
    assert (source.known or {})["t/1"].until == 10


def test_a_record_that_does_not_tell_is_no_problem_behind_those_that_do(
    searching: Callable[..., SourceSnapshots],
) -> None:
    class Foreign(Broker):
        def _records(self, partition: str, at: int) -> Sequence[Record]:
            return [Record(at, 0, b"?")] if at == 99 else super()._records(partition, at)

    broker = Foreign({"t/0": (70, 30)})
    source = searching(broker)
    assert ends(source, broker) == {"t/0": 70}
    assert source.problems == {}


def test_a_partition_whose_records_tell_again_has_no_problem_any_more(
    searching: Callable[..., SourceSnapshots],
) -> None:
    broker = Broker({"t/0": (70, 30)}, lambda flag: avro(CONNECTORS["mysql"](flag)))
    source = searching(broker)
    ends(source, broker)
    assert source.problems.keys() == {"t/0"}
    broker.value = lambda flag: plain(CONNECTORS["mysql"](flag))
    source.search({"t/0": SearchRange(50, 100)})
    wait_until(lambda: (source.known or {})["t/0"].end == 70, "its end")
    assert source.problems == {}
