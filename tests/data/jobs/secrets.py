"""A job with a secret at each place that has one: a query of a topic out of reach, and one that fails when told."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder, servers, _, password = sys.argv[1:]
jaas = os.environ["ORDERS_JAAS"]

spark = SparkSession.builder.appName("secrets").getOrCreate()
orders = spark.readStream.format("kafka").options(
    **{
        "kafka.bootstrap.servers": servers,
        "subscribe": "orders",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas,
        "kafka.ssl.truststore.password": os.environ["TRUSTSTORE_WORD"],
    }
)
ticks = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=10, password=password)


def refuse(_batch, number):
    if Path(folder, "fail").exists():
        raise ValueError(f"batch {number}: no connection to {os.environ['SINK_URL']}")


def start(name, writer):
    return writer.queryName(name).option("checkpointLocation", f"{folder}/{name}").start()


waiting = start("orders", orders.load().writeStream.format("noop"))
start("steady", ticks.load().writeStream.foreachBatch(refuse))
waiting.awaitTermination()
