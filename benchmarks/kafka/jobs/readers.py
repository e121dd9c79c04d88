"""Read a topic by Spark's own reader and by the one in columns, in turns.

    python readers.py --bootstrap HOST:PORT --topic NAME --records N --rounds 5 --results FILE

Both have the same JVM, client and threads. Queries keep the values alone, and drop them. Spark's is a batch: it has
the reader of a stream, with nothing of ours before it and no checkpoint. The governed one is a stream that ends.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from turns import POLLS

WARM_UPS = 3


def options(args: argparse.Namespace, client: dict[str, str]) -> dict[str, str]:
    """Return those of the source."""
    own = {"kafka.bootstrap.servers": args.bootstrap, "subscribe": args.topic, "startingOffsets": "earliest"}
    return own | client


def by_spark(spark: SparkSession, args: argparse.Namespace, client: dict[str, str]) -> None:
    """Read all values by the source of the connector."""
    records = spark.read.format("kafka").options(**options(args, client)).load()
    records.select("value").write.format("noop").mode("overwrite").save()


def in_columns(spark: SparkSession, args: argparse.Namespace, client: dict[str, str]) -> None:
    """Read all values by one batch of a governed stream."""
    records = spark.readStream.format("kafka").options(**options(args, client)).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = records.select("value").writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        rows = sum(progress["numInputRows"] for progress in query.recentProgress)
        if rows != args.records:
            raise RuntimeError(f"{rows} records of {args.records} were read")


def main() -> None:
    """Read in turns, write how long each run took, by who read, and stay until the process is stopped."""
    parser = argparse.ArgumentParser(
        description="Read a topic by Spark's own reader and by the one in columns."
    )
    parser.add_argument("--bootstrap", required=True, help="where the broker is")
    parser.add_argument("--topic", required=True, help="what is read")
    parser.add_argument("--records", required=True, type=int, help="in the topic")
    parser.add_argument("--rounds", required=True, type=int, help="runs of each that count")
    parser.add_argument("--results", required=True, type=Path, help="what is written at the end")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("readers").getOrCreate()
    ways: dict[str, Callable[[], None]] = {
        "spark": lambda: by_spark(spark, args, POLLS),
        "spark_small_polls": lambda: by_spark(spark, args, {}),
        "columns": lambda: in_columns(spark, args, POLLS),
        "columns_small_polls": lambda: in_columns(spark, args, {}),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(WARM_UPS + args.rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.perf_counter()
            ways[name]()
            if turn >= WARM_UPS:
                seconds[name].append(time.perf_counter() - began)
    unfinished = args.results.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(seconds))
    unfinished.rename(args.results)
    threading.Event().wait()


if __name__ == "__main__":
    main()
