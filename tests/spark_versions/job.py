"""An ordinary job: what two topics have, once each, as Parquet. `job.py SERVERS TOPIC TOPIC FOLDER`."""

import sys

from pyspark.sql import SparkSession

servers, first, second, folder = sys.argv[1:5]
spark = SparkSession.builder.appName("versions").getOrCreate()


def topic(name):
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", name).option("startingOffsets", "earliest").load()
    return rows.selectExpr("cast(cast(value as string) as long) as id")


writer = topic(first).union(topic(second)).writeStream.queryName("versions").format("parquet")
writer = writer.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/checkpoint")
writer.trigger(availableNow=True).start().awaitTermination()
print("the job's own end")
