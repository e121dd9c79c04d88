"""Read a recording and drop it, in as many queries as are named: the job of the runs that look at planning.

    python forward.py --data DIR --checkpoint DIR [--cut TIME --live FILE] --query NAME…

There is no state and next to no work, so a batch is short and what is seen is when it was planned and how large
it was. Without a query it is an idle session. An ordinary script.
"""

import argparse
import threading

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery


def start(spark: SparkSession, args: argparse.Namespace, name: str) -> StreamingQuery:
    """Start a query."""
    reader = spark.readStream.format("replay").option("eventTime", "event_time")
    if args.cut:
        reader = reader.option("cut", args.cut).option("startedBy", args.live)
    writer = reader.load(args.data).writeStream.queryName(name).format("noop")
    return writer.option("checkpointLocation", f"{args.checkpoint}/{name}").start()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Read a recording and drop it.")
    parser.add_argument("--data", required=True, help="directory of the recording")
    parser.add_argument("--checkpoint", required=True, help="directory for the checkpoints of the queries")
    parser.add_argument("--cut", help="what lies before this time is there at once (default: everything is)")
    parser.add_argument("--live", help="a file: what lies after the cut arrives once it exists")
    parser.add_argument("--query", action="append", default=[], help="name of a query; may be repeated")
    return parser.parse_args()


def main() -> None:
    """Run the queries until they are stopped."""
    args = arguments()
    spark = SparkSession.builder.appName("forward").getOrCreate()
    queries = [start(spark, args, name) for name in args.query]
    for query in queries:  # awaitAnyTermination looks 100 times a second, and costs as much as a query
        query.awaitTermination()
    if not queries:
        threading.Event().wait()


if __name__ == "__main__":
    main()
