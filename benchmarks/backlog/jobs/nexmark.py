"""Queries of Nexmark, each written once, for streams and for batches.

After the published definitions, as ordinary structured streaming; where append mode asks for something else, the
query says so. A query gets the stream of all events (`auctions.py`), once for each kind that it reads, and picks
what it needs. Windows and sessions are short enough to come by the hundred in an hour, and to end in the ten minutes
that come live after it.

Results are compared, so none may depend on where batches end. Event times ascend, so no row ever comes behind a
watermark, and what a query in append mode has written in the end follows from the last watermark alone. What that
one leaves open does not count in a batch either (`is_over`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from workloads import Result

SCHEMA = (
    "kind string, id long, name string, city string, state string, seller long, category long, expires timestamp,"
    " auction long, bidder long, price long, event_time timestamp"
)
DELAY = "4 seconds"
LONGEST = "60 seconds"
"""The longest that an auction is open."""
LAST = "2026-01-01 00:10:00"
"""Event time at which the recording ends: its live part, which follows upon an hour of backlog."""
UNSETTLED = "2 minutes"
"""Before the end of the recording: more than the last watermark can be behind, at every scale."""


def pass_through(inputs: Sequence[DataFrame]) -> Result:
    """Query 0: every bid, as it is. Row by row, so batches are no matter."""
    return Result(bids(inputs[0]), "append", ("auction", "bidder", "price", "event_time"))


def local_items(inputs: Sequence[DataFrame]) -> Result:
    """Query 3: who sells what in category 10 from Oregon, Idaho or California, over all time.

    An inner join whose state is never cleaned: a pair is written once, with the later one of its rows, in
    whatever batch that is.
    """
    sellers = of_kind("person", inputs[0]).where(F.col("state").isin("OR", "ID", "CA"))
    items = of_kind("auction", inputs[1]).where(F.col("category") == 10)
    rows = sellers.select(F.col("id").alias("person"), "name", "city", "state").join(
        items.select(F.col("id").alias("auction"), "seller"), F.col("person") == F.col("seller")
    )
    return Result(rows, "append", ("name", "city", "state", "auction"))


def average_prices(inputs: Sequence[DataFrame]) -> Result:
    """Query 4: the average winning bid of each category, here of the auctions that were opened in five minutes.

    The highest bid in time wins. An average of all auctions ever would change with each of them, so it has no last
    value that append mode could write. Auctions are averaged once no bid can come for any of them: the join hands
    on the watermark less the longest time that one is open, the winners are final at that, and their averages too.
    """
    auctions = of_kind("auction", inputs[0]).select(
        F.col("id").alias("item"), "category", "expires", F.col("event_time").alias("opened")
    )
    offers = bids(inputs[1]).withColumnRenamed("event_time", "offered").withWatermark("offered", DELAY)
    is_in_time = F.col("offered").between(F.col("opened"), F.col("expires"))
    is_bounded = F.col("offered") <= F.col("opened") + F.expr(f"INTERVAL {LONGEST}")
    made = auctions.withWatermark("opened", DELAY).join(
        offers, (F.col("item") == F.col("auction")) & is_in_time & is_bounded
    )
    winners = (
        made.select("item", "category", "opened", "price")
        .groupBy("item", "category", "opened")
        .agg(F.max("price").alias("final"))
    )
    averages = winners.groupBy(F.window("opened", "5 minutes"), "category").agg(
        F.avg("final").alias("average")
    )
    is_closed = is_over(F.col("window.end") + F.expr(f"INTERVAL {LONGEST}"))
    return Result(averages, "append", ("window", "category", "average"), is_closed)


def hot_items(inputs: Sequence[DataFrame]) -> Result:
    """Query 5: the auctions with the most bids of the last minute, every ten seconds; more than one in a tie.

    Two aggregations in a row. The watermark closes all counts of a window at once and then the window itself, and
    a count is only written when no bid can change it.
    """
    counts = (
        bids(inputs[0])
        .withWatermark("event_time", DELAY)
        .groupBy(F.window("event_time", "1 minute", "10 seconds"), "auction")
        .agg(F.count("*").alias("bids"))
    )
    most = counts.groupBy("window").agg(
        F.max("bids").alias("bids"), F.collect_list(F.struct("auction", "bids")).alias("counted")
    )
    hottest = F.filter("counted", lambda one: one["bids"] == F.col("bids"))
    rows = most.select("window", "bids", F.explode(hottest["auction"]).alias("auction"))
    return Result(rows, "append", ("window", "bids", "auction"), is_over(F.col("window.end")))


def highest_bids(inputs: Sequence[DataFrame]) -> Result:
    """Query 7: the highest bid of each ten seconds, the first one of those that are equal.

    The largest by price and time is the same in every order, and no two bids have the same time.
    """
    rank = F.struct("price", -F.unix_micros("event_time"))
    highest = (
        bids(inputs[0])
        .withWatermark("event_time", DELAY)
        .groupBy(F.window("event_time", "10 seconds"))
        .agg(F.max_by(F.struct("auction", "bidder", "price", "event_time"), rank).alias("bid"))
    )
    return Result(highest, "append", ("window", "bid"), is_over(F.col("window.end")))


def new_sellers(inputs: Sequence[DataFrame]) -> Result:
    """Query 8: the persons who opened an auction in the same minute in which they joined.

    A semi-join on the window: a person is written once, with the first auction of that minute, and the watermark
    removes a minute only when nothing more can come in it.
    """
    minute = F.window("event_time", "1 minute")
    joined = of_kind("person", inputs[0]).withWatermark("event_time", DELAY)
    opened = of_kind("auction", inputs[1]).withWatermark("event_time", DELAY)
    rows = joined.select("id", "name", minute.alias("joined")).join(
        opened.select("seller", minute.alias("opened")),
        (F.col("id") == F.col("seller")) & (F.col("joined") == F.col("opened")),
        "left_semi",
    )
    return Result(rows, "append", ("id", "name", "joined"))


def sessions(inputs: Sequence[DataFrame]) -> Result:
    """Query 11: how many bids each bidder made in a session, which ends with ten seconds without one.

    Sessions that a batch has begun are merged with what the next one brings, and the watermark closes one only when
    no bid can prolong it.
    """
    counts = (
        bids(inputs[0])
        .withWatermark("event_time", DELAY)
        .groupBy(F.session_window("event_time", "10 seconds").alias("session"), "bidder")
        .agg(F.count("*").alias("bids"))
    )
    return Result(counts, "append", ("session", "bidder", "bids"), is_over(F.col("session.end")))


def of_kind(kind: str, events: DataFrame) -> DataFrame:
    """Return the events of a kind."""
    return events.where(F.col("kind") == kind)


def bids(events: DataFrame) -> DataFrame:
    """Return the bids."""
    return of_kind("bid", events).select("auction", "bidder", "price", "event_time")


def is_over(end: Column) -> Column:
    """Tell whether a time lies before what a stream may leave open when its input ends."""
    return end <= F.lit(LAST).cast("timestamp") - F.expr(f"INTERVAL {UNSETTLED}")


QUERIES: Mapping[str, Callable[[Sequence[DataFrame]], Result]] = {
    "nexmark_q0": pass_through,
    "nexmark_q3": local_items,
    "nexmark_q4": average_prices,
    "nexmark_q5": hot_items,
    "nexmark_q7": highest_bids,
    "nexmark_q8": new_sellers,
    "nexmark_q11": sessions,
}
