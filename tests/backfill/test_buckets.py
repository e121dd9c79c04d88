"""A join in buckets of time gives the rows of the plain one, at every bound of a bucket."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from headgate_spark.backfill import Parts, Side
from headgate_spark.backfill.matching import Matching, column

pytestmark = pytest.mark.spark

KINDS = ("inner", "left_outer", "left_semi", "left_anti")
MICRO = timedelta(microseconds=1)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AT_ONCE = (timedelta(0), timedelta(0))
FOR_EVER = (timedelta(days=-1000), timedelta(days=1000))
IN_THE_PAST = (timedelta(days=-3), timedelta(days=-2))


def matching(spark: SparkSession, within: tuple[timedelta, timedelta]) -> Matching:
    nothing = Parts(spark.range(0), spark.range(0))
    return Matching(Side("l", nothing, "at"), Side("r", nothing, "bt"), ("k",), *within, "inner")


def rows(spark: SparkSession, random: Random, within: tuple[timedelta, timedelta], names: str) -> DataFrame:
    """Rows of few keys, none among them, whose times are at multiples of each bound and width, before 1970 as well,
    or next to one."""
    earliest, latest = within
    spans = [span for span in (earliest, latest, latest - earliest, DAY) if span]
    time, number = names.split()
    times = [
        EPOCH
        + random.choice(spans) * random.randint(-4, 4)
        + MICRO * random.choice([0, 0, 0, -1, 1, 500_000])
        for _ in range(60)
    ]
    keyed = [(random.choice([1, 2, None]), at, place) for place, at in enumerate(times)]
    return spark.createDataFrame(keyed, f"k long, {time} timestamp, {number} long")


def found(joined: DataFrame, how: str) -> Counter[tuple[object, ...]]:
    numbers = (
        [column("x", "l")] if how in ("left_semi", "left_anti") else [column("x", "l"), column("y", "r")]
    )
    return Counter(map(tuple, joined.select(*numbers).collect()))


def is_the_same(spark: SparkSession, within: tuple[timedelta, timedelta], how: str, seed: int) -> None:
    random = Random(f"{within} {seed}")
    both = matching(spark, within)
    left, right = (rows(spark, random, within, names) for names in ("at x", "bt y"))
    expected = found(both.joined(left, right, how), how)
    assert found(both.joined_at_once(left, right, how), how) == expected


@settings(
    max_examples=max(1, settings.default.max_examples // 12),
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    earliest=st.timedeltas(-2 * DAY, 2 * DAY),
    width=st.timedeltas(timedelta(0), 2 * DAY) | st.sampled_from([timedelta(0), MICRO, 7 * MICRO]),
    how=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
)
def test_buckets_change_no_row(
    spark: SparkSession, earliest: timedelta, width: timedelta, how: str, seed: int
) -> None:
    is_the_same(spark, (earliest, earliest + width), how, seed)


@pytest.mark.parametrize(
    "within", [AT_ONCE, FOR_EVER, IN_THE_PAST], ids=["at once", "for years", "in the past"]
)
def test_nor_do_they_where_bounds_are_odd(spark: SparkSession, within: tuple[timedelta, timedelta]) -> None:
    for how in KINDS:
        is_the_same(spark, within, how, 1)


def test_no_right_row_is_in_more_than_two_buckets(spark: SparkSession) -> None:
    within = (timedelta(hours=-1), timedelta(hours=2))
    right = rows(spark, Random(2), within, "bt y")
    left = right.withColumnRenamed("bt", "at").withColumnRenamed("y", "x").limit(0)
    copies = matching(spark, within).joined_at_once(right=right, left=left, how="right_outer")
    assert max(found(copies, "right_outer").values()) <= 2


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ],
)
def test_a_day_of_the_calendar_may_have_another_length_than_24_hours(
    spark: SparkSession, zone: str, change: datetime
) -> None:
    there = spark.newSession()
    there.conf.set("spark.sql.session.timeZone", zone)
    numbers = range(-60, 60)
    hours = [(1, change + HOUR * number, number) for number in numbers]
    left, right = (
        there.createDataFrame(hours, f"k long, {columns} long")
        for columns in ("at timestamp, x", "bt timestamp, y")
    )
    for within in ((DAY, DAY), (timedelta(0), DAY), (-2 * DAY, -DAY)):
        both = matching(there, within)
        expected = found(both.joined(left, right, "left_outer"), "left_outer")
        assert found(both.joined_at_once(left, right, "left_outer"), "left_outer") == expected
        by_the_clock = {(x, y) for x in numbers for y in numbers if within[0] <= HOUR * (y - x) <= within[1]}
        assert {pair for pair in expected if pair[1] is not None} != by_the_clock


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("explode(array(0d, double('NaN')))", "explode(array(-0d, double('NaN')))"),
        ("'a' collate UTF8_LCASE", "'A' collate UTF8_LCASE"),
        ("1", "1L"),
        ("1.50bd", "1.5bd"),
        ("named_struct('a', -0d)", "named_struct('a', 0d)"),
        ("'a'", "explode(array('a', 'A', null))"),
    ],
)
def test_keys_that_are_equal_meet_whatever_their_bytes_are(
    spark: SparkSession, left: str, right: str
) -> None:
    moment = "timestamp_seconds(5)"
    sides = (
        spark.range(1).selectExpr(f"{key} as k", f"{moment} as {time}", f"id as {number}")
        for key, time, number in ((left, "at", "x"), (right, "bt", "y"))
    )
    both, rows_of = matching(spark, AT_ONCE), tuple(sides)
    for how in KINDS:
        expected = found(both.joined(*rows_of, how), how)
        assert found(both.joined_at_once(*rows_of, how), how) == expected
    assert found(both.joined(*rows_of, "inner"), "inner")
