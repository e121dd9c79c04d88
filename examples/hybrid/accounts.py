"""Each account's balance, from a snapshot and the change log that goes on from it.

    headgate-run examples/hybrid/accounts.py SNAPSHOT BROKERS CHECKPOINT

SNAPSHOT is a folder `…/snapshot` of Parquet files with `account long, version long, balance double`. The topic
`account-changes` has JSON records with the same members, the topic `account-balances` gets the newest balance of each
account. An ordinary job: that the log waits until the snapshot has been read is said in accounts.yaml, not here.

The log is read from its latest offset, which Spark fixes when the query starts for the first time and keeps in the
checkpoint. So take the snapshot after that start, or start where it was taken: `startingTimestamp`.
A change that is in both is harmless: the higher of two versions counts.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, max_by, struct, to_json
from pyspark.sql.functions import max as latest

COLUMNS = "account long, version long, balance double"

snapshot, brokers, checkpoint = sys.argv[1:4]
spark = SparkSession.builder.appName("accounts").getOrCreate()

past = spark.readStream.schema(COLUMNS).parquet(snapshot)
reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
records = reader.option("subscribe", "account-changes").option("startingOffsets", "latest").load()
changes = records.select(from_json(col("value").cast("string"), COLUMNS).alias("change")).select("change.*")

balances = (
    past.union(changes)
    .groupBy("account")
    .agg(max_by("balance", "version").alias("balance"), latest("version").alias("version"))
)
rows = balances.select(
    col("account").cast("string").alias("key"),
    to_json(struct("account", "version", "balance")).alias("value"),
)
writer = rows.writeStream.queryName("balances").outputMode("update").format("kafka")
writer = writer.option("kafka.bootstrap.servers", brokers).option("topic", "account-balances")
writer.option("checkpointLocation", checkpoint).start().awaitTermination()
