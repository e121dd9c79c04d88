"""The tables of a pipeline: one per line of a table, each of one topic or a union of several."""

import json
import os
from functools import reduce
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession


def topic(name):
    options = {"kafka.bootstrap.servers": os.environ["BROKER"], "subscribe": name}
    read = SparkSession.active().readStream.format("kafka").options(**options)
    return read.option("startingOffsets", "earliest").load()


OF_FLOWS = json.loads(os.environ.get("FLOW_CONF", "{}"))
"""By flow, the properties that it has beside those of the pipeline."""


def define(query, topics, work):
    @dp.table(name=query, format="parquet", spark_conf=OF_FLOWS.get(query, {}))
    def rows():
        read = reduce(DataFrame.union, map(topic, topics.split(",")))
        return read.selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", f"{work} AS worked")


for line in Path(os.environ["QUERIES"]).read_text().splitlines():
    define(*line.split("\t")[:3])
