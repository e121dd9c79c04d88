"""A job that says by options how it is to be read: a Python source that keeps what it is given, and files.

Prints what came of it as one line of JSON.
"""

# ruff: noqa: N802 -- Spark calls these methods by name

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)

folder = Path(sys.argv[1])
SERIES = ("headgate_setting_info", "headgate_query_backlog", "headgate_source_backlog_vote")
seen = str(folder / "seen")


class Reader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"row": 1_000_000}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["row"], end["row"]))]

    def read(self, partition: InputPartition) -> Any:
        yield from ((str(row),) for row in range(*partition.value))


class Writer(DataSourceStreamWriter):
    def write(self, iterator: Any) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class Strict(DataSource):
    """Refuses what it does not know, as some sources and sinks do."""

    def __init__(self, options: dict[str, str]) -> None:
        unknown = set(dict(options)) - {"mine", "checkpointlocation", "queryname"}
        with Path(seen).open("a") as file:
            print(json.dumps(sorted(dict(options))), file=file)
        if unknown:
            raise ValueError(f"unknown options {sorted(unknown)}")
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "strict"

    def schema(self) -> str:
        return "value string"

    def streamReader(self, schema: Any) -> Reader:
        return Reader()

    def streamWriter(self, schema: Any, overwrite: bool) -> Writer:
        return Writer()


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Strict)
numbers = spark.readStream.format("strict").option("mine", "x").option("headgate.offsets", "records")
numbers = numbers.option("scan.rate.limit.record-per-second", 500).option("headgate.rateLimit.maxBurst", "1s")
numbers = numbers.option("headgate.backlog.pendingRecords", 100_000)
files = spark.readStream.format("text").option("headgate.paused", "true").load(str(folder / "files"))
every = numbers.load().union(files).union(files)


def started(name: str, **options: str) -> Any:
    writer = every.writeStream.format("strict").queryName(name).trigger(processingTime="1 hour")
    return writer.options(checkpointLocation=str(folder / name), **options).start()


def refusal(**options: str) -> str:
    try:
        started("refused", **options).awaitTermination(120)
    except Exception as error:
        return str(error)
    return ""


def batches(query: Any) -> list[Any]:
    return [json.loads(progress.json) for progress in query.recentProgress if progress.numInputRows]


spark.conf.set("spark.headgate.queries.paced.minPause", "10ms")
paced = started("paced", **{"headgate.interval": "1s"})
until = time.monotonic() + 150
while paced.isActive and len(batches(paced)) < 4 and time.monotonic() < until:
    time.sleep(0.1)
port = spark.conf.get("spark.headgate.metrics.port")
page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
told = {
    "failure": paced.exception() and str(paced.exception()),
    "batches": batches(paced),
    "metrics": [line for line in page.splitlines() if line.startswith(SERIES)],
    "refusal": refusal(**{"headgate.intervall": "1s", "headgate.minPause": "5"}),
    "seen": Path(seen).read_text().splitlines(),
}
paced.stop()


def written(form: str) -> str:
    """Write a few lines by a sink of the V1 kind; return what came of it."""
    lines = spark.readStream.format("text").load(str(folder / "files"))
    writer = lines.writeStream.format(form).queryName(form).trigger(availableNow=True)
    places = {"path": str(folder / "out" / form), "checkpointLocation": str(folder / form)}
    query = writer.options(**places, **{"headgate.minPause": "10ms"}).start()
    query.awaitTermination(120)
    assert query.exception() is None, query.exception()
    return str(spark.read.format(form).load(places["path"]).collect()[0][0])


told["files"] = {form: written(form) for form in ("parquet", "json", "csv", "text", "orc")}
print("told", json.dumps(told))
