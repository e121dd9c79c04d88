"""What is entered into a session that lives long, cell by cell: many queries, of several sessions, one in batches."""

# %%
import os
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()


def topic(session, name):
    read = session.readStream.format("kafka").option("kafka.bootstrap.servers", os.environ["BROKER"])
    return read.option("subscribe", name).option("startingOffsets", "earliest").load()


# %%
def start(session, query, topics, work, checkpoint, out, trigger):
    rows = reduce(DataFrame.union, [topic(session, name) for name in topics.split(",")])
    rows = rows.selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", f"{work} AS worked")
    writer = rows.writeStream.format("parquet").queryName(query).option("path", out)
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime=trigger).start()


# %%
sessions = [spark, spark.newSession()]
lines = [line.split("\t") for line in Path(os.environ["QUERIES"]).read_text().splitlines()]

# %%
started = [start(sessions[number % 2], *line) for number, line in enumerate(lines)]
