"""Many queries of one topic to which nothing comes. An ordinary script.

python idle.py --bootstrap HOST:PORT --checkpoint DIR --topic NAME --queries N --trigger '1 second'
"""

import argparse
import threading

from pyspark.sql import SparkSession


def main() -> None:
    """Start the queries, and wait until somebody stops the driver."""
    parser = argparse.ArgumentParser(description="Many queries of one topic to which nothing comes.")
    for option in ("bootstrap", "checkpoint", "topic", "trigger"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--queries", type=int, required=True)
    args = parser.parse_args()
    spark = SparkSession.builder.appName("idle").getOrCreate()
    options = {"kafka.bootstrap.servers": args.bootstrap, "startingOffsets": "earliest"}
    for number in range(args.queries):
        rows = spark.readStream.format("kafka").options(**options).option("subscribe", args.topic).load()
        writer = (
            rows.writeStream.queryName(f"idle-{number}").format("noop").trigger(processingTime=args.trigger)
        )
        writer.option("checkpointLocation", f"{args.checkpoint}/{number}").start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
