"""The newest event times, seen while the histories are joined: those that a look at all rows finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from headgate_spark.backfill import Files, Kafka, Side
from headgate_spark.backfill.batch import HistoryJoin, with_event_time
from headgate_spark.backfill.matching import Matching
from support.spark import configured

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
EVENTS = st.lists(
    st.tuples(st.sampled_from([1, 2, None]), st.none() | st.integers(-5, 5)), max_size=6
)  # most joins here find something, some have a side without a row, or without one that could have a partner


TOPIC = Kafka("read-whole", {"kafka.bootstrap.servers": "nobody:9092"})


def history(spark: SparkSession, how: str, *sides: list[tuple[int | None, int | None]]) -> HistoryJoin:
    """Return the join of two histories, as of topics."""
    near = timedelta(seconds=1)
    matching = Matching(Side("l", TOPIC, "at"), Side("r", TOPIC, "bt"), ("k",), -near, near, how)
    left, right = (
        with_event_time(timed(spark, events, side.event_time), side)
        for events, side in zip(sides, matching.sides, strict=True)
    )
    return HistoryJoin(matching, left, right)


def at(second: int) -> int:
    return 1_000_000 * (int(BEGIN.timestamp()) + second)


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
    with configured(spark, {"spark.sql.adaptive.enabled": str(adaptive).lower()}):
        join = history(spark, how, left, right)
        watched, newest = join.watched()
        watched.output().write.format("noop").mode("overwrite").save()
        assert newest() == join.newest()


def test_topics_with_rows_are_read_once_less(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_up(*_: object) -> None:
        raise AssertionError("the histories were read for their newest event times")

    monkeypatch.setattr(HistoryJoin, "_looked_up", looked_up)
    watched, newest = history(spark, "inner", [(1, 3), (None, 5)], [(2, 4)]).watched()
    watched.output().write.format("noop").mode("overwrite").save()
    assert newest() == (at(3), at(4))


def test_files_are_looked_up_of_one_column(spark: SparkSession, tmp_path: Path) -> None:
    """What watches them would keep from them what the join asks of its sides."""
    files = Side("l", Files(str(tmp_path), "parquet", "k long, at timestamp"), "at")
    join = history(spark, "inner", [(1, 3)], [(2, 4)])
    watched, newest = replace(join, matching=replace(join.matching, left=files)).watched()
    plan = watched.output()._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("CollectMetrics") == 1
    watched.output().write.format("noop").mode("overwrite").save()
    assert newest() == (at(3), at(4))


def test_a_side_that_was_not_read_is_looked_at(spark: SparkSession) -> None:
    """A join with nothing has no rows, whatever the other side has: Spark does without that one."""
    join = history(spark, "inner", [(1, 3)], [])
    watched, newest = join.watched()
    watched.output().write.format("noop").mode("overwrite").save()
    assert newest() == (at(3), None)
