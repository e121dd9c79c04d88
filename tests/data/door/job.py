"""A plain job in Python: one query per line of a table, each of one topic or a union of several, into files.

It is a classic one, or a client of Spark Connect, as its environment says.
"""

import sys
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()


def topic(name):
    options = {"kafka.bootstrap.servers": sys.argv[2], "subscribe": name, "startingOffsets": "earliest"}
    return spark.readStream.format("kafka").options(**options).load()


for line in Path(sys.argv[1]).read_text().splitlines():
    query, topics, work, checkpoint, out, trigger = line.split("\t")
    rows = reduce(DataFrame.union, map(topic, topics.split(",")))
    (
        rows.selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", f"{work} AS worked")
        .writeStream.format("parquet")
        .queryName(query)
        .option("path", out)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime=trigger)
        .start()
    )
spark.streams.awaitAnyTermination()
