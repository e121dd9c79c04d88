"""The history of a join: what it comes to, and which of its rows a stream has to know.

Batch jobs over the same two DataFrames. None depends on the order of rows, so one that is run again, after a failure,
gives the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark.backfill.horizon import Horizon, Micros, micros
from headgate_spark.backfill.matching import LEFT, RIGHT, Matching, Side, column

ANSWERED = "_headgate_answered"
"""Of a left row that is replayed: the batch has joined it, so it is neither unmatched nor matched for the first
time."""
_MATCHED = "_headgate_matched"


@dataclass(frozen=True)
class HistoryJoin:
    """Two histories, joined. Rows without an event time are in neither: a streaming join never emits one."""

    matching: Matching
    left: DataFrame
    right: DataFrame

    def newest(self) -> tuple[Micros | None, Micros | None]:
        """Return the newest event time of each side; `None` for one without rows that could have a partner."""
        on = self.matching.on
        return _newest(self.left, self.matching.left, on), _newest(self.right, self.matching.right, on)

    def output(self, horizon: Horizon) -> DataFrame:
        """Return what the streaming join would have emitted by the end of the history.

        Of the left rows without a partner these are the ones before the horizon: the others may still find one.
        """
        right = self.right.withColumn(_MATCHED, F.lit(True))
        joined = self.matching.joined_at_once(self.left, right, self.matching.how)
        if self.matching.how == "left_outer":
            is_over = ~_from(horizon.left, self.matching.left_time)
            joined = joined.filter(column(_MATCHED, RIGHT).isNotNull() | is_over)
        return self.matching.result(joined, self.left, self.right)

    def replayed_left(self, horizon: Horizon) -> DataFrame:
        """Return the left rows that a stream has to know, with `ANSWERED`."""
        rows = self.left.filter(_from(horizon.left, column(self.matching.left.event_time)))
        if self.matching.how == "inner":
            return rows.withColumn(ANSWERED, F.lit(False))
        partners = self.right.filter(self._may_be_partner(horizon))
        matched, unmatched = (
            self.matching.joined_at_once(rows, partners, how).select(
                *(column(name, LEFT) for name in rows.columns)
            )
            for how in ("left_semi", "left_anti")
        )
        return matched.withColumn(ANSWERED, F.lit(True)).union(unmatched.withColumn(ANSWERED, F.lit(False)))

    def replayed_right(self, horizon: Horizon) -> DataFrame:
        """Return the right rows that a stream has to know."""
        return self.right.filter(_from(horizon.right, column(self.matching.right.event_time)))

    def _may_be_partner(self, horizon: Horizon) -> Column:
        """Tell right rows that could be partners of replayed left rows: so that files without one are not read."""
        time = column(self.matching.right.event_time)
        if horizon.left is None:
            return F.lit(True)
        earliest = self.matching.earliest - self.matching.days_off(self.right.sparkSession)
        return time >= F.timestamp_micros(F.lit(horizon.left + micros(earliest)))


def with_event_time(rows: DataFrame, side: Side) -> DataFrame:
    """Leave out the rows of a side that have no event time."""
    return rows.filter(column(side.event_time).isNotNull())


def _newest(rows: DataFrame, side: Side, on: tuple[str, ...]) -> Micros | None:
    """Rows with a null key have no partner: Spark may drop them below the watermark, so they do not count."""
    joinable = F.lit(True)
    for name in on:
        joinable &= column(name).isNotNull()
    newest: Micros | None = rows.select(
        F.max(F.when(joinable, F.unix_micros(column(side.event_time))))
    ).collect()[0][0]
    return newest


def _from(horizon: Micros | None, time: Column) -> Column:
    """Tell rows that are replayed: those at or after the horizon."""
    return F.lit(True) if horizon is None else time >= F.timestamp_micros(F.lit(horizon))
