"""The history of a join: what it comes to, and which of its rows a stream has to know.

Batch jobs over the same two DataFrames. None depends on the order of rows, so one that is run again, after a failure,
gives the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark.backfill.horizon import Horizon, Micros, micros
from headgate_spark.backfill.matching import LEFT, RIGHT, Matching, Side, column

ANSWERED = "_headgate_answered"
"""Of a left row that is replayed: the batch has joined it, so it is neither unmatched nor matched for the first
time."""
_MATCHED = "_headgate_matched"
_NEWEST = "_headgate_newest"
_TOLD_SECONDS = 10
"""How long Spark may take to tell what it has observed in a job that is over: listeners of the job come before. Older
versions tell nothing of a side that they did not read, since the other one had no rows."""

Newest = tuple[Micros | None, Micros | None]
"""The newest event time of each side; `None` for one without rows that could have a partner."""


@dataclass(frozen=True)
class HistoryJoin:
    """Two histories, joined. Rows without an event time are in neither: a streaming join never emits one."""

    matching: Matching
    left: DataFrame
    right: DataFrame

    @property
    def needs_horizon(self) -> bool:
        """Whether what it comes to hangs on where the history ends, and not on the rows alone."""
        return self.matching.how == "left_outer"

    def newest(self) -> Newest:
        """Look the newest event times up."""
        left, right = (self._looked_up(rows, side) for rows, side in self._sides)
        return left, right

    def watched(self) -> tuple[HistoryJoin, Callable[[], Newest]]:
        """Return the same join, and what tells the newest event times when it has been computed and written.

        Topics are read once less so. Where nothing was seen of one it is looked up: it may have rows all the same. A
        time that is too early would have more rows replayed than need be, and do nothing else (`horizon`).
        Files are looked up, of few columns: nothing that a join asks of its sides goes down through what watches.
        """
        seen = [
            Observation(f"{_NEWEST}_{place}") if side.is_read_whole else None
            for (_, side), place in zip(self._sides, (LEFT, RIGHT), strict=True)
        ]
        left, right = (
            rows
            if observation is None
            else rows.observe(observation, _newest(side, self.matching.on).alias(_NEWEST))
            for (rows, side), observation in zip(self._sides, seen, strict=True)
        )

        def newest() -> Newest:
            times = [None if observation is None else _observed(observation) for observation in seen]
            of_left, of_right = (
                self._looked_up(rows, side) if time is None else time
                for (rows, side), time in zip(self._sides, times, strict=True)
            )
            return of_left, of_right

        return replace(self, left=left, right=right), newest

    @property
    def _sides(self) -> tuple[tuple[DataFrame, Side], tuple[DataFrame, Side]]:
        return (self.left, self.matching.left), (self.right, self.matching.right)

    def _looked_up(self, rows: DataFrame, side: Side) -> Micros | None:
        value: Micros | None = rows.select(_newest(side, self.matching.on)).collect()[0][0]
        return value

    def output(self, horizon: Horizon | None = None) -> DataFrame:
        """Return what the streaming join would have emitted by the end of the history.

        Of the left rows without a partner these are the ones before the horizon: the others may still find one.
        """
        right = self.right.withColumn(_MATCHED, F.lit(True))
        joined = self.matching.joined_at_once(self.left, right, self.matching.how)
        if self.needs_horizon and horizon is not None:
            is_over = ~_from(horizon.left, self.matching.left_time)
            joined = joined.filter(column(_MATCHED, RIGHT).isNotNull() | is_over)
        return self.matching.result(joined, self.left, self.right)

    def needed(self, horizon: Horizon) -> tuple[Micros | None, Micros | None]:
        """Return from which event times on rows of each side are looked at to tell what is replayed; `None`: all."""
        of_partners = None if self.matching.how == "inner" else self._earliest_partner(horizon)
        return horizon.left, min(
            (time for time in (horizon.right, of_partners) if time is not None), default=None
        )

    def replayed_left(self, horizon: Horizon) -> DataFrame:
        """Return the left rows that a stream has to know, with `ANSWERED`."""
        rows = self.left.filter(_from(horizon.left, column(self.matching.left.event_time)))
        if self.matching.how == "inner":
            return rows.withColumn(ANSWERED, F.lit(False))
        # so that files without a partner are not read
        since = _from(self._earliest_partner(horizon), column(self.matching.right.event_time))
        partners = self.right.filter(since)
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

    def _earliest_partner(self, horizon: Horizon) -> Micros | None:
        """Return from when on a right row could be the partner of a replayed left row."""
        if horizon.left is None:
            return None
        return horizon.left + micros(self.matching.earliest - self.matching.days_off(self.right.sparkSession))


def with_event_time(rows: DataFrame, side: Side) -> DataFrame:
    """Leave out the rows of a side that have no event time."""
    return rows.filter(column(side.event_time).isNotNull())


def _newest(side: Side, on: tuple[str, ...]) -> Column:
    """Rows with a null key have no partner: Spark may drop them below the watermark, so they do not count."""
    joinable = reduce(and_, (column(name).isNotNull() for name in on))
    return F.max(F.when(joinable, F.unix_micros(column(side.event_time))))


def _observed(observation: Observation) -> Micros | None:
    """Return what was observed in a job that is over; `None`: nothing, or nobody tells."""
    scala = observation._jvm.scala.concurrent
    try:
        scala.Await.ready(observation._jo.future(), scala.duration.Duration.create(_TOLD_SECONDS, "s"))
        value: Micros | None = observation._jo.getAsJava().get(_NEWEST)
    except Py4JJavaError:  # of the time that is over, or of a row without columns
        return None
    return value


def _from(horizon: Micros | None, time: Column) -> Column:
    """Tell rows that are replayed: those at or after the horizon."""
    return F.lit(True) if horizon is None else time >= F.timestamp_micros(F.lit(horizon))
