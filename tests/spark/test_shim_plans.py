"""Queries of more than one source, and triggers other than the usual one, with the shim in the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as PySpark's own documentation has it

from headgate_spark.engine.watermarks import watermarks_of
from support.python_sources import unlimited_reader
from support.spark import ScriptedPlanner, batch_sizes, committed_batches, once, progress, running, wait_until

pytestmark = pytest.mark.spark


def numbers(spark: SparkSession, rows: int = 10) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()


def parquet(spark: SparkSession, path: Path, files: int = 4) -> DataFrame:
    spark.range(0, files * 100, 1, files).write.mode("overwrite").parquet(str(path))
    return spark.readStream.schema("id long").parquet(str(path))


def with_v1_fallback(spark: SparkSession, frame: DataFrame, path: Path) -> DataFrame:
    """The frame of a V2 source as Kafka's are: with a V1 source (here files) for where V2 is switched off."""
    spark.range(0, 400, 1, 4).selectExpr("now() AS timestamp", "id AS value").write.parquet(str(path))
    files = spark.readStream.schema(frame.schema).parquet(str(path))
    relation = frame._jdf.queryExecution().analyzed()
    elements = [relation.productElement(i) for i in range(relation.productArity())]
    names = [relation.productElementName(i) for i in range(relation.productArity())]
    elements[names.index("v1Relation")] = spark._jvm.scala.Option.apply(
        files._jdf.queryExecution().analyzed()
    )
    datasets = spark._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(datasets.ofRows(spark._jsparkSession, relation.copy(*elements)), spark)


def handle_of(planner: ScriptedPlanner, index: str) -> int:
    return next(handle for handle, source in planner.sources.items() if source["index"] == index)


