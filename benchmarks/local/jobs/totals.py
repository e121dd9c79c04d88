"""Count and sum per key, in update mode: what the catch-up, live and stall runs do. An ordinary script.

    python totals.py --data DIR --checkpoint DIR --cut TIME --live FILE

The recording is moved in time so that its cut is the moment at which the job starts: what lies before the cut
is a backlog whose watermark lags, what lies after arrives once FILE exists. The result goes nowhere, so that
reading, shuffling and state are what is measured.
"""

import argparse
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)


def recorded(spark: SparkSession, args: argparse.Namespace) -> DataFrame:
    """Return the recording as a stream."""
    reader = spark.readStream.format("replay").option("eventTime", "event_time").option("cut", args.cut)
    if args.rows_per_batch:
        reader = reader.option("rowsPerBatch", args.rows_per_batch)
    return reader.option("startedBy", args.live).load(args.data)


def totals(records: DataFrame) -> DataFrame:
    """Return count and sum of each key; the watermark is there to be looked at, nothing is ever too late."""
    return (
        records.withWatermark("event_time", "0 seconds")
        .groupBy("key")
        .agg(F.count("*").alias("records"), F.sum("value").alias("total"))
    )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Count and sum per key.")
    parser.add_argument("--data", required=True, help="directory of the recording")
    parser.add_argument("--checkpoint", required=True, help="directory for the checkpoint of the query")
    parser.add_argument("--cut", required=True, help="what lies before this time is there at once")
    parser.add_argument(
        "--live", required=True, help="a file: what lies after the cut arrives once it exists"
    )
    parser.add_argument("--trigger", help="interval of batches, such as '1 second' (default: none)")
    parser.add_argument("--rows-per-batch", help="most rows of a batch (default: all there are)")
    return parser.parse_args()


def main() -> None:
    """Run the query until it is stopped."""
    args = arguments()
    spark = SparkSession.builder.appName("totals").getOrCreate()
    moved = datetime.now(UTC) - datetime.fromisoformat(args.cut)
    records = recorded(spark, args).withColumn("event_time", F.col("event_time") + F.lit(moved))
    writer = totals(records).writeStream.queryName("totals").outputMode("update").format("noop")
    if args.trigger:
        writer = writer.trigger(processingTime=args.trigger)
    writer.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
