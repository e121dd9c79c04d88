"""Records of change streams as Debezium's connectors write them, cut down to what each connector always has.

The members and their order are those of `io.debezium.connector.*.SourceInfoStructMaker` and of the examples in
Debezium's documentation (3.x).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import fastavro

SCHEMA_ID = b"\0\0\0\0\x07"


def _source(connector: str, flag: str | None, **more: object) -> dict[str, Any]:
    return {
        "version": "3.2.0.Final",
        "connector": connector,
        "name": "shop",
        "ts_ms": 1_700_000_000_000,
        "snapshot": flag,
        "db": "inventory",
        "sequence": None,
        "ts_us": 1_700_000_000_000_000,
        "ts_ns": 1_700_000_000_000_000_000,
        **more,
    }


def mysql(flag: str | None, n: int = 0) -> dict[str, Any]:
    source = _source(
        "mysql", flag, table="orders", server_id=0, gtid=None, file="binlog.000003", pos=154, row=0
    )
    return _envelope({"id": n, "note": 'a "snapshot": "true" inside'}, source, flag)


def postgresql(flag: str | None, n: int = 0) -> dict[str, Any]:
    source = _source("postgresql", flag, schema="public", table="orders", txId=555, lsn=24023128, xmin=None)
    return _envelope({"id": n, "note": "x"}, source, flag)


def mongodb(flag: str | None, n: int = 0) -> dict[str, Any]:
    source = _source("mongodb", flag, collection="orders", ord=31, lsid=None, txnNumber=None, wallTime=None)
    envelope = _envelope(json.dumps({"_id": {"$numberLong": str(n)}}), source, flag)
    return envelope | {"updateDescription": None}


CONNECTORS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "mysql": mysql,
    "postgresql": postgresql,
    "mongodb": mongodb,
}


def _envelope(after: object, source: Mapping[str, Any], flag: str | None) -> dict[str, Any]:
    op = "u" if flag in (None, "false") else "r"
    return {
        "before": None,
        "after": after,
        "source": source,
        "transaction": None,
        "op": op,
        "ts_ms": 1_700_000_000_001,
    }


def plain(envelope: Mapping[str, Any]) -> bytes:
    """JSON of a converter with `schemas.enable=false`."""
    return json.dumps(envelope).encode()


def with_schema(envelope: Mapping[str, Any]) -> bytes:
    """JSON of a converter with `schemas.enable=true`."""
    schema = {
        "type": "struct",
        "optional": False,
        "name": "shop.inventory.orders.Envelope",
        "version": 2,
        "fields": [],
    }
    return json.dumps({"schema": schema, "payload": envelope}).encode()


def behind_an_id(envelope: Mapping[str, Any]) -> bytes:
    """JSON of a registry's converter."""
    return SCHEMA_ID + plain(envelope)


AVRO_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {
                "name": "source",
                "type": {
                    "type": "record",
                    "name": "Source",
                    "fields": [
                        {"name": "version", "type": "string"},
                        {"name": "connector", "type": "string"},
                        {"name": "name", "type": "string"},
                        {"name": "ts_ms", "type": "long"},
                        {"name": "snapshot", "type": ["string", "null"], "default": "false"},
                    ],
                },
            },
            {"name": "op", "type": "string"},
        ],
    }
)


def avro(envelope: Mapping[str, Any]) -> bytes:
    """Avro of a registry's converter."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, AVRO_SCHEMA, dict(envelope))
    return SCHEMA_ID + out.getvalue()


def of_avro(value: bytes) -> object:
    """What a job decodes that with."""
    return fastavro.schemaless_reader(io.BytesIO(value[len(SCHEMA_ID) :]), AVRO_SCHEMA, None)
