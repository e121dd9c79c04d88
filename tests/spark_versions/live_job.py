"""An ordinary job: a topic copied into another one, and counted by key into a third one.

`live_job.py SERVERS FOLDER TOPIC COPIES COUNTS`; what the copy is doing fails, as long as there is a file `fail`.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

servers, folder, topic, copies, counts = sys.argv[1:]
spark = SparkSession.builder.appName("versions").getOrCreate()


def numbers():
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return rows.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS n")


def started(name, frame, into):
    writer = frame.writeStream.queryName(name).format("kafka").outputMode("update")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", into)
    return writer.option("checkpointLocation", f"{folder}/{name}").start()


copy = started("copy", numbers().selectExpr("CAST(n AS STRING) AS value"), copies)
counted = numbers().selectExpr("n % 5 AS key").groupBy("key").count()
count = started("count", counted.selectExpr("concat_ws('=', key, count) AS value"), counts)
while not (copy.awaitTermination(0.2) or count.awaitTermination(0.2)):
    if Path(folder, "fail").exists():
        spark.sparkContext.cancelJobGroup(str(copy.runId))
