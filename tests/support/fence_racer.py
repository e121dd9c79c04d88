"""One of two drivers in races for checkpoints: a process with a Spark of its own, for many races, some side by side.

It reads a command per line, a JSON object, and answers each by a line: `start` the query of a lane, tell `how` it is,
`stop` it. Each race has a session of its own, with the settings of its store.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import structlog
from pyspark.sql.streaming import StreamingQuery

from headgate_contract import QueryControl
from support.governed import NAME, Driver, driver_in
from support.spark import shared_session

ENDS = {
    "has taken it over": "fenced",
    "Another driver had the checkpoint": "fenced",
    "is in use by": "refused",
    "oncurrently using": "taken",
    "CONCURRENT_STREAM_LOG_UPDATE": "taken",
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY": "not empty",
    "Read interrupted": "stopped",
}
"""What a driver may end of in a race, by words of its failure. "Not empty" is Spark's own: before a first batch it
looks whether there is anything in the folders of its logs, and the other driver has begun to write there. The last
one is S3A's, of a query that was stopped while it read."""


LANES = 8
"""Races that may be run side by side."""


def name_of(lane: int) -> str:
    """Return the name of the query of a lane."""
    return f"{NAME}{lane}"


def end_of(query: StreamingQuery) -> str:
    """Return how a query has ended, or that it has not."""
    failure = query.exception()
    if failure is None:
        return "running" if query.isActive else "stopped"
    text = str(failure)
    return next((end for words, end in ENDS.items() if words in text), text)


def started(driver: Driver, command: dict[str, Any]) -> StreamingQuery:
    session = driver.spark.newSession()
    for name, value in command["store"].items():
        session.conf.set(name, value)
    driver.jvm.context.conf().set("spark.headgate.fence.takeOverAfter", command["takeOverAfter"])
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", command["rows"]).load()
    name = name_of(command["lane"])
    writer = driver.writer(rows, Path("-"), to=None, name=name).option(
        "checkpointLocation", command["checkpoint"]
    )
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
    """Return a position; a first batch has none to start from, which progress tells as `null` or as nothing."""
    told = json.loads(offset) if isinstance(offset, str) else offset
    return 0 if told is None else int(told["offset"])


def main() -> None:
    """Run commands until there are no more. What is logged is no answer, and goes elsewhere."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with driver_in(shared_session(), is_fenced=True) as driver:
        driver.control(**{name_of(lane): QueryControl(interval_seconds=0.1) for lane in range(LANES)})
        queries: dict[int, StreamingQuery] = {}
        for line in sys.stdin:
            command = json.loads(line)
            lane = command["lane"]
            if command["do"] == "start":
                queries[lane] = started(driver, command)
            if command["do"] == "stop":
                queries[lane].stop()
            print(json.dumps(told(queries[lane])), flush=True)


if __name__ == "__main__":
    main()
