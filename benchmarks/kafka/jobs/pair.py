"""Read two topics side by side to their ends, once for each file that appears. An ordinary script.

    python pair.py --bootstrap HOST:PORT --fast TOPIC --slow TOPIC --turns DIR

A file `DIR/<n>.aligned` or `DIR/<n>.unaligned` starts a run under that name, which notes in `DIR/<n>.jsonl` what
came: one line of JSON for each batch, with each partition's number of records and their latest timestamp.
`DIR/<n>.dropped` drops what comes, and `DIR/<n>.join` joins both topics by time. `DIR/<n>.done` appears at the end
of a run.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming import DataStreamWriter

DELAY = "2 minutes"
QUERIES = ("aligned", "unaligned", "dropped", "join")


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
        splits = [row.asDict() for row in rows.collect()]
        with out.open("a") as lines:
            lines.write(json.dumps({"batch": number, "splits": splits}) + "\n")

    return note


def side(rows: DataFrame, name: str) -> DataFrame:
    """Return one side of the join: an id that both sides have, and the event time."""
    columns = [F.unix_millis("timestamp").alias(f"{name}_id"), F.col("timestamp").alias(f"{name}_at")]
    return rows.select(columns).withWatermark(f"{name}_at", DELAY)


def writer(fast: DataFrame, slow: DataFrame, turn: Path) -> DataStreamWriter:
    """Return what a run does with both."""
    if turn.name.endswith(".dropped"):
        return fast.union(slow).writeStream.format("noop")
    if not turn.name.endswith(".join"):
        return fast.union(slow).writeStream.foreachBatch(noted(turn.with_suffix(".jsonl")))
    near = F.expr(f"fast_id = slow_id AND fast_at BETWEEN slow_at AND slow_at + INTERVAL {DELAY}")
    return side(fast, "fast").join(side(slow, "slow"), near).writeStream.format("noop")


def run(fast: DataFrame, slow: DataFrame, turn: Path) -> None:
    """Read everything once."""
    query = writer(fast, slow, turn).queryName(turn.suffix.removeprefix(".")).trigger(availableNow=True)
    query.option("checkpointLocation", str(turn.with_suffix(".checkpoint"))).start().awaitTermination()
    turn.with_suffix(".done").touch()


def next_turn(turns: Path) -> Path:
    """Wait for the next file that asks for a run."""
    while True:
        asked = [file for query in QUERIES for file in turns.glob(f"*.{query}")]
        waiting = [file for file in asked if not file.with_suffix(".done").exists()]
        if waiting:
            return min(waiting, key=lambda file: int(file.stem))
        time.sleep(0.05)


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Read two topics side by side, again and again.")
    for option in ("bootstrap", "fast", "slow"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--turns", required=True, type=Path, help="where files ask for runs")
    parser.add_argument("--records-per-batch", default="7500", help="most records of one topic in a batch")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("pair").getOrCreate()
    fast, slow = (stream(spark, args, topic) for topic in (args.fast, args.slow))
    while True:
        run(fast, slow, next_turn(args.turns))


if __name__ == "__main__":
    main()
