"""An ordinary job: what topics have, once each, as Parquet; then the history of one of them is joined twice.

`job.py SERVERS FOLDER TOPIC…`; a topic given as `NAME=TOPIC` is a source of that name.
"""

import sys
from datetime import timedelta
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate_spark import backfill

DELAY = timedelta(seconds=1)
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


def joined(name, condition):
    """Join the history of a topic with a part of itself; tells where it ends, as is kept."""
    kafka = backfill.Kafka(topics[0].rpartition("=")[2], {"kafka.bootstrap.servers": servers})
    columns = "cast(cast(value as string) as long) as id", "timestamp as"
    left = backfill.Side(
        "l", kafka, "at", DELAY, lambda rows: rows.selectExpr(columns[0], f"{columns[1]} at")
    )
    right = backfill.Side(
        "r", kafka, "bt", DELAY, lambda rows: rows.selectExpr(columns[0], f"{columns[1]} bt").where(condition)
    )
    checkpoint = f"{folder}/{name}"
    backfill.join(spark, left, right, on=["id"], within=(-DELAY, DELAY), checkpoint=checkpoint)
    kept = sorted(Path(f"{checkpoint}.headgate").glob("backfill.*.json"))[-1].read_text()
    found = spark.read.parquet(f"{checkpoint}.headgate/backfill/history").count()
    print("history", name, found, "replayed from", kept[kept.index("horizon") :])


joined("all", "true")
joined("none", "false")
print("the job's own end")
