"""An ordinary job: what topics have, once each, as Parquet; then it counts a topic's history, as a backfill reads it.

`job.py SERVERS FOLDER TOPIC…`; a topic given as `NAME=TOPIC` is a source of that name.
"""

import sys
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from headgate_spark import backfill

servers, folder, *topics = sys.argv[1:]
spark = SparkSession.builder.appName("versions").getOrCreate()


def source(given):
    name, _, topic = given.rpartition("=")
    reader = spark.readStream.name(name) if name else spark.readStream
    reader = reader.format("kafka").option("kafka.bootstrap.servers", servers)
    # The end of a range, of up to two polls, is never read in columns.
    reader = reader.option("kafka.max.poll.records", 50)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return rows.selectExpr("cast(cast(value as string) as long) as id")


writer = reduce(DataFrame.union, map(source, topics)).writeStream.queryName("versions").format("parquet")
writer = writer.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/checkpoint")
query = writer.trigger(availableNow=True).start()
query.awaitTermination()
print(query._jsq.explainInternal(False))
kafka = backfill.Kafka(topics[0].rpartition("=")[2], {"kafka.bootstrap.servers": servers})
print("the history has", kafka.history(spark, kafka.cut(spark)).count(), "records")
print("the job's own end")
