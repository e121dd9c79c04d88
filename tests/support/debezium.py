"""Records of change streams as Debezium's connectors write them, with each of their members.

The members, their order and their types are those of `io.debezium.connector.*.SourceInfoStructMaker` and
`io.debezium.data.Envelope` (3.x), as the examples in Debezium's documentation show them on the wire: plain JSON, JSON
with the schema of Kafka Connect beside it, and both formats of a registry's converters.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import fastavro

SCHEMA_ID = b"\0\0\0\0\x07"
MILLIS = 1_700_000_000_000
FLAGS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
AVRO_TYPES = {"string": "string", "int32": "int", "int64": "long"}


class Member(NamedTuple):
    """One member of a struct: its name, its type in Kafka Connect, and whether it may be null."""

    name: str
    type: str | tuple[Member, ...]
    optional: bool = False
    named: str = ""
    """The name of the type, if it has one."""


TIMES = (Member("ts_us", "int64", True), Member("ts_ns", "int64", True))
COMMON = (
    Member("version", "string"),
    Member("connector", "string"),
    Member("name", "string"),
    Member("ts_ms", "int64"),
    Member("snapshot", "string", True, "io.debezium.data.Enum"),
    Member("db", "string"),
    Member("sequence", "string", True),
    *TIMES,
)
SOURCES: Mapping[str, tuple[Member, ...]] = {
    "mysql": (
        Member("table", "string", True),
        Member("server_id", "int64"),
        Member("gtid", "string", True),
        Member("file", "string"),
        Member("pos", "int64"),
        Member("row", "int32"),
        Member("thread", "int64", True),
        Member("query", "string", True),
    ),
    "postgresql": (
        Member("schema", "string"),
        Member("table", "string"),
        Member("txId", "int64", True),
        Member("lsn", "int64", True),
        Member("xmin", "int64", True),
    ),
    "mongodb": (
        Member("collection", "string"),
        Member("ord", "int32"),
        Member("lsid", "string", True),
        Member("txnNumber", "int64", True),
        Member("wallTime", "int64", True),
    ),
}
ROW = (Member("id", "int64"), Member("note", "string", True))
TRANSACTION = (
    Member("id", "string"),
    Member("total_order", "int64"),
    Member("data_collection_order", "int64"),
)


def envelope_of(connector: str) -> tuple[Member, ...]:
    """Return the members of a connector's envelope."""
    row: str | tuple[Member, ...] = "string" if connector == "mongodb" else ROW
    named = "io.debezium.data.Json" if connector == "mongodb" else "shop.inventory.orders.Value"
    source = Member("source", COMMON + SOURCES[connector], False, f"io.debezium.connector.{connector}.Source")
    return (
        Member("before", row, True, named),
        Member("after", row, True, named),
        source,
        Member("transaction", TRANSACTION, True, "event.block"),
        Member("op", "string"),
        Member("ts_ms", "int64", True),
        *TIMES,
    )


def mysql(flag: str | None, n: int = 0) -> dict[str, Any]:
    at = {"table": "orders", "server_id": 0, "gtid": None, "file": "binlog.000003", "pos": 154, "row": 0}
    source = _source("mysql", flag) | at | {"thread": None, "query": None}
    return _envelope({"id": n, "note": 'a "snapshot": "true" inside'}, source, flag)


def postgresql(flag: str | None, n: int = 0) -> dict[str, Any]:
    at = {"schema": "public", "table": "orders", "txId": 555, "lsn": 24023128, "xmin": None}
    return _envelope({"id": n, "note": "x"}, _source("postgresql", flag) | at, flag)


def mongodb(flag: str | None, n: int = 0) -> dict[str, Any]:
    at = {"collection": "orders", "ord": 31, "lsid": None, "txnNumber": None, "wallTime": None}
    row = json.dumps({"_id": {"$numberLong": str(n)}})
    return _envelope(row, _source("mongodb", flag) | at, flag)


