"""An ordinary job with two queries: one that Spark runs continuously, and one in micro-batches."""

import sys

from pyspark.sql import SparkSession

root = sys.argv[1]

spark = SparkSession.builder.appName("continuous").getOrCreate()


def writer(rows, name):
    return rows.writeStream.queryName(name).format("noop").option("checkpointLocation", f"{root}/{name}")


ticks = spark.readStream.format("rate").option("numPartitions", 1).load()
writer(ticks, "endless").trigger(continuous="1 second").start()
steps = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
writer(steps, "batches").start()
spark.streams.awaitAnyTermination()
