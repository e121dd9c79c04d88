"""What follows from the shim's description of a stream."""

import json

import pytest

from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import ReadLimit

ICEBERG_STREAM = "org.apache.iceberg.spark.source.SparkMicroBatchStream"
QUERY = {"id": "11-22", "runId": "33-44", "name": "delays"}


def described(**members):
    base = {"handle": 1, "query": QUERY, "checkpoint": "file:/ck", "index": "0", "name": None, "format": "kafka",
            "options": {}, "api": "v2", "class": "x", "defaultLimit": "all"}  # fmt: skip
    return Descriptor.parse(json.dumps(base | members))


def test_a_stream_is_told_with_its_query_and_run():
    found = described()
    assert (found.query, found.query_id, found.run_id) == ("delays", "11-22", "33-44")


def test_a_query_without_a_name_goes_by_its_id():
    assert described(query={**QUERY, "name": None}).query == "11-22"


READ_LIMITS = (
    ("kafka", {"format": "kafka"}, ReadLimit.OFFSETS),
    ("replay", {"format": "replay"}, ReadLimit.OFFSETS),
    ("a source that says its offsets count records", {"format": "own", "options": {"headgate.offsets": "records"}},
     ReadLimit.OFFSETS),
    ("a source limited in rows", {"format": "own", "defaultLimit": "rows"}, ReadLimit.ROWS),
    ("a source without limits", {"format": "own", "defaultLimit": None}, ReadLimit.GATE),
    ("a source limited in bytes", {"format": "own", "defaultLimit": "bytes"}, ReadLimit.GATE),
    ("a source that does not look at limits", {"format": "rate-micro-batch", "defaultLimit": "rows"}, ReadLimit.GATE),
    ("an Iceberg table", {"format": "lake.orders", "class": ICEBERG_STREAM, "defaultLimit": "rows"}, ReadLimit.FILES),
    ("Delta", {"format": "delta", "api": "v1", "defaultLimit": "files"}, ReadLimit.FILES),
    ("files", {"format": "parquet", "api": "v1", "defaultLimit": "all"}, ReadLimit.FILES),
    ("an old source", {"format": "socket", "api": "v1", "defaultLimit": None}, ReadLimit.GATE),
)  # fmt: skip


@pytest.mark.parametrize(
    ("members", "read_limit"), [row[1:] for row in READ_LIMITS], ids=[row[0] for row in READ_LIMITS]
)
def test_the_read_limit_follows_from_the_source(members, read_limit):
    assert described(**members).read_limit is read_limit


NAMES = (
    ("its own name comes first", {"name": "left", "options": {"subscribe": "orders"}}, (), "left"),
    ("then the topic", {"options": {"subscribe": "orders"}}, (), "orders"),
    ("then the directory", {"format": "parquet", "options": {"path": "s3a://lake/flights/"}}, (), "flights"),
    ("then the format", {"format": "rate"}, (), "rate"),
    ("a second of the same name is numbered", {"format": "rate"}, ("rate",), "rate-2"),
    ("and a third", {"format": "rate"}, ("rate", "rate-2"), "rate-3"),
)


@pytest.mark.parametrize(
    ("members", "taken", "name"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES]
)
def test_a_source_is_named_as_its_users_would(members, taken, name):
    assert described(**members).source_name(taken) == name
