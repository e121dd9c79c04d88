"""Ends that a planner plans: none before its start is committed, but where the log itself ends there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.spark import ScriptedPlanner, batch_sizes, once, planned_offsets, running, wait_until

pytestmark = pytest.mark.spark


def offset(at: int) -> str:
    return "offset:" + json.dumps({"offset": at, "timestamp": 100 * at})


def test_an_end_before_its_start_is_not_committed_and_the_planner_is_asked_again(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    with running(frame.writeStream.format("noop"), tmp_path) as query:
        planner.answer = once("all", offset(4), offset(25))
        wait_until(lambda: len(batch_sizes(query)) == 2, "two batches")
        assert batch_sizes(query) == [10, 15]
        assert [json.loads(planned_offsets(tmp_path, batch)[0])["offset"] for batch in (0, 1)] == [10, 25]
        wait_until(
            lambda: json.loads(planner.asked[-1][1] or "{}").get("offset") == 25,
            "a question after both batches",
        )


K0, K1 = {"a": {"0": 7, "1": 9}}, {"a": {"0": 7, "1": 3}}


@pytest.mark.parametrize(
    ("start", "end", "latest", "problem"),
    [
        (K0, K0, None, None),
        (K0, {"a": {"0": 8, "1": 9}}, None, None),
        (K0, {"a": {"0": 8, "1": 9, "2": 0}}, None, None),
        (K0, {"a": {"0": 7}}, None, None),
        (K0, K1, None, "/a/1 from 9 to 3"),
        (K0, K1, {"a": {"0": 99, "1": 99}}, "/a/1 from 9 to 3"),
        (K0, K1, {"a": {"0": 99, "1": 3}}, None),
        ({"at": [3]}, {"at": [1]}, None, None),
        (9007199254740993, 9007199254740992, None, " from 9007199254740993 to 9007199254740992"),
        ({"a": "x"}, {"a": 1}, None, None),
    ],
)
def test_offsets_are_compared_number_by_number(
    spark: SparkSession, start: Any, end: Any, latest: Any, problem: str | None
) -> None:
    texts = [None if offset is None else json.dumps(offset) for offset in (start, end, latest)]
    assert spark._jvm.dev.headgate.spark.Offsets.retreat(*texts) == problem


def test_an_offset_that_is_no_json_is_left_to_its_source(spark: SparkSession) -> None:
    assert spark._jvm.dev.headgate.spark.Offsets.retreat("17", "seventeen", None) is None


@pytest.mark.parametrize(
    ("start", "end", "records"),
    [
        (K0, K0, 0),
        (K0, {"a": {"0": 8, "1": 19}}, 11),
        (K0, {"a": {"0": 8, "1": 9, "2": 5}, "b": {"0": 3}}, 9),
        (K0, {"a": {"0": 8}}, 1),
        (K0, {"a": {"0": 8, "1": 3}}, 1),
        ({"row": 17}, {"row": 20}, 3),
        ({}, {"a": {"0": 4}}, 4),
    ],
)
def test_records_between_offsets_are_counted_and_a_new_partition_from_0(
    spark: SparkSession, start: Any, end: Any, records: int
) -> None:
    assert spark._jvm.dev.headgate.spark.Offsets.between(json.dumps(start), json.dumps(end)) == records


def test_between_offsets_that_are_no_json_there_may_be_any_number_of_records(spark: SparkSession) -> None:
    assert spark._jvm.dev.headgate.spark.Offsets.between("17", "seventeen") == 2**63 - 1
