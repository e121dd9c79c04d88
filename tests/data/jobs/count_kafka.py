"""Count the records of a topic by key, into another topic.

    count_kafka.py BOOTSTRAP TOPIC OUT CHECKPOINT

A value is a number; `<key>=<count>` is written.
"""

import sys

from pyspark.sql import SparkSession

KEYS = 5

bootstrap, topic, out, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
source = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
)
rows = source.option("startingOffsets", "earliest").load()
counts = rows.selectExpr(f"CAST(CAST(value AS STRING) AS BIGINT) % {KEYS} AS key").groupBy("key").count()
sink = (
    counts.selectExpr("concat_ws('=', key, count) AS value").writeStream.format("kafka").outputMode("update")
)
sink = sink.option("kafka.bootstrap.servers", bootstrap).option("topic", out).queryName("counts")
sink.option("checkpointLocation", checkpoint).start().awaitTermination()
