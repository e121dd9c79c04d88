"""What of topics is their history: tables, without a broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate_spark.backfill import BackfillError, Kafka, kafka_history
from headgate_spark.backfill.kafka_history import Offsets, Spans

SERVERS = {"kafka.bootstrap.servers": "broker:9092"}


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("startingTimestamp", "5", "may change which records are read: .*startingOffsets as JSON"),
        ("STARTINGTIMESTAMP", "5", "option STARTINGTIMESTAMP may change"),
        ("startingOffsetsByTimestamp", '{"t": {"0": 5}}', "startingOffsets as JSON"),
        ("startingOffsetsByTimestampStrategy", "latest", "startingOffsets as JSON"),
        ("endingTimestamp", "5", "the history ends where the topics end at the first start"),
        ("endingOffsetsByTimestamp", '{"t": {"0": 5}}', "the history ends where the topics end"),
        ("endingoffsets", "latest", "the history ends where the topics end"),
        ("subscribe", "t", "name the topics in `subscribe` of the source"),
        ("subscribePattern", "t.*", "name the topics in `subscribe` of the source"),
        ("assign", '{"t": [0]}', "name the topics in `subscribe` of the source"),
        ("startOffsets", "earliest", "leave it out, or give one of kafka.*, startingOffsets"),
        ("kafka.auto.offset.reset", "latest", "is Spark's own to set: leave it out"),
        ("startingOffsets", "latest", "option startingOffsets is 'latest', which is no beginning"),
        ("STARTINGOFFSETS", "Latest", "option startingOffsets is 'Latest', which is no beginning"),
        ("startingOffsets", '{"t": {"0": -1}}', "which is no beginning of a history"),
        ("startingOffsets", '{"t": {"first": 3}}', "which is no beginning of a history"),
        ("startingOffsets", '{"t": 3}', "which is no beginning of a history"),
        ("startingOffsets", "{}", "which is no beginning of a history"),
        ("startingOffsets", {"t": {"0": 3}}, "or write JSON"),
    ],
)
def test_an_option_that_would_change_what_is_read_is_refused(option: str, value: Any, expected: str) -> None:
    with pytest.raises(BackfillError, match=f"^topic t: .*{expected}"):
        Kafka("t", SERVERS | {option: value})


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "earliest"},
        {"StartingOffsets": " Earliest "},
        {"startingOffsets": '{"t": {"0": 5, "1": -2}}'},
        {"failOnDataLoss": "false", "minPartitions": "8", "MAXOFFSETSPERTRIGGER": "100"},
        {"kafka.security.protocol": "SASL_SSL", "kafka.isolation.level": "read_committed"},
    ],
)
def test_other_options_are_taken(options: dict[str, str]) -> None:
    Kafka("t", SERVERS | options)


KEPT: Spans = {"t": {"0": (10, 50), "1": (0, 0)}}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, KEPT),
        ({"t": {"0": 20, "1": -2}}, {"t": {"0": (20, 50), "1": (0, 0)}}),
        ({"t": {"0": 50, "1": 0}}, {"t": {"0": (50, 50), "1": (0, 0)}}),
    ],
)
def test_the_history_begins_where_it_is_asked_to(wanted: Offsets | None, expected: Spans) -> None:
    assert kafka_history.history(KEPT, wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"t": {"0": 20}}, "partition 1 of topic t has no offset: add it"),
        ({"t": {"0": 20, "1": 0, "2": 0}}, "partition 2 of topic t does not exist: leave it out"),
        ({"t": {"0": 20, "1": 0}, "u": {"0": 0}}, "partition 0 of topic u does not exist"),
        ({"t": {"0": 9, "1": 0}}, "partition 0 of topic t cannot begin at 9, Kafka keeps 10 to 50"),
        ({"t": {"0": 51, "1": 0}}, "partition 0 of topic t cannot begin at 51"),
    ],
)
def test_a_beginning_that_is_not_there_is_refused(wanted: Offsets, expected: str) -> None:
    with pytest.raises(BackfillError, match=expected):
        kafka_history.history(KEPT, wanted)


@pytest.mark.parametrize(
    ("now", "gone"),
    [
        ({"t": {"0": (10, 90), "1": (30, 40)}}, False),
        ({"t": {"0": (11, 90), "1": (0, 0)}}, True),
        ({"t": {"0": (50, 90), "1": (0, 0)}}, True),
        ({"t": {"0": (0, 12), "1": (0, 0)}}, True),
        ({"t": {"1": (0, 0)}}, True),
    ],
    ids=["all there", "the first has gone", "all have gone", "the topic is another one", "no such partition"],
)
def test_records_of_the_history_that_have_gone_are_missed(now: Spans, *, gone: bool) -> None:
    kept_and_read = json.loads(json.dumps(KEPT))
    reason = kafka_history.lost(kept_and_read, now)
    if gone:
        assert reason is not None
        assert "topic t: partition 0 was cut at offsets 10 to 50" in reason
        assert "new checkpoint" in reason
    else:
        assert reason is None


def test_a_cut_says_where_each_partition_begins_and_ends() -> None:
    cut = json.loads(json.dumps(KEPT))
    assert kafka_history.begins_of(cut) == {"t": {"0": 10, "1": 0}}
    assert kafka_history.ends_of(cut) == {"t": {"0": 50, "1": 0}}


def test_a_history_from_a_time_on_begins_at_the_first_such_record_and_never_outside_of_it() -> None:
    begins = {"t": {"0": 10, "1": 0, "2": 5, "3": 5}, "u": {"0": 7}}
    ends = {"t": {"0": 50, "1": 30, "2": 9, "3": 9}, "u": {"0": 7}}
    first = {"t": {"0": 40, "2": 3, "3": 12}}
    expected = {"t": {"0": 40, "1": 30, "2": 5, "3": 9}, "u": {"0": 7}}
    assert kafka_history.later(begins, first, ends) == expected
