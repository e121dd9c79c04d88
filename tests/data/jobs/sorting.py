"""An ordinary job that sorts each of its batches in one task."""

import sys

from pyspark.sql import SparkSession

source, checkpoint = sys.argv[1:3]

spark = SparkSession.builder.appName("sorting").getOrCreate()
rows = spark.readStream.format("replay").load(source)
query = (
    rows.writeStream.queryName("sorting")
    .foreachBatch(lambda batch, _: batch.coalesce(1).sort("id").write.format("noop").mode("append").save())
    .option("checkpointLocation", checkpoint)
    .trigger(processingTime="200 milliseconds")
    .start()
)
query.awaitTermination()
