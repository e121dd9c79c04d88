"""Read many topics in one union to their ends, once for each file that appears. An ordinary script.

    python many.py --bootstrap HOST:PORT --topics TOPIC,TOPIC,... --turns DIR

A file `DIR/<n>.<query>-<count>` starts a run under that name, which counts the records of the first so many topics in
windows of event time. Its progress reports are in `DIR/<n>.json` when `DIR/<n>.done` appears.
"""

import argparse
import json
import time
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming import StreamingQuery

DELAY = "60 seconds"
RUN_SECONDS = 240.0


def stream(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return a topic as a stream."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()


def data_batches(query: StreamingQuery) -> list[dict]:
    """Return the progress of the batches with data."""
    reports = [json.loads(report.json()) for report in query._jsq.recentProgress()]
    return [report for report in reports if report["numInputRows"]]


def is_at_the_end(report: dict) -> bool:
    """Tell whether each source has read what it has."""
    return all(source["endOffset"] == source["latestOffset"] for source in report["sources"])


def run(topics: list[DataFrame], turn: Path) -> None:
    """Read everything once."""
    counts = reduce(DataFrame.unionAll, topics).withWatermark("timestamp", DELAY)
    counts = counts.groupBy(F.window("timestamp", "10 seconds")).count()
    writer = counts.writeStream.format("noop").outputMode("append").queryName(turn.suffix.removeprefix("."))
    query = writer.option("checkpointLocation", str(turn.with_suffix(".checkpoint"))).start()
    until = time.monotonic() + RUN_SECONDS
    while query.isActive and time.monotonic() < until:
        found = data_batches(query)
        if found and is_at_the_end(found[-1]):
            break
        time.sleep(0.1)
    query.stop()
    turn.with_suffix(".json").write_text(json.dumps(data_batches(query)))
    turn.with_suffix(".done").touch()


def next_turn(turns: Path) -> Path:
    """Wait for the next file that asks for a run."""
    while True:
        asked = [file for file in turns.glob("*.*-*") if not file.with_suffix(".done").exists()]
        if asked:
            return min(asked, key=lambda file: int(file.stem))
        time.sleep(0.05)


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Read many topics in one union, again and again.")
    for option in ("bootstrap", "topics"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--turns", required=True, type=Path, help="where files ask for runs")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("many").getOrCreate()
    topics = [stream(spark, args.bootstrap, topic) for topic in args.topics.split(",")]
    while True:
        turn = next_turn(args.turns)
        run(topics[: int(turn.suffix.rpartition("-")[2])], turn)


if __name__ == "__main__":
    main()
