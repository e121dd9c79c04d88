"""What a record of a change stream says of itself: whether it is one of a snapshot, and whether that is over.

Debezium's connectors write `source.snapshot` into the envelope of each record:

    true, first, first_in_data_collection          a record of a snapshot
    last_in_data_collection                        the last one of its table
    last                                           the last one of all tables
    false, incremental, or nothing                 a change, or a row read by an incremental snapshot between changes

as `io.debezium.connector.SnapshotRecord` has them; before version 1.0 they were booleans. An envelope may be plain
JSON, JSON with its schema beside it (`schema`, `payload`), or JSON behind the id of a schema. What is in Avro or
Protobuf the job decodes (`headgate_spark.event_time`). Records that `ExtractNewRecordState` has flattened tell by
`add.fields: source.snapshot`. A record without a value is a tombstone: only a change leaves one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from headgate_spark.event_time import Decoder
from headgate_spark.kafka.payload import MOST_TOLD, shortened

SCHEMA_ID_BYTES = 5
"""A zero and four bytes of an id: how values of a schema registry begin."""
FLATTENED = "__source_snapshot", "__source_name"

_OF_SNAPSHOT = frozenset({"true", "first", "first_in_data_collection", "last_in_data_collection", "last"})
_OF_CHANGES = frozenset({"false", "incremental"})


class Mark(NamedTuple):
    """What a record says of itself."""

    is_snapshot: bool
    connector: str | None = None
    """The logical name of the connector that wrote it (`topic.prefix`)."""
    ends_table: bool = False
    """It is the last one of its table in the snapshot."""
    ends_snapshot: bool = False
    """It is the last one of the snapshot."""


class NoEnvelopeError(Exception):
    """A record does not say whether it is one of a snapshot; the message says why."""


TOMBSTONE = Mark(is_snapshot=False)


def mark_of(value: bytes | None, decode: Decoder | None) -> Mark:
    """Return what a record says of itself. `decode` is the job's, `None`: it has none. Raises `NoEnvelopeError`."""
    if value is None:
        return TOMBSTONE
    envelope = _decoded(value, decode)
    if isinstance(envelope, Mapping) and "payload" in envelope and "schema" in envelope:
        envelope = envelope["payload"]
        if envelope is None:
            return TOMBSTONE
    if not isinstance(envelope, Mapping):
        raise NoEnvelopeError("it is no object")
    source = envelope.get("source")
    if isinstance(source, Mapping):
        return _mark(source.get("snapshot"), source.get("name"))
    if FLATTENED[0] in envelope:
        return _mark(envelope[FLATTENED[0]], envelope.get(FLATTENED[1]))
    raise NoEnvelopeError("it has no `source`, as envelopes of Debezium have")


def _decoded(value: bytes, decode: Decoder | None) -> object:
    if decode is None and value[:1] == b"\0":
        value = value[SCHEMA_ID_BYTES:]
        if value[:1] != b"{":
            raise NoEnvelopeError(
                "it is behind the id of a schema and no JSON, and the job has no decoder for it"
            )
    try:
        return json.loads(value) if decode is None else decode(value)
    except Exception as error:  # decoders are the job's, and fail in many ways
        raise NoEnvelopeError(shortened(f"it cannot be decoded ({type(error).__name__}: {error})")) from None


def _mark(flag: object, name: object) -> Mark:
    word = "false" if flag is None else str(flag).lower()
    connector = name if isinstance(name, str) else None
    if word in _OF_CHANGES:
        return Mark(is_snapshot=False, connector=connector)
    if word not in _OF_SNAPSHOT:
        told = repr(flag)
        raise NoEnvelopeError(
            f"its `source.snapshot` is {told[:MOST_TOLD]}, which no known version of Debezium writes"
        )
    return Mark(
        is_snapshot=True,
        connector=connector,
        ends_table=word in ("last_in_data_collection", "last"),
        ends_snapshot=word == "last",
    )