CONNECTORS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "mysql": mysql,
    "postgresql": postgresql,
    "mongodb": mongodb,
}


def _source(connector: str, flag: str | None) -> dict[str, Any]:
    return {
        "version": "3.2.0.Final",
        "connector": connector,
        "name": "shop",
        "ts_ms": MILLIS,
        "snapshot": flag,
        "db": "inventory",
        "sequence": None,
        "ts_us": MILLIS * 1_000,
        "ts_ns": MILLIS * 1_000_000,
    }


def _envelope(after: object, source: Mapping[str, Any], flag: str | None) -> dict[str, Any]:
    return {
        "before": None,
        "after": after,
        "source": source,
        "transaction": None,
        "op": "u" if flag in (None, "false") else "r",
        "ts_ms": MILLIS + 1,
        "ts_us": (MILLIS + 1) * 1_000,
        "ts_ns": (MILLIS + 1) * 1_000_000,
    }


def plain(envelope: Mapping[str, Any]) -> bytes:
    """JSON of a converter with `schemas.enable=false`."""
    return json.dumps(envelope).encode()


def with_schema(envelope: Mapping[str, Any]) -> bytes:
    """JSON of a converter with `schemas.enable=true`."""
    fields = [_connect(member) for member in envelope_of(envelope["source"]["connector"])]
    of_envelope = {"type": "struct", "fields": fields, "optional": False, "version": 2}
    schema = of_envelope | {"name": "shop.inventory.orders.Envelope"}
    return json.dumps({"schema": schema, "payload": envelope}).encode()


def _connect(member: Member) -> dict[str, Any]:
    named = {"name": member.named} if member.named else {}
    if member.name == "snapshot":
        named |= {"version": 1, "parameters": {"allowed": FLAGS}, "default": "false"}
    of_type: dict[str, Any] = {"type": member.type}
    if not isinstance(member.type, str):
        of_type = {"type": "struct", "fields": [_connect(one) for one in member.type]}
    return {**of_type, "optional": member.optional, **named, "field": member.name}


def behind_an_id(envelope: Mapping[str, Any]) -> bytes:
    """JSON of a registry's converter."""
    return SCHEMA_ID + plain(envelope)


def avro(envelope: Mapping[str, Any]) -> bytes:
    """Avro of a registry's converter, which writes by the schema of the connector."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, AVRO_SCHEMAS[envelope["source"]["connector"]], dict(envelope))
    return SCHEMA_ID + out.getvalue()


def avro_schema(connector: str) -> dict[str, Any]:
    """Return what a converter registers for the topic of a connector."""
    fields = _avro_fields(envelope_of(connector), set())
    return {"type": "record", "name": "Envelope", "namespace": "shop.inventory.orders", "fields": fields}


def _avro_fields(members: Iterable[Member], defined: set[str]) -> list[dict[str, Any]]:
    return [_avro(member, defined) for member in members]


def _avro(member: Member, defined: set[str]) -> dict[str, Any]:
    """Return a field. A type that is named is written out where it stands first, and named after that."""
    of_type: Any
    if isinstance(member.type, str):
        of_type = AVRO_TYPES[member.type]
    elif member.named in defined:
        of_type = member.named
    else:
        defined.add(member.named)
        namespace, _, name = member.named.rpartition(".")
        fields = _avro_fields(member.type, defined)
        of_type = {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    if member.name == "snapshot":  # has a default, and so its type comes first
        return {"name": member.name, "type": [of_type, "null"], "default": "false"}
    if member.optional:
        return {"name": member.name, "type": ["null", of_type], "default": None}
    return {"name": member.name, "type": of_type}


AVRO_SCHEMAS = {connector: fastavro.parse_schema(avro_schema(connector)) for connector in CONNECTORS}


def of_avro(value: bytes, connector: str = "mysql") -> object:
    """What a job decodes that with."""
    return fastavro.schemaless_reader(io.BytesIO(value[len(SCHEMA_ID) :]), AVRO_SCHEMAS[connector], None)
