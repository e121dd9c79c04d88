"""The tables of a pipeline: one per line of a table, each of one topic or a union of several."""

import os
from functools import reduce
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession


def topic(name):
    options = {"kafka.bootstrap.servers": os.environ["BROKER"], "subscribe": name}
    read = SparkSession.active().readStream.format("kafka").options(**options)
    return read.option("startingOffsets", "earliest").load()


def define(query, topics, work):
    @dp.table(name=query, format="parquet")
    def rows():
        read = reduce(DataFrame.union, map(topic, topics.split(",")))
        return read.selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", f"{work} AS worked")


for line in Path(os.environ["QUERIES"]).read_text().splitlines():
    define(*line.split("\t")[:3])
