"""Two queries: one that goes on, and one that fails in its first batch. With `end` the job ends with it."""

import sys

from pyspark.sql import SparkSession

folder, mode = sys.argv[1:]

spark = SparkSession.builder.appName("failing").getOrCreate()
ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()


def refuse(batch, number):
    raise ValueError(f"the sink has no room for batch {number}")


def start(name, writer):
    return writer.queryName(name).option("checkpointLocation", f"{folder}/{name}").start()


going_on = start("steady", ticks.writeStream.format("noop"))
failing = start("refused", ticks.writeStream.foreachBatch(refuse))
if mode == "end":
    failing.awaitTermination()
going_on.awaitTermination()
