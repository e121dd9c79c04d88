"""Count the numbers of each topic and add them up, by what is left of each when divided by K. An ordinary script.

python counts.py --bootstrap HOST:PORT --topics NAME,NAME --keys K --out DIR --checkpoint LOCATION

`DIR/<batch>.json` has topic, key, count and sum of each key that the batch has changed: written whole, and anew by
whoever runs the batch again.
"""

import argparse
import json
import os
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    """Run until the process is stopped."""
    parser = argparse.ArgumentParser(description="Count the numbers of topics.")
    for option in ("bootstrap", "topics", "keys", "out", "checkpoint"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    out = Path(args.out)
    spark = SparkSession.builder.appName("counts").getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    reader = reader.option("startingOffsets", "earliest")
    rows = reduce(
        DataFrame.union, [reader.option("subscribe", name).load() for name in args.topics.split(",")]
    )
    numbers = rows.selectExpr("topic", "CAST(CAST(value AS STRING) AS LONG) AS number")
    counted = numbers.groupBy("topic", (numbers.number % int(args.keys)).alias("key")).agg(
        {"*": "count", "number": "sum"}
    )

    def keep(changed: DataFrame, batch: int) -> None:
        unfinished = out / f".{batch}.{os.getpid()}"
        unfinished.write_text(json.dumps([list(row) for row in changed.collect()]))
        unfinished.replace(out / f"{batch}.json")

    query = counted.select("topic", "key", "count(1)", "sum(number)").writeStream.queryName("counts")
    query = query.outputMode("update").foreachBatch(keep).option("checkpointLocation", args.checkpoint)
    query.start().awaitTermination()


if __name__ == "__main__":
    main()
