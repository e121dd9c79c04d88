"""Python Data Sources behind the shim: each of the three kinds of reader takes the answers that it can take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.python_sources import (
    limited_with_default,
    limited_without_default,
    simple_reader,
    unlimited_reader,
)
from support.spark import ScriptedPlanner, batch_sizes, once, planned_offsets, running, wait_until

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("kind", "answers", "sizes"),
    [
        (limited_with_default, ["rows:30", "rows:7", "all"], [30, 7, 1]),
        (limited_with_default, ['offset:{"row": 250}', "rows:9999"], [250, 750]),
        (limited_without_default, ["rows:30", "rows:7", "all"], [30, 7, 963]),
        (unlimited_reader, ["hold", "rows:30"], [1000]),
        (unlimited_reader, ['offset:{"row": 250}', "all"], [250, 750]),
        (simple_reader, ["all", "hold", "all", "all"], [400, 400, 200]),
        (simple_reader, ["rows:30", "rows:7"], [400, 400]),
    ],
)
def test_each_kind_of_reader_reads_what_was_granted_in_the_way_it_can(
    spark: SparkSession,
    planner: ScriptedPlanner,
    tmp_path: Path,
    kind: Callable[[SparkSession], str],
    answers: list[str],
    sizes: list[int],
) -> None:
    planner.answer = once("hold", *answers)
    frame: DataFrame = spark.readStream.format(kind(spark)).load()
    with running(frame.writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: len(batch_sizes(query)) == len(sizes) or query.exception(), "the batches")
        assert query.exception() is None
        planner.await_more_questions()
        assert batch_sizes(query) == sizes


def test_a_reader_that_begins_at_the_end_is_pinned_once_its_query_has_begun(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    other = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().select("value")
    frame = other.union(spark.readStream.format(unlimited_reader(spark)).load())
    planner.answers["0"] = once("all", "all")
    with running(frame.writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: len(batch_sizes(query)) == 2, "two batches of the other source")
        assert planned_offsets(tmp_path, 0)[1] == "-", "not known yet: the query had not begun"
        assert planned_offsets(tmp_path, 1)[1].replace(" ", "") == '{"row":0}'
