"""Python Data Sources behind the shim: each of the three kinds of reader takes the answers that it can take."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.model import ReadLimit
from support.governed import await_rows, driver_in
from support.python_sources import (
    limited_with_default,
    limited_without_default,
    simple_reader,
    unlimited_reader,
)
from support.spark import ScriptedPlanner, batch_sizes, once, planned_offsets, running, wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def digits_of_its_own(spark: SparkSession) -> Iterator[None]:
    """A language of the driver that writes numbers by other digits, as where `LANG` is `ar_EG.UTF-8`."""
    locales = spark.sparkContext._jvm.java.util.Locale
    before = locales.getDefault()
    locales.setDefault(locales.forLanguageTag("ar-EG"))
    yield
    locales.setDefault(before)


@pytest.mark.usefixtures("digits_of_its_own")
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


def test_the_limit_that_an_author_has_named_holds_in_a_backlog_unless_the_document_gives_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's own example, as it comes with the wheel: 10,000 blocks, at most 20 in a batch."""
    source = load_example("structured_blockchain_admission_control.py").BlockchainDataSource
    spark.dataSource.register(source)
    frame = spark.readStream.format(source.name()).load()
    batch = BatchControl(initial_records=5_000, max_records=5_000)
    with driver_in(spark) as driver:
        driver.control(QueryControl(backlog=True, batch=batch))
        with driver.running(frame, tmp_path) as query:
            assert set(await_rows(query, 100)) == {20}
            assert driver.source(source.name()).read_limit is ReadLimit.ROWS
            larger = SourceControl(rate_limit_during_backlog=RateControl(records_per_checkpoint=1_500))
            driver.control(QueryControl(backlog=True, batch=batch, sources={source.name(): larger}))
            sizes = await_rows(query, 10_000)
            assert max(sizes) == 1_500
            assert sum(sizes) == 10_000


def load_example(name: str) -> Any:
    """Return one of Spark's own examples as a module that travels to its workers by value."""
    path = next((Path(pyspark.__file__).parent / "examples").rglob(name))
    spec = importlib.util.spec_from_file_location("example_of_spark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where cloudpickle looks for it
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module
