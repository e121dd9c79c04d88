"""Counts numbered rows by key, with state, for as long as it is let. An ordinary script.

python recovers.py --checkpoint DIR --trigger '500 milliseconds'
"""

import argparse

from pyspark.sql import SparkSession

ROWS, KEYS = 20_000, 50_000


def main() -> None:
    """Start the query, and wait until somebody stops the driver."""
    parser = argparse.ArgumentParser(description="Counts numbered rows by key.")
    for option in ("checkpoint", "trigger"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    spark = SparkSession.builder.appName("recovers").getOrCreate()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    counts = rows.groupBy((rows.value % KEYS).alias("key")).count()
    writer = counts.writeStream.queryName("recovers").outputMode("update").format("noop")
    query = writer.trigger(processingTime=args.trigger).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
