"""Read a topic and drop it, while another query's own Python works for seconds at a time. An ordinary script.

python busy.py --bootstrap HOST:PORT --checkpoint DIR --topic NAME --seconds SECONDS --notes FILE

What it works at never gives the interpreter's lock away, as one long call of a library does. A line of FILE is when
such a piece of work began and when it ended, in seconds since 1970.
"""

import argparse
import time
from itertools import repeat
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

STEPS = 3_000_000
"""Of a sum, which is one call and not interrupted; about thirty milliseconds."""


def hold(steps: int) -> None:
    """Work in one call."""
    sum(repeat(1, steps))


def steps_of(seconds: float) -> int:
    """Return how many steps take so long at least, by the quickest of some tries: others are at work as well."""

    def took() -> float:
        began = time.perf_counter()
        hold(STEPS)
        return time.perf_counter() - began

    return int(STEPS * seconds / min(took() for _ in range(10)))


def main() -> None:
    """Run both queries until they are stopped."""
    parser = argparse.ArgumentParser(description="Read a topic beside a query whose own Python is busy.")
    for option in ("bootstrap", "checkpoint", "topic"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of each piece of work")
    parser.add_argument("--notes", type=Path, required=True, help="when it worked")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("busy").getOrCreate()
    options = {"kafka.bootstrap.servers": args.bootstrap, "startingOffsets": "earliest"}
    rows = spark.readStream.format("kafka").options(**options).option("subscribe", args.topic).load()

    steps = steps_of(args.seconds)

    def work(_: DataFrame, __: int) -> None:
        began = time.time()
        hold(steps)
        with args.notes.open("a") as notes:
            notes.write(f"{began} {time.time()}\n")

    busy = rows.writeStream.queryName("busy").foreachBatch(work)
    busy.option("checkpointLocation", f"{args.checkpoint}/busy").start()
    live = rows.writeStream.queryName("live").format("noop")
    live.option("checkpointLocation", f"{args.checkpoint}/live").start().awaitTermination()


if __name__ == "__main__":
    main()
