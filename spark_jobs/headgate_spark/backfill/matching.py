"""The two sides of a join, and which of their rows belong together.

The batch and the stream build their joins from the same condition and the same columns, so that what one leaves out
the other adds, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark.backfill.horizon import Bounds, Micros, micros
from headgate_spark.backfill.sources import Cut, Kafka, Source

LEFT, RIGHT = "l", "r"
"""Aliases of the sides inside a join: both may have columns of the same name."""
_BUCKET = "_headgate_bucket"
_HASH = "_headgate_hash"
_PLAIN = frozenset(
    (
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
        "binary",
    )
)
"""Types of which equal values have equal bytes: zeros of floating point have two forms, texts of a collation many."""
_SPANS = 4
"""How often the span in which a row's partners are fits into a bucket. One of so many right rows is in two buckets;
where a key has very many rows, a row is compared with so many times its partners, and once more."""
_WIDEST: Micros = 2**62
"""So wide that the begin of a bucket is still a `bigint`."""
_FIXED_ZONES = ("UTC", "Etc/UTC", "GMT", "Z")
"""Session time zones in which each day has 24 hours. Any other is held to be one that sets its clocks."""
_DAY_OFF = timedelta(hours=26)
"""How far a span with whole days may be from as many times 24 hours: the offsets that one zone has had differ by 25
and a half hours at most (Pacific/Apia, which went over the date line twice)."""


def unchanged(rows: DataFrame) -> DataFrame:
    return rows


@dataclass(frozen=True)
class Side:
    """One input of a join."""

    name: str
    """What messages call it, and Spark its stream where a query's streams must have names."""
    source: Source
    """Where its rows are read, before the cut and from the cut on."""
    event_time: str
    """The column of type timestamp that the join is bounded by."""
    watermark: timedelta | None = None
    """How late rows may come, in whole milliseconds, as for `withWatermark`. Has no default that would be right, so
    one is to be given."""
    prepare: Callable[[DataFrame], DataFrame] = unchanged
    """Makes of what the source reads the columns of the join. It is given the history as a batch and what is live
    as a stream, so it must treat each row by itself: select, filter, parse, join with a table. No withWatermark."""

    @property
    def is_read_whole(self) -> bool:
        """Whether a look at one column takes about as long as one at all of them: a topic has no columns."""
        return isinstance(self.source, Kafka)

    @property
    def delay(self) -> timedelta:
        return self.watermark or timedelta(0)

    def history(self, spark: SparkSession, cut: Cut) -> DataFrame:
        return self.prepare(self.source.history(spark, cut))

    def history_since(
        self, spark: SparkSession, cut: Cut, history: DataFrame, since: Micros | None
    ) -> DataFrame:
        """Return rows of a history among which all from an event time on are; of a topic that goes by it, no others
        but those that lie between them.

        `history` is all of it, as `history` returns it. Records of before 1970 are not asked for by their time.
        """
        if not isinstance(self.source, Kafka) or since is None or since < 0:
            return history
        if not self.source.goes_by_timestamp(history, column(self.event_time), since):
            return history
        return self.prepare(self.source.history(spark, cut, -(-since // 1000)))

    def live(self, spark: SparkSession, cut: Cut) -> DataFrame:
        return self.prepare(self.source.live(spark, cut, self.name))


@dataclass(frozen=True)
class Matching:
    """A join: which rows of two sides are partners, and what is made of them."""

    left: Side
    right: Side
    on: tuple[str, ...]
    """Columns that are equal in partners. Each has one name on both sides, and stands once in the result."""
    earliest: timedelta
    latest: timedelta
    """Partners' event times are so far apart: earliest <= right - left <= latest."""
    how: str

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    @property
    def places(self) -> tuple[str, str]:
        """What messages call the sides."""
        return f"left side ({self.left.name})", f"right side ({self.right.name})"

    @property
    def bounds(self) -> Bounds:
        """The spans of time that decide what a streaming join holds."""
        return Bounds(self.earliest, self.latest, self.left.delay, self.right.delay)

    @property
    def left_time(self) -> Column:
        """The left event time, inside the join."""
        return column(self.left.event_time, LEFT)

    @property
    def right_time(self) -> Column:
        """The right event time, inside the join."""
        return column(self.right.event_time, RIGHT)

    def joined(self, left: DataFrame, right: DataFrame, how: str) -> DataFrame:
        """Join rows of the two sides; the columns are still those of the aliased sides."""
        return left.alias(LEFT).join(right.alias(RIGHT), self._have_the_key() & self._are_near(), how)

    def joined_at_once(self, left: DataFrame, right: DataFrame, how: str) -> DataFrame:
        """Join two batches of rows with event times; gives what `joined` gives. Not for right or full joins.

        Spark compares a row with each other one of its key, however far apart, so the time is quadratic in the rows
        of a key. Here buckets of time are keys, too, each a few times as wide as the span in which the partners of a
        row are. A left row is in one bucket; a right row is in each one that a partner of it can be in, which are two
        at most. So partners meet once, and a left row is there once, whether it has any or not.
        """
        off = self.days_off(left.sparkSession)
        width = min(max(_SPANS * micros(self.latest - self.earliest + 2 * off), 1), _WIDEST)
        time = F.unix_micros(column(self.right.event_time))
        spans = (self.latest + off, self.earliest - off)
        first, last = (_bucket(time - F.lit(micros(apart)), width) for apart in spans)
        left = left.withColumn(_BUCKET, _bucket(F.unix_micros(column(self.left.event_time)), width))
        right = right.withColumn(_BUCKET, F.explode(F.sequence(first, last, F.lit(width))))
        near = self._are_near() if off else self._are_near_in_micros()
        meet = self._have_the_key() & near & (column(_BUCKET, LEFT) == column(_BUCKET, RIGHT))
        if self._hash_alike(left, right):
            of_all = F.xxhash64(*map(column, (*self.on, _BUCKET)))
            left, right = left.withColumn(_HASH, of_all), right.withColumn(_HASH, of_all)
            meet = (column(_HASH, LEFT) == column(_HASH, RIGHT)) & meet
        return left.alias(LEFT).join(right.alias(RIGHT), meet, how)

    def _hash_alike(self, left: DataFrame, right: DataFrame) -> bool:
        """Tell whether keys that are equal have one hash. By it rows are sorted first, which compares numbers.

        By the keys alone, rows of one key would be fetched, for each comparison, to see their buckets.
        """
        of_left, of_right = dict(left.dtypes), dict(right.dtypes)
        return all(of_left[name] == of_right[name] and of_left[name] in _PLAIN for name in self.on)

    def days_off(self, spark: SparkSession) -> timedelta:
        """Return how far partners may be outside the bounds by the time between them.

        Spark adds the whole days of an interval to a timestamp by the calendar of the session's time zone
        (`DateTimeUtils.timestampAddDayTime`), so over a change of its clocks a day has 23 hours, or 25.
        """
        has_days = max(abs(self.earliest), abs(self.latest)) >= timedelta(days=1)
        is_fixed = spark.conf.get("spark.sql.session.timeZone") in _FIXED_ZONES
        return _DAY_OFF if has_days and not is_fixed else timedelta(0)

    def result(self, joined: DataFrame, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the columns that the join is made for: the keys, the left ones, and but for a semi join the right
        ones.

        `left` and `right` have the columns of their sides, and no others.
        """
        others = [column(name, LEFT) for name in left.columns if name not in self.on]
        if self.how != "left_semi":
            others += [column(name, RIGHT) for name in right.columns if name not in self.on]
        return joined.select(*(column(name, LEFT) for name in self.on), *others)

    def described(self) -> dict[str, Any]:
        """Return what may not change from one start to the next."""
        return {
            "join": self.how,
            "on": list(self.on),
            "within": [str(self.earliest), str(self.latest)],
            "left": _described(self.left),
            "right": _described(self.right),
        }

    def _have_the_key(self) -> Column:
        return reduce(and_, (column(name, LEFT) == column(name, RIGHT) for name in self.on))

    def _are_near(self) -> Column:
        """As a streaming join has to be told, to know when a row has no partners any more."""
        return (self.right_time >= self.left_time + F.lit(self.earliest)) & (
            self.right_time <= self.left_time + F.lit(self.latest)
        )

    def _are_near_in_micros(self) -> Column:
        """The same where each day has 24 hours; nothing is looked up in a calendar."""
        apart = F.unix_micros(self.right_time) - F.unix_micros(self.left_time)
        return apart.between(micros(self.earliest), micros(self.latest))


def column(name: str, side: str = "") -> Column:
    """Return a column by its name, whatever characters that has."""
    quoted = f"`{name.replace('`', '``')}`"
    return F.col(f"{side}.{quoted}" if side else quoted)


def _bucket(time: Column, width: Micros) -> Column:
    """Return when the bucket of a time begins, in microseconds; exact, and rounded down before 1970 as well."""
    return time - F.pmod(time, F.lit(width))


def _described(side: Side) -> dict[str, str]:
    return {"source": str(side.source), "event time": side.event_time, "watermark": str(side.watermark)}
