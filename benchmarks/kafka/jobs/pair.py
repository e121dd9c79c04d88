"""Read two topics side by side to their ends: together, or joined by time. An ordinary script.

    python pair.py --bootstrap HOST:PORT --fast TOPIC --slow TOPIC --checkpoint DIR --kind records --out FILE
    python pair.py --bootstrap HOST:PORT --fast TOPIC --slow TOPIC --checkpoint DIR --kind join

`records` writes one line of JSON per batch: for each partition how many records came, and their latest timestamp.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming import DataStreamWriter

DELAY = "2 minutes"


def stream(spark: SparkSession, args: argparse.Namespace, topic: str) -> DataFrame:
    """Return a topic as a stream."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    return reader.option("maxOffsetsPerTrigger", args.records_per_batch).load()


def noted(out: Path) -> Callable[[DataFrame, int], None]:
    """Return the sink that notes what it got."""

    def note(batch: DataFrame, number: int) -> None:
        last = F.max(F.unix_millis("timestamp"))
        rows = batch.groupBy("topic", "partition").agg(F.count("*").alias("records"), last.alias("last"))
        with out.open("a") as lines:
            lines.write(
                json.dumps({"batch": number, "splits": [row.asDict() for row in rows.collect()]}) + "\n"
            )

    return note


def side(rows: DataFrame, name: str) -> DataFrame:
    """Return one side of the join: an id that both sides have, and the event time."""
    columns = [F.unix_millis("timestamp").alias(f"{name}_id"), F.col("timestamp").alias(f"{name}_at")]
    return rows.select(columns).withWatermark(f"{name}_at", DELAY)


def writer(fast: DataFrame, slow: DataFrame, args: argparse.Namespace) -> DataStreamWriter:
    """Return what the job does with both."""
    if args.kind == "records":
        return fast.union(slow).writeStream.foreachBatch(noted(Path(args.out)))
    near = F.expr(f"fast_id = slow_id AND fast_at BETWEEN slow_at AND slow_at + INTERVAL {DELAY}")
    return side(fast, "fast").join(side(slow, "slow"), near).writeStream.format("noop")


def main() -> None:
    """Run the query to the end of both topics."""
    parser = argparse.ArgumentParser(description="Read two topics side by side.")
    for option in ("bootstrap", "fast", "slow", "checkpoint"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--kind", choices=("records", "join"), required=True, help="what is done with them")
    parser.add_argument("--out", help="where `records` notes what came")
    parser.add_argument("--records-per-batch", default="7500", help="most records of one topic in a batch")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("pair").getOrCreate()
    both = [stream(spark, args, topic) for topic in (args.fast, args.slow)]
    query = writer(*both, args).queryName("pair").trigger(availableNow=True)
    query.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
