"""Join orders with their payments, which follow within ten seconds. An ordinary script.

    python join.py --bootstrap HOST:PORT --orders TOPIC --payments TOPIC --checkpoint DIR

Reads everything there is, at most 20,000 records of each topic at a time, and ends. A record that comes half a minute
of event time after a later one is too late for the join, and is dropped.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)


def stream(spark: SparkSession, bootstrap: str, topic: str, name: str) -> DataFrame:
    """Return key and time of a topic."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    columns = [F.col("key").alias(f"{name}_key"), F.col("timestamp").alias(f"{name}_time")]
    return (
        rows.option("maxOffsetsPerTrigger", 20_000)
        .load()
        .select(columns)
        .withWatermark(f"{name}_time", "30 seconds")
    )


def main() -> None:
    """Run the join to the end of both topics."""
    parser = argparse.ArgumentParser(description="Join orders with their payments.")
    for option in ("bootstrap", "orders", "payments", "checkpoint"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    spark = SparkSession.builder.appName("join").getOrCreate()
    orders = stream(spark, args.bootstrap, args.orders, "order")
    payments = stream(spark, args.bootstrap, args.payments, "payment")
    paid = F.expr(
        "order_key = payment_key AND payment_time BETWEEN order_time AND order_time + INTERVAL 10 SECONDS"
    )
    joined = orders.join(payments, paid).writeStream.queryName("join").format("noop")
    joined = joined.trigger(availableNow=True).option("checkpointLocation", args.checkpoint)
    joined.start().awaitTermination()


if __name__ == "__main__":
    main()
