"""Counts orders of each shop: `orders.py ORDERS CHECKPOINT [live]`. An ordinary job, which knows nothing of Headgate.

It reads what is there and ends; with `live` it goes on until it is stopped. Each batch is printed.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def show(totals: DataFrame, batch: int) -> None:
    """Print a batch: how many orders there have been until now."""
    print(f"batch {batch}: {totals.agg(f.sum('count')).first()[0] or 0} orders until now", flush=True)


def main(orders: str, checkpoint: str, live: str = "") -> None:
    """Run the query."""
    spark = SparkSession.builder.appName("orders").config("spark.sql.shuffle.partitions", 2).getOrCreate()
    shops = spark.readStream.schema("shop string, euros long").json(orders).groupBy("shop")
    writer = shops.agg(f.count("*").alias("count"), f.sum("euros").alias("euros")).writeStream
    writer = writer.queryName("orders").outputMode("complete").foreachBatch(show)
    if not live:
        writer = writer.trigger(availableNow=True)
    writer.option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
