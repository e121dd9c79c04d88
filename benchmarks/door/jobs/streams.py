"""Start queries and end them, as many as are asked for: what a session does that lives for weeks. An ordinary script.

python streams.py --bootstrap HOST:PORT --topic NAME --place DIR --names N

The queries that `asked.py` hands out have five streams each: two of files, two of Kafka and one of numbers. Every
other one ends by itself, the others are stopped after a batch. They have N names.
"""

import argparse
import time
from functools import reduce

from asked import options, parts
from pyspark.sql import DataFrame, SparkSession

BATCH_SECONDS = 240.0


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


def main() -> None:
    """Run until the process is stopped."""
    args = options().parse_args()
    (args.place / "in").mkdir(exist_ok=True)
    spark = SparkSession.builder.appName("streams").getOrCreate()
    for numbers, done in parts(args.place):
        for number in numbers:
            run(spark, args, number)
        done.touch()


if __name__ == "__main__":
    main()
