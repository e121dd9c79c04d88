"""`join`: a time-bounded join of two streams whose history is joined as a batch.

The order of steps is what makes it safe to be killed: the cut is kept before anything is computed, each result before
the next step, and the stream is there only when all of them are. From then on Spark's own checkpoint counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from headgate_spark.backfill import refusals
from headgate_spark.backfill.batch import HistoryJoin, Newest, with_event_time
from headgate_spark.backfill.horizon import Horizon, horizon
from headgate_spark.backfill.journal import Journal, open_journal, staging
from headgate_spark.backfill.matching import Matching, Side
from headgate_spark.backfill.parquet import unwritable
from headgate_spark.backfill.refusals import refuse
from headgate_spark.backfill.sources import Cut
from headgate_spark.backfill.stream import Staged, continued
from headgate_spark.engine.watermarks import watermarks

Pair = tuple[DataFrame, DataFrame]
"""Rows of the left and of the right side."""


def join(  # noqa: PLR0913 (what a join is made of, each by its name)
    spark: SparkSession,
    left: Side,
    right: Side,
    *,
    on: Sequence[str],
    within: tuple[timedelta | None, timedelta | None],
    checkpoint: str,
    how: str = "inner",
) -> DataFrame:
    """Join two streams on `on` and on event times, and compute as a batch what is there already.

    Returns a stream of the keys, the other columns of the left side, and, unless it is a semi join, those of the
    right one. Its rows are those of the streaming join, in append mode: all that the history comes to, and what the
    join finds from the cut on. What follows it in the query has to be stateless.

    `on` names one or more columns that both sides have. `within` is the least and the most of the right event time
    minus the left one, in whole milliseconds. `how` is `inner`, `left_outer` or `left_semi`. `checkpoint` is the
    location that the query is started with; `<checkpoint>.headgate/` keeps the cut and the batch's results, from the
    first start on. Computes the batch before it returns, unless an earlier start has done so: a failure on the way
    costs the step it was in, and every start goes on with the same cut.

    Raises `BackfillError`, with the side and the remedy, where the join cannot be backfilled: it is unbounded in
    time, a watermark or a column is missing, another run is at the checkpoint, or the checkpoint belongs to
    something else.
    """
    matching = _matching(left, right, on, within, how)
    staged = Staged(staging(checkpoint))
    with open_journal(spark, checkpoint, matching.described()) as journal:
        cuts = (
            journal.kept("cut") if journal.has("cut") else [side.source.cut(spark) for side in matching.sides]
        )
        live = _live(spark, matching, cuts)  # they can be joined, or no cut is kept
        journal.step("cut", lambda: cuts)
        if not journal.has("replayed"):
            batch = HistoryJoin(matching, *_histories(spark, matching, cuts, live))
            since = _joined(journal, batch, staged)
            journal.step("replayed", lambda: staged.write_replayed(_late(spark, batch, cuts, since), since))
        if not journal.has_batches:  # later some may be deleted: what the query has read
            journal.see_results(spark, "history", "replayed")
    return continued(spark, matching, live, staged)


def _joined(journal: Journal, batch: HistoryJoin, staged: Staged) -> Horizon:
    """Write the result of the history; returns where it ends."""

    def since(newest: Callable[[], Newest]) -> Horizon:
        return Horizon(**journal.step("horizon", lambda: asdict(horizon(*newest(), batch.matching.bounds))))

    if batch.needs_horizon:
        end = since(batch.newest)
        journal.step("history", lambda: staged.write_output(batch.output(end)))
        return end
    if journal.has("history"):
        return since(batch.newest)
    watched, newest = batch.watched()
    journal.step("history", lambda: staged.write_output(watched.output()))
    return since(newest)


def _late(spark: SparkSession, batch: HistoryJoin, cuts: Sequence[Cut], since: Horizon) -> HistoryJoin:
    """Return the join of what is near the end of both histories, where a source can tell where that begins."""
    sides = zip(batch.matching.sides, cuts, (batch.left, batch.right), batch.needed(since), strict=True)
    left, right = (
        with_event_time(side.history_since(spark, cut, rows, time), side) for side, cut, rows, time in sides
    )
    return replace(batch, left=left, right=right)


def _live(spark: SparkSession, matching: Matching, cuts: Sequence[Cut]) -> Pair:
    """Return what is live of each side; raises `BackfillError` where it lacks something that the join needs."""
    left, right = (side.live(spark, cut) for side, cut in zip(matching.sides, cuts, strict=True))
    spelled = str if str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true" else str.lower
    for where, side, rows in zip(matching.places, matching.sides, (left, right), strict=True):
        refuse(refusals.mode("live", is_stream=rows.isStreaming), where)
        if watermarks(rows._jdf.queryExecution().analyzed().toString()):
            refuse(
                "`prepare` calls withWatermark, below the rows that are replayed: set the side's `watermark` instead",
                where,
            )
        refuse(refusals.twice(rows.columns, spelled), where)
        refuse(refusals.columns(dict(rows.dtypes), matching.on, side.event_time), where)
        refuse(refusals.parquet_types(dict(rows.dtypes), unwritable(rows)), where)
    refuse(refusals.shared(left.columns, right.columns, matching.on, spelled))
    return left, right


def _histories(spark: SparkSession, matching: Matching, cuts: Sequence[Cut], live: Pair) -> Pair:
    """Return the history of each side; raises `BackfillError` where it is not what comes live."""
    left, right = (side.history(spark, cut) for side, cut in zip(matching.sides, cuts, strict=True))
    for where, rows, later in zip(matching.places, (left, right), live, strict=True):
        refuse(refusals.mode("history", is_stream=rows.isStreaming), where)
        refuse(refusals.parts(dict(rows.dtypes), dict(later.dtypes)), where)
    return with_event_time(left, matching.left), with_event_time(right, matching.right)


def _matching(left: Side, right: Side, on: Sequence[str], within: Any, how: str) -> Matching:
    refuse(refusals.spark_connect(is_remote=is_remote()))
    refuse(refusals.kind_of_join(how))
    refuse(refusals.keys(on))
    refuse(refusals.time_bounds(left.name, right.name, within))
    matching = Matching(left, right, tuple(on), within[0], within[1], how)
    for where, side in zip(matching.places, matching.sides, strict=True):
        refuse(refusals.watermark(side.watermark), where)
    return matching
