"""Read a topic to its end, once for each file that appears: what the throughput runs do. An ordinary script.

    python turns.py --bootstrap HOST:PORT --topic NAME --turns DIR

A file `DIR/<n>.forward` starts a run that drops what it reads, `DIR/<n>.totals` one that counts by key. The session
stays, so that all runs but the first meet a JVM that is warm. `DIR/<n>.done` appears at the end of a run.
"""

import argparse
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

POLLS = {"kafka.max.poll.records": "10000", "kafka.fetch.max.wait.ms": "10"}
"""After every poll Spark asks the broker for both ends of the partition. With 500 records to a poll, the consumer's
default, those answers take most of a task's time, and that time is how soon threads wake up, which no two runs share.
At the end of the topic a consumer has a fetch open that finds nothing, and waits until the broker gives it up."""


def records(spark: SparkSession, args: argparse.Namespace) -> DataFrame:
    """Return the topic as a stream, a million records at a time."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    reader = reader.option("subscribe", args.topic).option("startingOffsets", "earliest").options(**POLLS)
    return reader.option("maxOffsetsPerTrigger", args.records_per_batch).load()


def totals(rows: DataFrame) -> DataFrame:
    """Return count and last time of each key."""
    return rows.groupBy("key").agg(F.count("*").alias("records"), F.max("timestamp").alias("last"))


def run(rows: DataFrame, turn: Path) -> None:
    """Read everything once."""
    name = turn.suffix.removeprefix(".")
    writer = (totals(rows) if name == "totals" else rows).writeStream.queryName(name).outputMode("update")
    writer = writer.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", str(turn.with_suffix(".checkpoint"))).start().awaitTermination()
    turn.with_suffix(".done").touch()


def next_turn(turns: Path) -> Path:
    """Wait for the next file that asks for a run."""
    while True:
        asked = [file for kind in ("forward", "totals") for file in turns.glob(f"*.{kind}")]
        waiting = [file for file in asked if not file.with_suffix(".done").exists()]
        if waiting:
            return min(waiting, key=lambda file: int(file.stem))
        time.sleep(0.05)


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Read a topic to its end, again and again.")
    parser.add_argument("--bootstrap", required=True, help="where the broker is")
    parser.add_argument("--topic", required=True, help="what is read")
    parser.add_argument("--turns", required=True, type=Path, help="where files ask for runs")
    parser.add_argument("--records-per-batch", default="1000000", help="most records of a batch")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("turns").getOrCreate()
    rows = records(spark, args)
    while True:
        run(rows, next_turn(args.turns))


if __name__ == "__main__":
    main()
