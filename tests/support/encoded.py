"""One message in Avro, in Avro behind the id of a schema, and in Protobuf, by the libraries that jobs use for them.

Each format has what writes its values and the decoder that a job would register for them.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, timestamp_pb2

from headgate_spark.event_time import Decoder

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Ride",
        "fields": [
            {"name": "id", "type": "string"},
            {
                "name": "pickup",
                "type": {
                    "type": "record",
                    "name": "Stop",
                    "fields": [
                        {
                            "name": "time",
                            "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
                        }
                    ],
                },
            },
        ],
    }
)
SCHEMA_ID = struct.pack(">bI", 0, 7)
"""What a schema registry's serializer writes before each value."""


@dataclass(frozen=True)
class Encoded:
    """A format, where its decoder has the event time, and how both ends handle it."""

    form: str
    column: str
    encode: Callable[[int | None], bytes]
    """From milliseconds since 1970; `None`: the field is not set."""
    decode: Decoder


def _in_avro(at_ms: int | None) -> bytes:
    out = io.BytesIO()
    time = None if at_ms is None else EPOCH + timedelta(milliseconds=at_ms)
    fastavro.schemaless_writer(out, SCHEMA, {"id": "ride", "pickup": {"time": time}})
    return out.getvalue()


def _of_avro(value: bytes) -> object:
    return fastavro.schemaless_reader(io.BytesIO(value), SCHEMA)


def _ride() -> Any:
    """Return the class that `protoc` would generate for `Ride`."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="ride.proto", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    stop = file.message_type.add(name="Stop")
    stop.field.add(
        name="time",
        number=1,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_OPTIONAL,
        type_name=".google.protobuf.Timestamp",
    )
    stop.field.add(name="at_millis", number=2, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    ride = file.message_type.add(name="Ride")
    ride.field.add(
        name="pick_up", number=1, type=field.TYPE_MESSAGE, label=field.LABEL_OPTIONAL, type_name=".Stop"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Ride"))


RIDE = _ride()


def _in_protobuf(at_ms: int | None) -> bytes:
    ride = RIDE()
    ride.pick_up.SetInParent()
    if at_ms is not None:
        ride.pick_up.at_millis = at_ms
        ride.pick_up.time.FromMilliseconds(at_ms)
    return bytes(ride.SerializeToString())


def _of_protobuf(value: bytes) -> object:
    return json_format.MessageToDict(RIDE.FromString(value), preserving_proto_field_name=True)


AVRO = Encoded("Avro", "$.pickup.time", _in_avro, _of_avro)
AVRO_BEHIND_AN_ID = Encoded(
    "Avro",
    "$.pickup.time",
    lambda at: SCHEMA_ID + _in_avro(at),
    lambda value: _of_avro(value[len(SCHEMA_ID) :]),
)
PROTOBUF = Encoded("Protobuf", "$.pick_up.time", _in_protobuf, _of_protobuf)
"""Its moment is a `google.protobuf.Timestamp`, which becomes a text."""
PROTOBUF_MILLIS = Encoded("Protobuf", "$.pick_up.at_millis", _in_protobuf, _of_protobuf)
"""Its moment is an `int64`, which becomes a text too, of digits."""
EVERY = {
    "avro": AVRO,
    "avro behind the id of a schema": AVRO_BEHIND_AN_ID,
    "protobuf": PROTOBUF,
    "protobuf, milliseconds": PROTOBUF_MILLIS,
}
