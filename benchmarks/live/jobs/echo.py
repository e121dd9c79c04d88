"""Write what comes in a topic to another one, or a count of it by key. An ordinary script.

    python echo.py --bootstrap HOST:PORT --topic NAME --out NAME --checkpoint DIR [--count KEYS]
        [--real-time TIME | --trigger TIME] [--most RECORDS]

A value is `<number> <milliseconds>`. Without `--count` it goes out as it is; with it, `<key> <count> <milliseconds>`
does, the last being the latest of the key's records.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Write what comes in a topic to another one.")
    for option in ("bootstrap", "topic", "out", "checkpoint"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--count", type=int, help="count by so many keys")
    parser.add_argument("--real-time", help="run in real-time mode alone, with batches of this length")
    parser.add_argument("--trigger", help="interval of micro-batches (default: none)")
    parser.add_argument("--most", type=int, help="records of a micro-batch (default: all there are)")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("echo").getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    if args.most:
        reader = reader.option("maxOffsetsPerTrigger", args.most)
    rows = reader.option("subscribe", args.topic).option("startingOffsets", "earliest").load()
    rows = rows.selectExpr("CAST(value AS STRING) AS value")
    if args.count:
        parts = rows.selectExpr(
            f"CAST(split(value, ' ')[0] AS BIGINT) % {args.count} AS key",
            "CAST(split(value, ' ')[1] AS BIGINT) AS ms",
        )
        counts = parts.groupBy("key").agg(F.count("*").alias("n"), F.max("ms").alias("ms"))
        rows = counts.selectExpr("concat_ws(' ', key, n, ms) AS value")
    writer = rows.writeStream.queryName("echo").format("kafka").outputMode("update")
    writer = writer.option("kafka.bootstrap.servers", args.bootstrap).option("topic", args.out)
    writer = writer.option("checkpointLocation", args.checkpoint)
    if args.real_time:
        writer = writer.trigger(realTime=args.real_time)
    elif args.trigger:
        writer = writer.trigger(processingTime=args.trigger)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
