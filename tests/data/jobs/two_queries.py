"""An ordinary job with two queries: one starts late, and one is started again by the job itself."""

import sys

from pyspark.sql import SparkSession

root = sys.argv[1]

spark = SparkSession.builder.appName("two").getOrCreate()


def start(name):
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = ticks.writeStream.queryName(name).format("noop").option("checkpointLocation", f"{root}/{name}")
    return writer.start()  # no trigger: as fast as it can


def wait_for_batches(query, count):
    while query.lastProgress is None or query.lastProgress["batchId"] < count:
        query.awaitTermination(0.05)


first = start("first")
wait_for_batches(first, 2)
late = start("late")
wait_for_batches(late, 2)
first.stop()
again = start("first")
wait_for_batches(again, first.lastProgress["batchId"] + 2)
print("all three have run", flush=True)
spark.streams.resetTerminated()  # of the first run
spark.streams.awaitAnyTermination()
print("the job's own end")
