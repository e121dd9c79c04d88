"""One of two drivers in a race for a checkpoint: a process with a Spark of its own, for many races one after the
other.

It reads a command per line, a JSON object, and answers each by a line: `start` a query, tell `how` it is, `stop` it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql.streaming import StreamingQuery

from headgate_contract import QueryControl
from support.governed import NAME, Driver, driver_in
from support.spark import shared_session

ENDS = {
    "FencedException": "fenced",
    "is in use by": "refused",
    "oncurrently using": "taken",
    "CONCURRENT_STREAM_LOG_UPDATE": "taken",
}
"""What a driver may end of in a race, by words of its failure."""


def end_of(query: StreamingQuery) -> str:
    """Return how a query has ended, or that it has not."""
    failure = query.exception()
    if failure is None:
        return "running" if query.isActive else "stopped"
    text = str(failure)
    return next((end for words, end in ENDS.items() if words in text), text)


def started(driver: Driver, command: dict[str, Any]) -> StreamingQuery:
    conf = driver.spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in command["store"].items():
        conf.set(f"fs.faulty.{name}", value)
    driver.jvm.context.conf().set("spark.headgate.fence", "on")
    driver.jvm.context.conf().set("spark.headgate.fence.takeOverAfter", command["takeOverAfter"])
    rows = driver.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", command["rows"]).load()
    writer = driver.writer(rows, Path("-"), to=None).option("checkpointLocation", command["checkpoint"])
    return driver.start(writer)


def told(query: StreamingQuery) -> dict[str, Any]:
    """Return how a query is: its end, and each batch that it has run, with the ends of its range."""
    done = [
        (
            each["batchId"],
            _position(each["sources"][0]["startOffset"]),
            _position(each["sources"][0]["endOffset"]),
        )
        for each in map(dict, query.recentProgress)
        if each["numInputRows"]
    ]
    return {"end": end_of(query), "batches": done}


def _position(offset: Any) -> int:
    if offset is None:
        return 0
    return int((json.loads(offset) if isinstance(offset, str) else offset)["offset"])


def main() -> None:
    """Run commands until there are no more."""
    with driver_in(shared_session(), is_fenced=True) as driver:
        driver.control(**{NAME: QueryControl(interval_seconds=0.1)})
        query: StreamingQuery | None = None
        for line in sys.stdin:
            command = json.loads(line)
            if command["do"] == "start":
                query = started(driver, command)
            assert query is not None
            if command["do"] == "stop":
                query.stop()
            print(json.dumps(told(query)), flush=True)


if __name__ == "__main__":
    main()
