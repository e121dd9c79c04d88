"""An ordinary job: a query for each union it is given, of recordings and folders of Parquet, copied row by row.

    unions.py ROOT TRIGGER NAME=replay:FOLDER+parquet:FOLDER…

TRIGGER is an interval, or `now`. The branches are joined in the order in which they are given.
"""

import sys
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

root, trigger, *queries = sys.argv[1:]

spark = SparkSession.builder.appName("unions").getOrCreate()


def branch(text):
    kind, folder = text.split(":", 1)
    reader = spark.readStream.format(kind)
    return (reader if kind == "replay" else reader.schema("id long, ts timestamp")).load(folder).select("id")


started = []
for query in queries:
    name, branches = query.split("=", 1)
    rows = reduce(DataFrame.union, map(branch, branches.split("+")))
    writer = rows.writeStream.queryName(name).format("parquet").option("path", f"{root}/{name}")
    writer = writer.option("checkpointLocation", f"{root}/{name}-checkpoint")
    writer = writer.trigger(availableNow=True) if trigger == "now" else writer.trigger(processingTime=trigger)
    started.append(writer.start())
for query in started:
    query.awaitTermination()
