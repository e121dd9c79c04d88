"""Read some topics, each as a source of its own, and drop them. An ordinary script.

python union.py --bootstrap HOST:PORT --checkpoint DIR --topics TOPIC,TOPIC,...
"""

import argparse
from functools import reduce

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    """Run the query until it is stopped."""
    parser = argparse.ArgumentParser(description="Read some topics, each as a source of its own.")
    for option in ("bootstrap", "checkpoint", "topics"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    spark = SparkSession.builder.appName("union").getOrCreate()
    options = {"kafka.bootstrap.servers": args.bootstrap, "startingOffsets": "earliest"}
    reader = spark.readStream.format("kafka").options(**options)
    topics = [reader.option("subscribe", topic).load() for topic in args.topics.split(",")]
    writer = reduce(DataFrame.unionAll, topics).coalesce(2).writeStream.queryName("union").format("noop")
    writer.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
