"""Records that are dated far ahead, or not at all: they neither count nor hide others, and are named once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from headgate_spark.kafka.lookups import BEGINNING, END, LATEST_RECORD, PartitionError, Record
from headgate_spark.kafka.record_times import RecordTimes
from headgate_spark.planner.event_times import Found, Sampled

NOW = 1_000_000.0
HOUR_MS = 3_600_000
NOW_MS = 1_000_000_000
AHEAD = NOW_MS + HOUR_MS + 1


class Broker:
    """One partition, with Kafka's index and a reader of single records."""

    def __init__(self, *stamps: int, begins_at: int = 0, replicated_after: int = 0) -> None:
        """The last record is with all replicas after so many questions for the latest one."""
        self.stamps = stamps
        self.begins_at = begins_at
        self.replicated_after = replicated_after
        self.committed = False
        self.refuses_latest: str | None = None
        self.reads = 0
        self.finds = 0

    def find(self, asked: Mapping[str, int]) -> dict[str, Found | None]:
        self.finds += 1
        if self.refuses_latest is not None and LATEST_RECORD in asked.values():
            raise PartitionError(f"partition t/0: org.apache.kafka.common.errors.{self.refuses_latest}")
        return {partition: self._first(at) for partition, at in asked.items()}

    def _first(self, at: int) -> Found | None:
        if at in (BEGINNING, END):
            return Found(self.begins_at if at == BEGINNING else len(self.stamps), -1)
        stamps = self.stamps[:-1] if self.replicated_after else self.stamps
        if at == LATEST_RECORD:
            if self.replicated_after:
                self.replicated_after -= 1
                return None
            at = max(stamps, default=0)
        return next((Found(n, stamp) for n, stamp in enumerate(stamps) if stamp >= at), None)

    def read(self, asked: Mapping[str, int], most: int) -> dict[str, Sequence[Record]]:
        self.reads += 1
        records = [Record(n, stamp) for n, stamp in enumerate(self.stamps)]
        return {partition: records[at:][:most] for partition, at in asked.items()}

    def without_transactions(self, partitions: Collection[str]) -> Collection[str]:
        return partitions

    def ends(self, partitions: Collection[str] = ("t/0",)) -> dict[str, int]:
        return dict.fromkeys(partitions, len(self.stamps))

    def close(self) -> None:
        pass


def times(broker: Broker) -> RecordTimes:
    return RecordTimes("flights", broker, lambda: broker, clock=lambda: NOW, earliest=0)


def test_without_nonsense_the_index_is_asked_and_it_is_read_once_that_a_record_is_there():
    broker = Broker(10, 20, 30)
    told = times(broker)
    for _ in range(3):
        assert told.first_later({"t/0": 20}) == {"t/0": Found(2, 30)}
        assert told.latest(["t/0"]) == {"t/0": Found(2, 30)}
    assert broker.reads == 1


def test_while_the_latest_record_is_not_with_all_replicas_it_is_asked_for_again():
    assert times(Broker(10, 30, 20, 40, replicated_after=2)).latest(["t/0"]) == {"t/0": Found(3, 40)}


def test_where_it_never_is_the_latest_that_has_been_replicated_is_found():
    with capture_logs() as logs:
        found = times(Broker(10, 30, 20, 40, replicated_after=1000)).latest(["t/0"])
    assert found == {"t/0": Found(1, 30)}
    assert logs == []


@pytest.mark.parametrize("stamps", [(10, 30, 20, 40, 35), (10, 40, AHEAD, 30), ()])
def test_where_kafka_cannot_be_asked_for_the_latest_record_it_is_found_all_the_same(stamps: tuple[int, ...]):
    """Before Kafka 3.0, and at services that take only earlier questions."""
    broker = Broker(*stamps)
    broker.refuses_latest = "UnsupportedVersionException: The node does not support LIST_OFFSETS"
    told = times(broker)
    for _ in range(2):
        (latest,) = told.latest(["t/0"]).values()
        assert (latest and latest.time) == (40 if stamps else None)


def test_where_it_cannot_be_asked_a_partition_without_timestamps_is_aligned_once_it_has_one():
    broker = Broker(-1)
    broker.refuses_latest = "UnsupportedVersionException"
    told = times(broker)
    assert told.latest(["t/0"]) == {"t/0": None}
    assert told.sampled.unreadable == {"t/0": 0}
    broker.stamps = (-1, 20)
    assert told.latest(["t/0"]) == {"t/0": Found(1, 20)}
    assert told.sampled.unreadable == {}


def test_any_other_refusal_to_name_the_latest_record_is_told():
    broker = Broker(10)
    broker.refuses_latest = "TopicAuthorizationException: Not authorized to access topics: [t]"
    with pytest.raises(PartitionError, match="Not authorized"):
        times(broker).latest(["t/0"])


