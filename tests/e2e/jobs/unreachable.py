"""Two queries: one that goes on, and one of a topic at an address where nobody listens."""

import sys

from pyspark.sql import SparkSession

folder, servers = sys.argv[1:]

spark = SparkSession.builder.appName("unreachable").getOrCreate()
ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
orders = spark.readStream.format("kafka").options(
    **{"kafka.bootstrap.servers": servers, "subscribe": "orders"}
)


def start(name, frame):
    writer = frame.writeStream.queryName(name).format("noop")
    return writer.option("checkpointLocation", f"{folder}/{name}").start()


going_on = start("steady", ticks)
start("waiting", orders.load())
going_on.awaitTermination()
