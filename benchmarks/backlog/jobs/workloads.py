"""The queries whose backlog is processed, each written once, for streams and for batches.

A workload makes a `Result` of its inputs, which have `key`, `value` and `event_time`. How it is run (one batch or
many, by a stream or not) is for `turns.py` and whoever governs it. An ordinary module of an ordinary job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import topics
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark import backfill

SCHEMA = "key long, value long, event_time timestamp"
FILES = {"pathGlobFilter": "*.parquet"}
"""A recording has its description beside its records."""
ONCE = 10
"""How often a key comes on each side of `aggregation` and `cogroup`: a key's row is whole when it has all of them."""
NEAR = timedelta(seconds=10)
"""Of the join: how far event times of partners may be apart, and how late a row may come."""
DELAY = "2 minutes"
AGAIN = 5
"""How often a key comes in the backlog of `outage`."""
TIMES = 4
"""How often a key comes in the recording of `totals`, backlog and live rows together."""
END = "2026-01-01 00:00:00"
"""Event time at which the backlog of every recording ends."""


@dataclass(frozen=True)
class Result:
    """What a workload comes to."""

    rows: DataFrame
    output_mode: str
    identity: Sequence[str]
    """Columns by which results are compared."""
    is_whole: Column | None = None
    """Which rows count, where a stream also writes such as change later; None: all of them."""


def aggregation(inputs: Sequence[DataFrame], times: int = ONCE) -> Result:
    """Count and sum per key, each of which comes so many `times`."""
    rows = inputs[0].groupBy("key").agg(F.count("*").alias("records"), F.sum("value").alias("total"))
    return Result(rows, "update", ("key", "records", "total"), F.col("records") == times)


def totals(inputs: Sequence[DataFrame]) -> Result:
    """Count and sum per key, over a backlog and what arrives after it."""
    return aggregation(inputs, TIMES)


def outage(inputs: Sequence[DataFrame]) -> Result:
    """Count and sum per key, where a key that comes in the backlog has come once before."""
    return aggregation(inputs, 1 + AGAIN)


def marked(inputs: Sequence[DataFrame]) -> Result:
    """Count and sum per key where the values of a key are even but for its last one: so its sum tells when it is
    whole, however often it comes."""
    result = aggregation(inputs)
    return replace(result, is_whole=F.col("total") % 2 == 1)


def cogroup(inputs: Sequence[DataFrame], times: int = ONCE) -> Result:
    """Bring the values of both sides together by key, as two lists; each key comes so many `times` on each side."""
    left, right = inputs
    nothing = F.lit(None).cast("long")
    both = left.select("key", F.col("value").alias("left"), nothing.alias("right")).union(
        right.select(other_key(), nothing.alias("left"), (F.col("value") + 1).alias("right"))
    )
    lists = both.groupBy("key").agg(
        F.sort_array(F.collect_list("left")).alias("left"),
        F.sort_array(F.collect_list("right")).alias("right"),
    )
    is_whole = (F.size("left") == times) & (F.size("right") == times)
    return Result(lists, "update", ("key", "left", "right"), is_whole)


def cogroup_100(inputs: Sequence[DataFrame]) -> Result:
    """The same with lists that are ten times as long."""
    return cogroup(inputs, 10 * ONCE)


def join(inputs: Sequence[DataFrame]) -> Result:
    """Find the rows of both sides that have a key in common and lie near each other in time."""
    left, right = left_side(inputs[0]), right_side(inputs[1])
    delay = f"{NEAR.seconds} seconds"
    near = F.col("right_at").between(
        F.col("left_at") - F.expr(f"INTERVAL {delay}"), F.col("left_at") + F.expr(f"INTERVAL {delay}")
    )
    partners = right.withColumnRenamed("key", "right_key").withWatermark("right_at", delay)
    is_partner = (F.col("key") == F.col("right_key")) & near
    return joined(left.withWatermark("left_at", delay).join(partners, is_partner))


def backfilled_join(
    spark: SparkSession, inputs: Sequence[str], checkpoint: str, bootstrap: str | None = None
) -> Result:
    """The same join with its history joined as a batch, and going on as a stream from there; of topics, if there is
    a broker."""
    left, right = (history(one, bootstrap) for one in inputs)
    of_left, of_right = (parsed(side, bootstrap) for side in (left_side, right_side))
    rows = backfill.join(
        spark,
        backfill.Side("left", left, "left_at", NEAR, of_left),
        backfill.Side("right", right, "right_at", NEAR, of_right),
        on=["key"],
        within=(-NEAR, NEAR),
        checkpoint=checkpoint,
    )
    return joined(rows)


def history(name: str, bootstrap: str | None) -> backfill.Source:
    """Return a recording or a topic, cut where it ends now."""
    if bootstrap is None:
        return backfill.Files(name, "parquet", SCHEMA, FILES)
    return topics.as_history(name, bootstrap)


def parsed(side: Callable[[DataFrame], DataFrame], bootstrap: str | None) -> Callable[[DataFrame], DataFrame]:
    """Return what makes a side of the join of what its source reads."""
    return side if bootstrap is None else lambda records: side(topics.parsed(records))


def left_side(records: DataFrame) -> DataFrame:
    """Return what the join takes of a row."""
    return records.select("key", F.col("value").alias("left"), F.col("event_time").alias("left_at"))


def right_side(records: DataFrame) -> DataFrame:
    """Return what the join takes of a row."""
    return records.select(other_key(), F.col("value").alias("right"), F.col("event_time").alias("right_at"))


def joined(rows: DataFrame) -> Result:
    """Return the result of the join, however it was made."""
    return Result(rows, "append", ("key", "left", "left_at", "right", "right_at"))


def other_key() -> Column:
    """Return the key of the right side, whose recording has the order of keys of the left one.

    Neighbouring keys change places, so that no row has its partner where it is itself.
    """
    return F.col("key").bitwiseXOR(F.lit(1)).alias("key")


def windows(inputs: Sequence[DataFrame]) -> Result:
    """Count and sum per key and ten minutes, each window once, when it is over.

    A stream does not write the last window, which more could come for; so it does not count in a batch.
    """
    of_window = (
        inputs[0].withWatermark("event_time", DELAY).groupBy(F.window("event_time", "10 minutes"), "key")
    )
    totals = of_window.agg(F.count("*").alias("records"), F.sum("value").alias("total"))
    rows = totals.select(F.col("window.start").alias("start"), "window.end", "key", "records", "total")
    is_over = F.col("end") <= F.lit(END).cast("timestamp") - F.expr(f"INTERVAL {DELAY}")
    return Result(rows, "append", ("start", "key", "records", "total"), is_over)


def deduplication(inputs: Sequence[DataFrame]) -> Result:
    """Keep one of the rows that a key has in two minutes; each key comes once a minute."""
    slot = F.floor(F.unix_seconds("event_time") / 120).alias("slot")
    rows = inputs[0].select("key", slot, "value", "event_time")
    if not rows.isStreaming:
        return Result(rows.dropDuplicates(["key", "slot"]), "append", ("key", "slot"))
    once = rows.withWatermark("event_time", DELAY).dropDuplicatesWithinWatermark(["key", "slot"])
    return Result(once, "append", ("key", "slot"))


WORKLOADS: Mapping[str, Callable[[Sequence[DataFrame]], Result]] = {
    "aggregation": aggregation,
    "outage": outage,
    "marked": marked,
    "totals": totals,
    "cogroup": cogroup,
    "cogroup_100": cogroup_100,
    "join": join,
    "windows": windows,
    "deduplication": deduplication,
}