def test_a_record_behind_one_that_is_dated_far_ahead_is_found():
    found = times(Broker(10, 20, AHEAD, 30, 40))
    assert found.first_later({"t/0": 5}) == {"t/0": Found(0, 10)}
    assert found.first_later({"t/0": 25}) == {"t/0": Found(3, 30)}
    assert found.first_later({"t/0": 30}) == {"t/0": Found(4, 40)}
    assert found.first_later({"t/0": 40}) == {"t/0": None}
    assert found.latest(["t/0"]) == {"t/0": Found(4, 40)}


def test_one_at_the_end_leaves_what_was_before_it_the_latest():
    found = times(Broker(10, 20, 15, AHEAD))
    assert found.latest(["t/0"]) == {"t/0": Found(1, 20)}
    assert found.first_later({"t/0": 20}) == {"t/0": None}


def test_a_partition_with_nothing_else_has_no_event_time():
    found = times(Broker(AHEAD, AHEAD + 5))
    assert found.latest(["t/0"]) == {"t/0": None}
    assert found.first_later({"t/0": 0}) == {"t/0": None}


def test_a_record_exactly_as_far_ahead_as_is_allowed_counts():
    assert times(Broker(10, AHEAD - 1)).latest(["t/0"]) == {"t/0": Found(1, AHEAD - 1)}


def test_it_is_named_once():
    found = times(Broker(10, AHEAD, 30))
    with capture_logs() as logs:
        for _ in range(3):
            found.first_later({"t/0": 20})
    assert [(entry["partition"], entry["offset"], entry["timestamp"]) for entry in logs] == [
        ("t/0", 1, AHEAD)
    ]


def test_what_hides_others_is_told_with_its_offset_until_it_is_removed():
    broker = Broker(10, AHEAD, 30)
    told = times(broker)
    assert told.sampled == Sampled(None, {}, {})
    told.first_later({"t/0": 20})
    told.latest(["t/0"])
    assert told.sampled == Sampled(0, {}, {"t/0": 1})
    broker.stamps = (10, 30, 30)
    told.latest(["t/0"])
    assert told.sampled == Sampled(0, {}, {})


TODAY = 1_700_000_000_000
"""In milliseconds; `TODAY // 1000` is what a producer writes that takes seconds for them."""


def of_today(broker: Broker) -> RecordTimes:
    return RecordTimes("flights", broker, lambda: broker, clock=lambda: TODAY / 1000)


def test_timestamps_in_seconds_are_none_and_their_partition_is_named_once():
    told = of_today(Broker(*(TODAY // 1000 + n for n in range(3))))
    with capture_logs() as logs:
        for _ in range(2):
            assert told.latest(["t/0"]) == {"t/0": None}
            assert told.first_later({"t/0": -1}) == {"t/0": None}
    assert [entry["partition"] for entry in logs] == ["t/0"]
    assert "seconds" in logs[0]["event"]
    assert told.sampled == Sampled(None, {"t/0": 0}, {})


def test_once_their_producer_is_corrected_the_partition_has_event_times():
    broker = Broker(TODAY // 1000, TODAY // 1000 + 1)
    told = of_today(broker)
    told.latest(["t/0"])
    broker.stamps = (*broker.stamps, TODAY)
    assert told.latest(["t/0"]) == {"t/0": Found(2, TODAY)}
    assert told.first_later({"t/0": -1}) == {"t/0": Found(2, TODAY)}
    assert told.sampled == Sampled(None, {}, {})


def test_before_one_that_is_dated_far_ahead_they_are_none_either():
    told = of_today(Broker(TODAY // 1000, TODAY * 1000, TODAY // 1000))
    assert told.latest(["t/0"]) == {"t/0": None}
    assert told.first_later({"t/0": -1}) == {"t/0": None}


def test_records_without_a_timestamp_move_nothing():
    told = times(Broker(-1, 20, -1))
    assert told.first_later({"t/0": -1}) == {"t/0": Found(1, 20)}
    assert told.latest(["t/0"]) == {"t/0": Found(1, 20)}
    assert told.sampled == Sampled(None, {}, {})


def test_a_partition_without_any_timestamp_has_no_event_time_and_is_named_once():
    broker = Broker(-1, -1, -1, begins_at=1)
    told = times(broker)
    with capture_logs() as logs:
        for _ in range(3):
            assert told.latest(["t/0"]) == {"t/0": None}
    (entry,) = logs
    assert (entry["source"], entry["partition"]) == ("flights", "t/0")
    assert "message.timestamp.type" in entry["event"]
    assert told.sampled == Sampled(None, {"t/0": 1}, {})
    assert broker.finds == 3 + 3, "that it has no timestamp, and where its log begins and ends, is asked once"
    broker.stamps = (-1, -1, -1, 40)
    assert told.latest(["t/0"]) == {"t/0": Found(3, 40)}
    assert told.sampled == Sampled(None, {}, {})


def test_a_partition_without_records_lacks_nothing():
    for broker in (Broker(), Broker(-1, -1, begins_at=2)):
        told = times(broker)
        with capture_logs() as logs:
            assert told.latest(["t/0"]) == {"t/0": None}
        assert logs == []
        assert told.sampled == Sampled(None, {}, {})
