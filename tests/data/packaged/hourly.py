"""A plain job with a trigger of an hour. It ends well after several batches, which plain Spark takes hours for."""

import sys
import time

from pyspark.sql import SparkSession

BATCHES = 4
DEADLINE_SECONDS = 120

spark = SparkSession.builder.appName("hourly").getOrCreate()
stream = spark.readStream.format("rate").option("rowsPerSecond", "100").load().writeStream.format("noop")
query = stream.queryName("hourly").option("checkpointLocation", sys.argv[1])
running = query.trigger(processingTime="1 hour").start()
deadline = time.monotonic() + DEADLINE_SECONDS
while (done := [each for each in running.recentProgress if each["numInputRows"]])[BATCHES - 1 :] == []:
    if time.monotonic() > deadline:
        sys.exit(f"{len(done)} batches in {DEADLINE_SECONDS} s")
    running.awaitTermination(1)
print(f"{len(done)} batches")
running.stop()
spark.stop()
