"""Orders, each with its shipments of the following day, as Parquet files; years of orders are joined as a batch.

    python shipments.py --orders DIR --shipments DIR --out DIR --checkpoint DIR

Both inputs are directories of Parquet files that are added to: orders with `order_id long, ordered_at timestamp,
amount long`, shipments with `order_id long, shipped_at timestamp, warehouse string`. Orders may come up to an hour
late, shipments up to two.

At the first start the files that are there are joined as a batch; then the query goes on with each new file. Started
again at any time, on the same checkpoint, it goes on where it was: every pair is written once.

`--how left_outer` writes orders without a shipment too, once none can come any more; `--how left_semi` writes
orders that have been shipped.
"""

import argparse
from datetime import timedelta

from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from headgate_spark import backfill

ORDERS = "order_id long, ordered_at timestamp, amount long"
SHIPMENTS = "order_id long, shipped_at timestamp, warehouse string"


def shipped_orders(spark: SparkSession, args: argparse.Namespace) -> DataStreamWriter:
    """Return the query, ready to start. Raises `BackfillError` where it cannot be what it is asked to be."""
    orders = backfill.Side(
        name="orders",
        source=backfill.Files(args.orders, "parquet", ORDERS),
        event_time="ordered_at",
        watermark=timedelta(hours=1),
    )
    shipments = backfill.Side(
        name="shipments",
        source=backfill.Files(args.shipments, "parquet", SHIPMENTS),
        event_time="shipped_at",
        watermark=timedelta(hours=2),
    )
    joined = backfill.join(
        spark,
        orders,
        shipments,
        on=["order_id"],
        within=(timedelta(0), timedelta(days=1)),
        checkpoint=args.checkpoint,
        how=args.how,
    )
    writer = joined.writeStream.queryName("shipments").outputMode("append").format("parquet")
    return writer.option("checkpointLocation", args.checkpoint).option("path", args.out)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Orders with their shipments of the following day.")
    parser.add_argument("--orders", required=True, help="directory that files of orders are added to")
    parser.add_argument("--shipments", required=True, help="directory that files of shipments are added to")
    parser.add_argument("--out", required=True, help="directory for the result")
    parser.add_argument("--checkpoint", required=True, help="directory for the checkpoint of the query")
    parser.add_argument("--how", default="inner", help="inner (the default), left_outer or left_semi")
    return parser.parse_args()


def main() -> None:
    """Run the query until it is stopped."""
    args = arguments()
    spark = SparkSession.builder.appName("shipments").getOrCreate()
    try:
        writer = shipped_orders(spark, args)
    except backfill.BackfillError as error:
        raise SystemExit(f"shipments: {error}") from None
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
