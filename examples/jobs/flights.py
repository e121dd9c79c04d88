"""Departure delays per airport and hour, next to the weather of that hour, as Parquet files.

    python flights.py --data DIR --out DIR --checkpoint DIR

Reads the sources `DIR/flights` and `DIR/weather` (Parquet, sorted by event time) as streams through
`format("replay")`: what lies before `--cut` is there at once, what lies after arrives at `--speed` times
real time. The query ends when both have been read to their end and every window that can close has been
written.

The result does not depend on where batches end:

- Both inputs are sorted by event time, and Spark's watermark is that of the source which is further behind,
  so no row ever comes late and none is dropped, however a batch is cut.
- In append mode a window is written once, when the watermark has passed its end; by then all its rows have
  been read.
- A window of weather leaves the state of the join only after the window of flights it belongs to has been
  joined.
- A flight that is told twice has the same event time both times: whichever row comes first is the same row.
- Delays are whole minutes: sums and counts are integers, and the mean is one division of two of them. A sum
  of floating-point numbers would depend on the order of its rows.
- The watermark at the end follows from the last row of each input, and the query waits for the batch that
  runs with it.

A restart changes nothing either, as long as each source has a row left: Spark keeps one watermark in its
checkpoint, forgets which source held it back, and waits after a restart until it has seen a row of each.
"""

import argparse
import json
from datetime import timedelta

from pyarrow.dataset import dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming import StreamingQuery

EVENT_TIME = {"flights": "scheduled", "weather": "time_hour"}
DELAY = timedelta(minutes=10)
"""How far the watermark stays behind the newest row, as a job would set it that has no sorted input."""


def rows_recorded(data: str) -> list[int]:
    """Return the rows of each source, in the order of the query; they stand in the files' footers."""
    return [dataset(f"{data}/{name}").count_rows() for name in EVENT_TIME]


def is_done(query: StreamingQuery, rows: list[int]) -> bool:
    """Tell whether the query has read the last row and has nothing left to do.

    The batch that reads the last row moves the watermark on, and another one without rows writes the
    windows that this closes. Only the trigger after it finds nothing to do, so progress is looked at before
    status.
    """
    progress = json.loads(query.lastProgress.json) if query.lastProgress else {"sources": []}
    ends = [(source["endOffset"] or {}).get("row") for source in progress["sources"]]
    status = query.status
    return ends == rows and not status["isDataAvailable"] and not status["isTriggerActive"]


def stream(spark: SparkSession, name: str, args: argparse.Namespace) -> DataFrame:
    """Return one source as a stream with its watermark."""
    column = EVENT_TIME[name]
    options = {
        "eventTime": column,
        "cut": args.cut,
        "speed": args.speed,
        "startedBy": args.started_by,
        "rowsPerBatch": args.rows_per_batch,
    }
    reader = spark.readStream.format("replay").options(**{k: v for k, v in options.items() if v is not None})
    return reader.load(f"{args.data}/{name}").withWatermark(column, f"{DELAY.total_seconds():.0f} seconds")


def delays_with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Join the delays per airport and hour with the observation of that hour, where there is one.

    A feed tells some flights twice; each counts once. To know them again the state keeps every flight until the
    watermark has passed it, and within a batch the watermark stands still.
    """
    once = flights.dropDuplicatesWithinWatermark(["carrier", "flight", "origin", "scheduled"])
    delays = once.groupBy("origin", F.window("scheduled", "1 hour")).agg(
        F.count("*").alias("flights"),
        F.count("dep_delay").alias("departures"),
        F.sum("dep_delay").alias("delay_sum"),
        F.max("dep_delay").alias("delay_max"),
    )
    observed = weather.withColumn("window", F.window("time_hour", "1 hour")).drop("time_hour")
    return delays.join(observed, ["origin", "window"], "leftOuter").select(
        "origin",
        F.col("window.start").alias("hour"),
        "flights",
        "departures",
        "delay_sum",
        "delay_max",
        (F.col("delay_sum") / F.col("departures")).alias("delay_mean"),
        "temp",
        "humid",
        "wind_dir",
        "wind_speed",
        "wind_gust",
        "precip",
        "pressure",
        "visib",
    )


def start(spark: SparkSession, args: argparse.Namespace) -> StreamingQuery:
    """Start the query."""
    result = delays_with_weather(stream(spark, "flights", args), stream(spark, "weather", args))
    writer = result.writeStream.queryName("delays").outputMode("append").format("parquet")
    if args.trigger:
        writer = writer.trigger(processingTime=args.trigger)
    return writer.option("checkpointLocation", args.checkpoint).start(args.out)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Departure delays per airport and hour, with the weather.")
    parser.add_argument("--data", required=True, help="directory with flights/ and weather/")
    parser.add_argument("--out", required=True, help="directory for the result")
    parser.add_argument("--checkpoint", required=True, help="directory for the checkpoint of the query")
    parser.add_argument("--cut", help="what lies before this time is there at once (default: everything is)")
    parser.add_argument("--speed", help="what lies after the cut arrives at so many times real time")
    parser.add_argument("--started-by", help="a file: what lies after the cut arrives once it exists")
    parser.add_argument("--trigger", help="interval of batches, such as '1 second' (default: none)")
    parser.add_argument("--rows-per-batch", help="most rows per batch and source (default: all there are)")
    return parser.parse_args()


def main() -> None:
    """Run the query until there is nothing left to do, or until it is stopped."""
    args = arguments()
    spark = SparkSession.builder.appName("flights").getOrCreate()
    rows = rows_recorded(args.data)
    query = start(spark, args)
    while not query.awaitTermination(1):
        if is_done(query, rows):
            query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
