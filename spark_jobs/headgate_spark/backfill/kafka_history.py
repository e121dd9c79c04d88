"""What of topics is their history: which options leave that alone, where it begins, and whether Kafka still keeps it.

Pure: what Kafka keeps is handed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headgate_spark.backfill.refusals import BackfillError

Offsets = dict[str, dict[str, int]]
"""By topic and partition, as Spark's source writes its offsets."""
Spans = dict[str, dict[str, tuple[int, int]]]
"""By topic and partition: the offset of the first record, and the one after the last. JSON makes lists of them."""

EARLIEST = -2
"""How Spark writes the beginning of a partition."""

OPTIONS = (
    "startingOffsets",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
"""Those of Spark's source that do not change which records are read, besides `kafka.*`; in any letter case."""
_ALLOWED = frozenset(map(str.lower, OPTIONS))
_OF_SPARK = frozenset(
    f"kafka.{name}"
    for name in (
        "auto.offset.reset",
        "enable.auto.commit",
        "interceptor.classes",
        "key.deserializer",
        "value.deserializer",
    )
)

_BEGINNING = "write where the history begins as offsets, with startingOffsets as JSON"
_END = "leave it out: the history ends where the topics end at the first start"
_TOPICS = "name the topics in `subscribe` of the source, with commas between"
_REMEDIES = {
    "startingtimestamp": _BEGINNING,
    "startingoffsetsbytimestamp": _BEGINNING,
    "startingoffsetsbytimestampstrategy": _BEGINNING,
    "endingoffsets": _END,
    "endingtimestamp": _END,
    "endingoffsetsbytimestamp": _END,
    "subscribe": _TOPICS,
    "subscribepattern": _TOPICS,
    "assign": _TOPICS,
}


def options(given: Mapping[str, str]) -> str | None:
    """Return which option of Spark's source cannot be backfilled, and what to do instead; `None`: all can.

    Spark prefers timestamps to offsets, without a word; the records between the two would be read twice, or never.
    """
    for name in given:
        lower = name.lower()
        if lower in _OF_SPARK:
            return f"option {name} is Spark's own to set: leave it out"
        if lower not in _ALLOWED and not name.startswith("kafka."):
            remedy = _REMEDIES.get(lower, f"leave it out, or give one of kafka.*, {', '.join(OPTIONS)}")
            return f"option {name} may change which records are read: {remedy}"
    try:
        starting_offsets(given)
    except ValueError as error:
        return str(error)
    return None


def starting_offsets(given: Mapping[str, str]) -> Offsets | None:
    """Return where the history is to begin; `None`: where each partition does. Raises ValueError."""
    text = _value(given, "startingOffsets", "earliest")
    if str(text).strip().lower() == "earliest":
        return None
    try:
        offsets = json.loads(text)
        rows = [
            (topic, int(p), offset) for topic, of_topic in offsets.items() for p, offset in of_topic.items()
        ]
    except (AttributeError, TypeError, ValueError):
        raise ValueError(_not_offsets(text)) from None
    if not rows or not all(
        type(offset) is int and offset >= EARLIEST and offset != -1 for *_, offset in rows
    ):
        raise ValueError(_not_offsets(text))
    return {topic: {str(p): offset for name, p, offset in rows if name == topic} for topic in offsets}


def may_lose(given: Mapping[str, str]) -> bool:
    """Tell whether records that are gone are to be passed over."""
    return str(_value(given, "failOnDataLoss", "true")).strip().lower() == "false"


def history(kept: Spans, wanted: Offsets | None) -> Spans:
    """Return which offsets are the history, where Kafka keeps `kept` and `wanted` says where to begin.

    Raises `BackfillError` where `wanted` is not about these partitions, or about records that are not there.
    """
    if wanted is None:
        return kept
    for topic, partition in sorted(_partitions(wanted) ^ _partitions(kept)):
        where = f"startingOffsets: partition {partition} of topic {topic}"
        if partition in wanted.get(topic, {}):
            raise BackfillError(f"{where} does not exist: leave it out")
        raise BackfillError(f"{where} has no offset: add it, {EARLIEST} for its beginning")
    return {
        topic: {p: (_begin(topic, p, wanted[topic][p], span), span[1]) for p, span in spans.items()}
        for topic, spans in kept.items()
    }


def lost(cut: Any, kept: Spans) -> str | None:
    """Return what of the history Kafka does not keep any more; `None`: nothing."""
    for topic, spans in cut.items():
        for partition, (begin, end) in spans.items():
            first, last = kept.get(topic, {}).get(partition, (0, 0))
            if begin < end and not first <= begin < end <= last:
                return (
                    f"topic {topic}: partition {partition} was cut at offsets {begin} to {end}, and Kafka keeps "
                    f"{first} to {last}: cut what is there with a new checkpoint, or pass over what is gone with "
                    "failOnDataLoss=false"
                )
    return None


def begins_of(cut: Any) -> Offsets:
    return {topic: {p: span[0] for p, span in spans.items()} for topic, spans in cut.items()}


def later(begins: Offsets, first: Offsets, ends: Offsets) -> Offsets:
    """Return where a history begins that leaves out what is before the `first` records; at its end without one."""
    return {
        topic: {
            p: min(max(begin, first.get(topic, {}).get(p, ends[topic][p])), ends[topic][p])
            for p, begin in of_topic.items()
        }
        for topic, of_topic in begins.items()
    }


def ends_of(cut: Any) -> Offsets:
    return {topic: {p: span[1] for p, span in spans.items()} for topic, spans in cut.items()}


def _begin(topic: str, partition: str, wanted: int, span: tuple[int, int]) -> int:
    first, end = span
    if wanted == EARLIEST:
        return first
    if not first <= wanted <= end:
        raise BackfillError(
            f"startingOffsets: partition {partition} of topic {topic} cannot begin at {wanted}, Kafka keeps {first} "
            f"to {end}: write one of these, or {EARLIEST} for its beginning"
        )
    return wanted


def _partitions(offsets: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(topic, partition) for topic, of_topic in offsets.items() for partition in of_topic}


def _value(given: Mapping[str, str], option: str, default: str) -> str:
    return next((value for name, value in given.items() if name.lower() == option.lower()), default)


def _not_offsets(text: Any) -> str:
    return (
        f"option startingOffsets is {text!r}, which is no beginning of a history: leave it out for the earliest, or "
        f'write JSON such as {{"topic": {{"0": 23, "1": {EARLIEST}}}}}'
    )
