"""An ordinary job: a history and what came after it, by a plain union, counted per key exactly once."""

import sys

from pyspark.sql import SparkSession

history, live, target, checkpoint = sys.argv[1:5]
per_branch = "--watermark-per-branch" in sys.argv

spark = SparkSession.builder.appName("hybrid").getOrCreate()


def recorded(path):
    rows = spark.readStream.format("replay").load(path)
    return rows.withWatermark("ts", "1 second") if per_branch else rows


rows = recorded(history).union(recorded(live))
writer = rows.writeStream.queryName("hybrid").format("parquet").option("path", target)
writer.option("checkpointLocation", checkpoint).trigger(
    processingTime="200 milliseconds"
).start().awaitTermination()
