"""The stream that goes on from a history: its state is rebuilt, what the batch has emitted is not emitted again.

Rows of the history that can still find a partner are replayed in the first micro-batch, each marked as what it is; so
no watermark has moved yet, and none of them is late. Each side is one file, which nobody can read in parts.

What the batch has found comes out of the same query, as one more input: so there is one checkpoint, one sink, and one
commit, and it is exactly-once wherever the sink is.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.types import StructType

from headgate_spark.backfill.batch import ANSWERED, HistoryJoin
from headgate_spark.backfill.horizon import Horizon, micros
from headgate_spark.backfill.matching import LEFT, RIGHT, Matching, Side, column
from headgate_spark.backfill.parquet import write
from headgate_spark.backfill.refusals import BackfillError
from headgate_spark.backfill.sources import reader_of

REPLAYED = "_headgate_replayed"
"""Of a row that was before the cut."""
OUTPUT, REPLAYED_LEFT, REPLAYED_RIGHT = "history", "replayed-left", "replayed-right"
"""Directories of what is staged; by them the sources of the query are called."""


@dataclass(frozen=True)
class Staged:
    """Where the results of a batch are, as Parquet, until the stream has read them."""

    root: str

    def write_output(self, rows: DataFrame) -> list[str]:
        """Write the result of the history, over what an interrupted run has left of it; return its files."""
        return write(rows, self.root, OUTPUT)

    def write_replayed(self, batch: HistoryJoin, horizon: Horizon) -> list[str]:
        """Write the rows to be replayed, one file a side (a stream takes it whole or not at all); return both."""
        sides = (
            (batch.replayed_left(horizon), REPLAYED_LEFT),
            (batch.replayed_right(horizon), REPLAYED_RIGHT),
        )
        return [
            file
            for rows, table in sides
            for file in write(rows.repartition(1), self.root, table, maxRecordsPerFile=0)
        ]


def continued(
    spark: SparkSession, matching: Matching, live: tuple[DataFrame, DataFrame], staged: Staged
) -> DataFrame:
    """Return the stream: the result of the history, then what the join finds from the cut on."""
    left_live, right_live = live
    left = _whole(
        spark, matching.left, left_live.withColumn(ANSWERED, F.lit(False)), f"{staged.root}/{REPLAYED_LEFT}"
    )
    right = _whole(spark, matching.right, right_live, f"{staged.root}/{REPLAYED_RIGHT}")
    joined = matching.joined(left, right, matching.how).filter(_is_new(matching))
    result = matching.result(joined, left_live, right_live)
    return result.union(_read(spark, result.schema, f"{staged.root}/{OUTPUT}", "history"))


def _whole(spark: SparkSession, side: Side, live: DataFrame, path: str) -> DataFrame:
    """Return the rows of a side that the join has to know, with one watermark above them."""
    replayed = _read(spark, live.schema, path, f"{side.name}_replayed").withColumn(REPLAYED, F.lit(True))
    rows = live.withColumn(REPLAYED, F.lit(False)).unionByName(replayed)
    return rows.withWatermark(side.event_time, f"{micros(side.delay) // 1000} milliseconds")


def _read(spark: SparkSession, schema: StructType, path: str, name: str) -> DataFrame:
    try:
        return reader_of(spark, name).schema(schema).parquet(path)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise BackfillError(
                f"directory {path} is gone, which the query lists at every start: put it back, or make an empty one "
                "if the query has read all of it"
            ) from None
        raise


def _is_new(matching: Matching) -> Column:
    """Tell what the stream finds from what the batch has emitted.

    A pair is the batch's if both its rows were before the cut; so is a left row alone if the batch has joined it.
    The event time is in the condition of the semi join for Spark's optimizer: a condition on other columns would be
    moved below the watermark, which would then not see the newest rows where these are answered.
    """
    both_replayed = column(REPLAYED, LEFT) & column(REPLAYED, RIGHT)
    answered = column(ANSWERED, LEFT)
    match matching.how:
        case "left_semi":
            return ~answered | matching.left_time.isNull()
        case "left_outer":
            return F.when(column(REPLAYED, RIGHT).isNull(), ~answered).otherwise(~both_replayed)
        case _:
            return ~both_replayed
