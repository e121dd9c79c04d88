"""The newest event times, seen while the histories are joined: those that a look at all rows finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from headgate_spark.backfill import Parts, Side
from headgate_spark.backfill.batch import HistoryJoin, with_event_time
from headgate_spark.backfill.matching import Matching
from support.backfills import Event, Joining

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
EVENTS = st.lists(
    st.tuples(st.sampled_from([1, 2, None]), st.none() | st.integers(-5, 5)), max_size=6
)  # most joins here find something, some have a side without a row, or without one that could have a partner


def history(spark: SparkSession, how: str, *sides: list[tuple[int | None, int | None]]) -> HistoryJoin:
    nothing = Parts(spark.range(0), spark.range(0))
    near = timedelta(seconds=1)
    matching = Matching(Side("l", nothing, "at"), Side("r", nothing, "bt"), ("k",), -near, near, how)
    left, right = (
        with_event_time(timed(spark, events, side.event_time), side)
        for events, side in zip(sides, matching.sides, strict=True)
    )
    return HistoryJoin(matching, left, right)


def timed(spark: SparkSession, events: list[tuple[int | None, int | None]], time: str) -> DataFrame:
    rows = [(key, None if at is None else BEGIN + timedelta(seconds=at)) for key, at in events]
    return spark.createDataFrame(rows, f"k long, {time} timestamp").repartition(2)


@settings(
    max_examples=max(1, settings.default.max_examples // 12),
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(left=EVENTS, right=EVENTS, how=st.sampled_from(["inner", "left_semi"]), adaptive=st.booleans())
def test_what_is_seen_is_what_there_is(
    spark: SparkSession,
    left: list[tuple[int | None, int | None]],
    right: list[tuple[int | None, int | None]],
    how: str,
    *,
    adaptive: bool,
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
    try:
        join = history(spark, how, left, right)
        watched, newest = join.watched()
        watched.output().write.format("noop").mode("overwrite").save()
        assert newest() == join.newest()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_a_history_with_rows_on_both_sides_is_read_once_less(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_up(_: HistoryJoin) -> None:
        raise AssertionError("the histories were read for their newest event times")

    monkeypatch.setattr(HistoryJoin, "newest", looked_up)
    joining = Joining(tmp_path, "inner", 0, 4, 1, 1)
    joining.arrive([([Event(0, 0), Event(None, 99)], [Event(0, 3), Event(1, 8)])])
    joined = joining.backfilled(spark)
    joining.arrive([([Event(1, 7)], [])])
    found, expected = joining.compared(spark, joined)
    assert found == expected
    assert found.total() == 2


def test_a_side_that_was_not_read_is_looked_at(spark: SparkSession) -> None:
    """A join with nothing has no rows, whatever the other side has: Spark does without that one."""
    join = history(spark, "inner", [(1, 3)], [])
    watched, newest = join.watched()
    watched.output().write.format("noop").mode("overwrite").save()
    assert newest() == (1_000_000 * (int(BEGIN.timestamp()) + 3), None)
