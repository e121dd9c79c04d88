"""What follows from the shim's description of a stream."""

import json

import pytest

from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import Lane

ICEBERG_STREAM = "org.apache.iceberg.spark.source.SparkMicroBatchStream"
THREAD = "stream execution thread for delays [id = 11-22, runId = 33-44]"


def described(**members):
    base = {"handle": 1, "thread": THREAD, "checkpoint": "file:/ck", "index": "0", "name": None, "format": "kafka",
            "options": {}, "api": "v2", "class": "x", "admission": True, "defaultLimit": "all"}  # fmt: skip
    return Descriptor.parse(json.dumps(base | members))


def test_the_thread_tells_query_and_run():
    found = described()
    assert (found.query_name, found.query_id, found.run_id) == ("delays", "11-22", "33-44")


@pytest.mark.parametrize("name", ["with spaces", "a [id = 1, runId = 2]", "é"])
def test_a_query_may_have_any_name(name):
    thread = f"stream execution thread for {name} [id = 11-22, runId = 33-44]"
    assert described(thread=thread).query_name == name


def test_a_query_without_a_name_has_none():
    assert described(thread="stream execution thread for [id = 11-22, runId = 33-44]").query_name is None


def test_another_thread_is_refused():
    with pytest.raises(ValueError, match="not the thread of a streaming query"):
        described(thread="main")


LANES = (
    ("kafka", {"format": "kafka"}, Lane.OFFSETS),
    ("replay", {"format": "replay"}, Lane.OFFSETS),
    ("a source that says its offsets count records", {"format": "own", "options": {"headgate.offsets": "records"}},
     Lane.OFFSETS),
    ("a source limited in rows", {"format": "own", "defaultLimit": "rows"}, Lane.ROWS),
    ("a source without limits", {"format": "own", "defaultLimit": None}, Lane.GATE),
    ("a source limited in bytes", {"format": "own", "defaultLimit": "bytes"}, Lane.GATE),
    ("a source that does not look at limits", {"format": "rate-micro-batch", "defaultLimit": "rows"}, Lane.GATE),
    ("an Iceberg table", {"format": "lake.orders", "class": ICEBERG_STREAM, "defaultLimit": "rows"}, Lane.FILES),
    ("Delta", {"format": "delta", "api": "v1", "defaultLimit": "files"}, Lane.FILES),
    ("files", {"format": "parquet", "api": "v1", "defaultLimit": "all"}, Lane.FILES),
    ("an old source", {"format": "socket", "api": "v1", "defaultLimit": None}, Lane.GATE),
)  # fmt: skip


@pytest.mark.parametrize(("members", "lane"), [row[1:] for row in LANES], ids=[row[0] for row in LANES])
def test_the_lane_follows_from_the_source(members, lane):
    assert described(**members).lane is lane


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
