"""Copy a topic to Parquet files: the place of each record as a number, exactly once. An ordinary script.

python copies.py --bootstrap HOST:PORT --topic NAME --out DIR --checkpoint DIR
"""

import argparse

from pyspark.sql import SparkSession


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Copy a topic to Parquet files.")
    for option in ("bootstrap", "topic", "out", "checkpoint"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    spark = SparkSession.builder.appName("copy").getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    rows = reader.option("subscribe", args.topic).option("startingOffsets", "earliest").load()
    ids = rows.selectExpr("partition * 1000000000L + offset as id")
    writer = ids.writeStream.queryName("copy").format("parquet")
    writer.option("path", args.out).option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
