"""Start queries and end them, as many as are asked for: what a session does that lives for weeks. An ordinary script.

python streams.py --bootstrap HOST:PORT --topic NAME --place DIR --names N --crowded P

The queries that `asked.py` hands out have five streams each: two of files, two of Kafka and one of numbers. Every
other one ends by itself, the others are stopped after a batch. They have N names. Those of the first P parts run
several at a time, all others one after the other.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from pathlib import Path

from asked import options, parts
from pyspark.sql import DataFrame, SparkSession

BATCH_SECONDS = 240.0
AT_ONCE = 5


def streams(spark: SparkSession, args: argparse.Namespace) -> list[DataFrame]:
    """Return five streams of one column."""
    files = spark.readStream.schema("value string")
    options = {"kafka.bootstrap.servers": args.bootstrap, "startingOffsets": "earliest"}
    topics = spark.readStream.format("kafka").options(**options).option("subscribe", args.topic)
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    return [
        *(files.text(str(args.place / "in")) for _ in range(2)),
        *(topics.load().selectExpr("CAST(value AS STRING) AS value") for _ in range(2)),
        numbers.selectExpr("CAST(value AS STRING) AS value"),
    ]


def run(spark: SparkSession, args: argparse.Namespace, number: int) -> None:
    """Start a query and see to its end."""
    rows = reduce(DataFrame.unionAll, streams(spark, args)).coalesce(1)
    writer = rows.writeStream.format("noop").queryName(f"query-{number % args.names}")
    writer = writer.option("checkpointLocation", str(args.place / "checkpoints" / str(number)))
    if number % 2:
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    query = writer.start()
    until = time.monotonic() + BATCH_SECONDS
    while query.isActive and query.lastProgress is None and time.monotonic() < until:
        time.sleep(0.01)
    query.stop()


def run_all(parts: Iterable[tuple[Iterable[int], Path]], run: Callable[[int], None], crowded: int) -> None:
    """Run the queries of all parts, those of the first `crowded` ones several at a time."""
    for turn, (numbers, done) in enumerate(parts):
        with ThreadPoolExecutor(AT_ONCE if turn < crowded else 1) as pool:
            list(pool.map(run, numbers))
        done.touch()


def main() -> None:
    """Run until the process is stopped."""
    parser = options()
    parser.add_argument("--crowded", type=int, required=True, help="parts that run several queries at a time")
    args = parser.parse_args()
    (args.place / "in").mkdir(exist_ok=True)
    spark = SparkSession.builder.appName("streams").getOrCreate()
    run_all(parts(args.place), partial(run, spark, args), args.crowded)


if __name__ == "__main__":
    main()
