"""An ordinary job: a history and what came after it, by a plain union, counted per key exactly once."""

import sys

from pyspark.sql import SparkSession

history, live, target, checkpoint = sys.argv[1:5]

spark = SparkSession.builder.appName("hybrid").getOrCreate()
rows = spark.readStream.format("replay").load(history).union(spark.readStream.format("replay").load(live))
writer = rows.writeStream.queryName("hybrid").format("parquet").option("path", target)
writer.option("checkpointLocation", checkpoint).trigger(
    processingTime="200 milliseconds"
).start().awaitTermination()
