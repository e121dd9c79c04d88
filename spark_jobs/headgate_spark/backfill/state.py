"""`initial_state`: the state of one's own operator, computed as a batch from the history of a stream.

Spark's `transformWithState` takes state to begin with, from a DataFrame, in its first micro-batch. What such a
state is made of is known to the job alone, so the job computes it; here the history is cut from what is live, once,
and the state is kept by that cut, so that a restart on the way begins with the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from headgate_spark.backfill import refusals
from headgate_spark.backfill.journal import open_journal, staging
from headgate_spark.backfill.parquet import unwritable, write
from headgate_spark.backfill.refusals import refuse
from headgate_spark.backfill.sources import Cut, Source

STATE = "state"
"""The directory of the state."""


@dataclass(frozen=True)
class Seeded:
    """What an operator with initial state is made of."""

    live: DataFrame
    """The rows from the cut on, as a stream."""
    state: DataFrame
    """What the rows before the cut come to, as a batch: the same rows at every start."""


def initial_state(
    spark: SparkSession, source: Source, compute: Callable[[DataFrame], DataFrame], *, checkpoint: str
) -> Seeded:
    """Cut a source, compute what its history comes to, and return that with the stream that goes on from it.

        counts = initial_state(spark, source, lambda rows: rows.groupBy("user").count(), checkpoint=path)
        counts.live.groupBy("user").transformWithState(
            Counting(), "user string, count long", "Update", "none", counts.state.groupBy("user")
        )

    `compute` is given the history, as a batch, and returns the rows that `handleInitialState` is to be called with:
    for the same history the same ones. It is called at the first start, or until it has succeeded. `checkpoint` is
    the location that the query is started with; `<checkpoint>.headgate/` keeps the cut and the state. Hand `state`
    over at every start: Spark reads it in the first micro-batch, and again where that one is repeated.

    Raises `BackfillError` where the checkpoint belongs to something else or another run is at it, the state store
    takes no initial state, or Parquet cannot keep the state.
    """
    refuse(refusals.spark_connect(is_remote=is_remote()))
    root = staging(checkpoint)
    with open_journal(spark, checkpoint, {"initial state": str(source)}) as journal:
        cut = journal.step("cut", lambda: _cut(spark, source))
        live = source.live(spark, cut, "live")
        refuse(refusals.mode("live", is_stream=live.isStreaming))
        journal.step("state", lambda: _write(compute(source.history(spark, cut)), root))
        journal.see_results(spark, "state")
    return Seeded(live, spark.read.parquet(f"{root}/{STATE}"))


def _cut(spark: SparkSession, source: Source) -> Cut:
    """Cut the source, once an operator can take a state. Later the checkpoint says which state store it is."""
    refuse(refusals.state_store(str(spark.conf.get(refusals.STATE_STORE))))
    return source.cut(spark)


def _write(rows: DataFrame, root: str) -> list[str]:
    refuse(refusals.mode("history", is_stream=rows.isStreaming))
    refuse(refusals.parquet_types(dict(rows.dtypes), unwritable(rows)), "initial state")
    return write(rows, root, STATE)
