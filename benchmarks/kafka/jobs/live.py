"""Read topics and drop them, one query for each name: the job of the runs that look at planning. An ordinary script.

python live.py --bootstrap HOST:PORT --checkpoint DIR [--min-partitions N] [--max-tasks N] --query NAME=TOPIC[,…] …
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

WAIT_MS = "1"
"""At the end of a partition a consumer has a fetch open that finds nothing, and what else it asks comes behind that:
half a second later by default, for each of 512 partitions."""


def start(spark: SparkSession, args: argparse.Namespace, query: str) -> StreamingQuery:
    """Start a query."""
    name, _, topics = query.partition("=")
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    reader = reader.option("subscribe", topics).option("startingOffsets", "earliest")
    reader = reader.option("kafka.fetch.max.wait.ms", WAIT_MS)
    if args.min_partitions is not None:
        reader = reader.option("minPartitions", args.min_partitions)
    rows = reader.load()
    if args.max_tasks is not None:
        rows = rows.coalesce(args.max_tasks)
    writer = rows.writeStream.queryName(name).format("noop")
    return writer.option("checkpointLocation", f"{args.checkpoint}/{name}").start()


def main() -> None:
    """Run the queries until they are stopped."""
    parser = argparse.ArgumentParser(description="Read topics and drop them.")
    parser.add_argument("--bootstrap", required=True, help="where the broker is")
    parser.add_argument("--checkpoint", required=True, help="directory for the checkpoints of the queries")
    parser.add_argument(
        "--min-partitions", help="the least tasks of a batch; else one for each Kafka partition"
    )
    parser.add_argument("--max-tasks", type=int, help="the most tasks of a batch")
    parser.add_argument("--query", action="append", required=True, help="name and topics; may be repeated")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("live").getOrCreate()
    for query in [start(spark, args, query) for query in args.query]:
        query.awaitTermination()


if __name__ == "__main__":
    main()