def test_sources_of_one_query_are_governed_apart(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answers["0"] = once("all", "all")
    frame = numbers(spark, 10).union(numbers(spark, 1000))
    with running(frame.writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: len(batch_sizes(query)) == 2, "two batches")
        planner.answers["1"] = once("all")
        wait_until(lambda: len(batch_sizes(query)) == 3, "a third batch")
        assert batch_sizes(query) == [10, 10, 1000]


def test_a_survey_tells_the_latest_offsets_of_the_sources_that_were_asked_for(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    frame = numbers(spark, 10).union(numbers(spark, 1000)).select("value")
    frame = frame.union(parquet(spark, tmp_path / "files").select("id"))
    with running(frame.writeStream.format("noop"), tmp_path / "checkpoint"):
        planner.await_more_questions(3)
        handles = {index: handle_of(planner, index) for index in "012"}
        planner.answers["1"] = f"survey:{handles['0']},{handles['1']},{handles['2']},4711"
        survey = wait_until(lambda: planner.surveys, "a survey")[0]
    assert set(survey) == {str(handles["0"]), str(handles["1"])}, "no V1 source, no stranger"
    assert json.loads(survey[str(handles["0"])])["offset"] == 10
    assert json.loads(survey[str(handles["1"])])["offset"] == 1000


def test_a_survey_leaves_the_sources_of_other_queries_alone(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    with (
        running(numbers(spark).writeStream.format("noop"), tmp_path / "a"),
        running(numbers(spark).writeStream.format("noop"), tmp_path / "b"),
    ):
        wait_until(lambda: len(planner.sources) == 2, "both sources")
        planner.await_more_questions(4)
        planner.answer = "survey:" + ",".join(map(str, planner.sources))
        surveys = wait_until(lambda: len(planner.surveys) >= 4 and list(planner.surveys), "surveys of both")
    assert all(len(survey) == 1 for survey in surveys), "a stream is touched by its own query's thread only"


def test_what_was_surveyed_can_be_planned(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    with running(numbers(spark).writeStream.format("noop"), tmp_path) as query:
        planner.await_more_questions(1)
        planner.after_survey = "all"
        planner.answer = once(f"survey:{handle_of(planner, '0')}")
        wait_until(lambda: batch_sizes(query) == [10], "a batch")


def test_a_union_with_itself_reads_one_source(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once("all")
    frame = numbers(spark)
    writer = frame.union(frame).writeStream.format("memory").queryName("doubled")
    with running(writer, tmp_path) as query:
        wait_until(lambda: progress(query), "a batch")
        assert len(planner.sources) == 1
        assert spark.table("doubled").count() == 20


def test_files_united_with_themselves_are_read_through_one_source(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once("files:1")
    frame = parquet(spark, tmp_path / "files")
    writer = frame.union(frame).writeStream.format("memory").queryName("doubled_files")
    with running(writer, tmp_path / "checkpoint") as query:
        wait_until(lambda: progress(query), "a batch")
        assert len(planner.sources) == 1
        assert spark.table("doubled_files").count() == 200


def test_what_a_common_table_expression_reads_is_counted_where_it_is_defined(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    for name in ("first", "second", "third"):
        numbers(spark).createOrReplaceTempView(name)
    every = " UNION ALL ".join(f"SELECT * FROM {name}" for name in ("twice", "twice", "second", "third"))
    frame = spark.sql(f"WITH twice AS (SELECT * FROM first) {every}")
    with running(frame.writeStream.format("noop"), tmp_path):
        planner.await_more_questions(1)
    assert [each["sources"] for each in planner.begun] == [[0, 1, 2]], "as the offset log has a line for each"


def test_watermarks_windows_and_joins_are_planned_as_ever(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once(*["all"] * 12)
    left = numbers(spark).withWatermark("timestamp", "1 second")
    right = numbers(spark).withWatermark("timestamp", "1 second").withColumnRenamed("timestamp", "at")
    joined = left.join(right, (left["value"] == right["value"]) & F.expr("at = timestamp"))
    counted = joined.groupBy(F.window("at", "1 second")).count()
    writer = counted.writeStream.format("memory").queryName("joined").outputMode("append")
    with running(writer, tmp_path) as query:
        wait_until(lambda: spark.table("joined").count() >= 3 or query.exception(), "closed windows")
        assert query.exception() is None
        assert {row["count"] for row in spark.table("joined").collect()} == {10}
    assert [each["watermarkPolicy"] for each in planner.begun] == ["min"]


def test_one_frame_feeds_several_queries(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = "all"
    frame = parquet(spark, tmp_path / "files")
    with (
        running(frame.writeStream.format("noop"), tmp_path / "a") as first,
        running(frame.writeStream.format("noop"), tmp_path / "b") as second,
    ):
        wait_until(lambda: sum(batch_sizes(first)) == sum(batch_sizes(second)) == 400, "both to read it all")
    assert len(planner.sources) == 2


def test_a_batch_read_of_the_same_table_is_not_touched(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    parquet(spark, tmp_path / "files")
    assert spark.read.parquet(str(tmp_path / "files")).count() == 400
    assert planner.sources == {}


@pytest.mark.parametrize("kind", ["files", "rate-micro-batch", "unlimited"])
def test_available_now_reads_all_of_it_and_ends_by_itself(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path, kind: str
) -> None:
    planner.answer = "all"
    if kind == "files":
        frame, rows = parquet(spark, tmp_path / "files"), 400
    elif kind == "rate-micro-batch":
        frame, rows = numbers(spark), 10
    else:
        frame, rows = spark.readStream.format(unlimited_reader(spark)).load(), 1000
    writer = frame.writeStream.format("noop").trigger(availableNow=True)
    with running(writer, tmp_path / "checkpoint") as query:
        wait_until(lambda: not query.isActive, "the end of what was there")
        assert query.exception() is None
        assert sum(batch_sizes(query)) == rows


def test_available_now_takes_several_granted_batches(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once("files:1", "files:2", "all", "all")
    frame = parquet(spark, tmp_path / "files")
    with running(
        frame.writeStream.format("noop").trigger(availableNow=True), tmp_path / "checkpoint"
    ) as query:
        wait_until(lambda: not query.isActive, "the end of what was there")
        assert batch_sizes(query) == [100, 200, 100]


def test_available_now_after_a_restart_goes_on_where_it_ended(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once('offset:{"row": 250}')
    frame = spark.readStream.format(unlimited_reader(spark)).load()
    with running(frame.writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: batch_sizes(query) == [250], "the first part")
    planner.answer = "all"
    with running(frame.writeStream.format("noop").trigger(availableNow=True), tmp_path) as query:
        wait_until(lambda: not query.isActive, "the rest")
        assert batch_sizes(query) == [750]
        assert committed_batches(tmp_path) == [0, 1]


def test_available_now_waits_within_its_trigger_rather_than_end_unread(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once("files:1", "wait:1", "wait:1", "perhaps", "all", "all")
    frame = parquet(spark, tmp_path / "files")
    with running(
        frame.writeStream.format("noop").trigger(availableNow=True), tmp_path / "checkpoint"
    ) as query:
        wait_until(lambda: not query.isActive, "the end of what was there")
        assert batch_sizes(query) == [100, 300]


def test_a_query_stops_cleanly_while_it_waits_within_a_trigger(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = "wait:3600000"
    with running(numbers(spark).writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: planner.asked, "the question that is answered with a wait")
    assert query.exception() is None


def test_the_v1_relation_behind_a_disabled_v2_source_is_governed_too(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    frame = with_v1_fallback(spark, numbers(spark), tmp_path / "files")
    planner.answer = once("files:3")
    provider = "org.apache.spark.sql.execution.streaming.sources.RatePerMicroBatchProvider"
    spark.conf.set("spark.sql.streaming.disabledV2MicroBatchReaders", provider)
    try:
        with running(frame.writeStream.format("noop"), tmp_path / "checkpoint") as query:
            wait_until(lambda: batch_sizes(query) or query.exception(), "a batch")
            assert query.exception() is None
            assert batch_sizes(query) == [300]
    finally:
        spark.conf.unset("spark.sql.streaming.disabledV2MicroBatchReaders")
    assert [source["api"] for source in planner.sources.values()] == ["v1"]


@pytest.mark.parametrize("longest", ["0", "200"])
def test_the_watermarks_of_a_plan_are_told_however_short_the_session_wants_plans(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path, longest: str
) -> None:
    late, later = (numbers(spark).withWatermark("timestamp", delay) for delay in ("2 hours", "3 hours"))
    spark.conf.set("spark.sql.maxPlanStringLength", longest)
    try:
        with running(late.union(later).writeStream.format("noop"), tmp_path):
            planner.await_more_questions(1)
    finally:
        spark.conf.unset("spark.sql.maxPlanStringLength")
    found = watermarks_of(planner.begun[0]["plan"])
    assert (found.delays, found.below_union) == ((7200, 10800), 2)


def test_other_extensions_that_spark_finds_by_itself_stay_in_force(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    from pyspark.ml.functions import array_to_vector  # registered by MLlib's own extension

    planner.answer = once("all")
    vectors = numbers(spark).select(array_to_vector(F.array(F.col("value").cast("double"))).alias("v"))
    with running(vectors.writeStream.format("memory").queryName("vectors"), tmp_path) as query:
        wait_until(lambda: progress(query) or query.exception(), "a batch")
        assert spark.table("vectors").count() == 10
