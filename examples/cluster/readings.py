"""Hot readings of sensors: an ordinary PySpark job that imports nothing of Headgate.

Nine tenths of the readings are there when it starts, the rest arrives a thousand a second. It needs no storage
beside its image: the source replays a file of the image, the sink counts and forgets, and a query without state keeps
nothing that executors would have to share. A job of yours writes its checkpoint to an object store.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

data, checkpoint = sys.argv[1:]
spark = SparkSession.builder.appName("readings").getOrCreate()
readings = (
    spark.readStream.format("replay")
    .option("eventTime", "at")
    .option("cut", "2026-01-01T01:30:00Z")
    .load(data)
)
hot = readings.where("celsius > 30").select("at", "sensor", F.round("celsius").alias("celsius"))
query = hot.writeStream.queryName("hot").format("noop").option("checkpointLocation", checkpoint).start()
query.awaitTermination()
