"""Start queries and end them, several at a time, as many as are asked for. An ordinary script.

python restarts.py --bootstrap HOST:PORT --topic NAME --place DIR --names N --batches B --at-once A

`asked.py` hands out queries; what says that they are done has how many batches those ran, when Python holds nothing
of them any more. They have N names and the checkpoints of these; the i-th has i % 8 + 1 sources, in each fifth one of
them on Kafka.
Each ends after B batches: stopped, failed by a row that it refuses, or, asked for what there is, by itself after one.
"""

import argparse
import gc
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from asked import options, parts
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

MOST_SOURCES, KAFKA_IN, ROWS = 8, 5, 10
STOPPED, FAILED = 0, 1
ENDINGS = 4
"""Of so many, one is stopped, two fail, one ends by itself."""
SECONDS = 300.0


class Queries:
    """All queries of one session, by the number of their name."""

    def __init__(self, spark: SparkSession, args: argparse.Namespace) -> None:
        """Keep what is asked for; nothing is started."""
        self._spark, self._args = spark, args
        self._read: dict[int, int] = {}
        """How many rows of its first source a name has read."""
        self._one_at_a_time = [threading.Lock() for _ in range(args.names)]

    def run(self, number: int) -> int:
        """Start a query and see to its end; returns how many batches it ran."""
        name = number % self._args.names
        with self._one_at_a_time[name]:
            return self._run(name, number // self._args.names % ENDINGS)

    def _run(self, name: int, ending: int) -> int:
        limit = self._read.get(name, 0) + self._args.batches * ROWS
        rows = self._rows(name)
        if ending not in (STOPPED, ENDINGS - 1):
            rows = rows.selectExpr(f"IF(value >= {limit}, raise_error('enough'), value) AS value")
        writer = rows.writeStream.format("noop").queryName(f"query-{name}")
        writer = writer.option("checkpointLocation", str(self._args.place / "checkpoints" / str(name)))
        if ending == ENDINGS - 1:
            writer = writer.trigger(availableNow=True)
        query = writer.start()
        first: int | None = None
        until = time.monotonic() + SECONDS
        while query.isActive and time.monotonic() < until:
            progress: Any = query.lastProgress
            if progress is not None:
                first = progress["batchId"] if first is None else first
                if ending == STOPPED and progress["batchId"] - first >= self._args.batches:
                    break
            time.sleep(0.02)
        query.stop()
        try:
            query.awaitTermination()
        except StreamingQueryException as failure:
            if "enough" not in str(failure):
                raise
        return self._ended(name, query.lastProgress, first)

    def _ended(self, name: int, progress: Any, first: int | None) -> int:
        if progress is None:
            return 0
        end = progress["sources"][0]["endOffset"]
        self._read[name] = int((json.loads(end) if isinstance(end, str) else end)["offset"])
        return int(progress["batchId"]) - (progress["batchId"] if first is None else first) + 1

    def _rows(self, name: int) -> DataFrame:
        count = name % MOST_SOURCES + 1
        numbers = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
        streams = [numbers.load().select("value") for _ in range(count)]
        if name % KAFKA_IN == 0:
            topic = self._spark.readStream.format("kafka").option("subscribe", self._args.topic)
            topic = topic.option("kafka.bootstrap.servers", self._args.bootstrap)
            records = topic.option("startingOffsets", "earliest").load()
            streams.append(records.selectExpr("CAST(0 AS LONG) AS value"))
        return reduce(DataFrame.unionAll, streams[-MOST_SOURCES:]).coalesce(1)


def let_go(spark: SparkSession) -> None:
    """Have Python let go of what it holds in the JVM of queries that are over, and return when it has.

    Each object of Py4J that was called has a cycle with its methods (`JavaObject.__getattr__`, 0.10.9), so it waits
    for Python's collector, and its query in the JVM with it: hundreds of objects. What was collected is told to the
    JVM later, in order, by a thread (`FinalizerWorker`): a last word to that thread says that it was.
    """
    gc.collect()
    told = threading.Event()

    class LastWord:
        def garbage_collect_object(self, *_: object) -> None:
            told.set()

    spark.sparkContext._gateway._gateway_client.finalizer_deque.appendleft((LastWord(), ""))
    told.wait(SECONDS)


def main() -> None:
    """Run until the process is stopped."""
    parser = options()
    parser.add_argument("--batches", type=int, required=True, help="after which each ends")
    parser.add_argument("--at-once", type=int, required=True, help="how many run side by side")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("restarts").getOrCreate()
    queries = Queries(spark, args)
    with ThreadPoolExecutor(args.at_once) as pool:
        for numbers, done in parts(args.place):
            batches = sum(pool.map(queries.run, numbers))
            let_go(spark)
            unfinished = done.with_suffix(".unfinished")
            unfinished.write_text(str(batches))
            unfinished.replace(done)


if __name__ == "__main__":
    main()
