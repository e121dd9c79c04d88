"""An ordinary job: files, then the topic that follows them, by a plain union."""

import sys

from pyspark.sql import SparkSession

history, bootstrap, topic, starting, target, checkpoint = sys.argv[1:7]

spark = SparkSession.builder.appName("hybrid").getOrCreate()
past = spark.readStream.schema("id long").parquet(history)
reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
live = reader.option("subscribe", topic).option("startingOffsets", starting).load()
rows = past.union(live.selectExpr("cast(cast(value as string) as bigint) as id"))
writer = rows.writeStream.queryName("hybrid").format("parquet").option("path", target)
writer.option("checkpointLocation", checkpoint).start().awaitTermination()
