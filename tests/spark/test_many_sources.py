"""Queries of one source and of many: from five on Spark asks them in an order that is another in each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import BatchControl, QueryControl
from headgate_spark.engine.protocol import Asking
from support.governed import Driver, await_rows, driver_in
from support.recordings import write_recording
from support.spark import ScriptedPlanner, once, progress, running, wait_until

pytestmark = pytest.mark.spark

TRIGGERS = 4
CHAINED = 5
FILES, ROWS = 3, 10
"""Of each source."""
ENDS = {"twice": 30, "once": 70}
"""Rows of two recordings."""


def union(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)


def join(frames: list[DataFrame]) -> DataFrame:
    """Join each row with the ones of the same number: one to the other, or where there are many, in pairs."""
    keyed = [frame.selectExpr("value AS id") for frame in frames]
    if len(keyed) <= CHAINED:
        return reduce(lambda left, right: left.join(right, "id"), keyed)
    return union([left.join(right, "id") for left, right in zip(keyed[::2], keyed[1::2], strict=True)])


def told(planner: ScriptedPlanner) -> list[tuple[int, list[str]]]:
    """Return the triggers in which the planner was asked, each with the sources in the order of asking."""
    questions = [(Asking.parse(text).trigger, index) for index, text in planner.triggers]
    return [(number, [index for _, index in asked]) for number, asked in groupby(questions, lambda q: q[0])]


@pytest.mark.parametrize("combined", [union, join], ids=["union", "join"])
@pytest.mark.parametrize("count", [1, 4, 5, 32])
def test_a_trigger_asks_each_source_once(
    spark: SparkSession,
    planner: ScriptedPlanner,
    tmp_path: Path,
    count: int,
    combined: Callable[[list[DataFrame]], DataFrame],
) -> None:
    frames = [
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load() for _ in range(count)
    ]
    with running(combined(frames).writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: len(planner.triggers) > TRIGGERS * count, "a few triggers")
        assert query.exception() is None
    whole = told(planner)[:TRIGGERS]
    assert [number for number, _ in whole] == list(range(1, TRIGGERS + 1))
    assert all(sorted(asked, key=int) == [str(i) for i in range(count)] for _, asked in whole)
    assert len({tuple(asked) for _, asked in whole}) == 1, "the order is the same in each trigger of a run"


def test_which_answers_have_reached_spark_is_told(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answers["1"] = once("hold", "all", "hold", "survey:", "hold")
    frames = [spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load() for _ in range(2)]
    with running(union(frames).writeStream.format("noop"), tmp_path):
        wait_until(lambda: len(planner.triggers) > 10, "a few triggers")
    handle = next(handle for handle, source in planner.sources.items() if source["index"] == "1")
    first = [Asking.parse(text) for index, text in planner.triggers if index == "0"]
    assert [asking.passed for asking in first[:4]] == [{}, {}, {handle: 2}, {handle: 2}]


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


@pytest.mark.parametrize("count", [1, 4, 5, 32])
def test_all_sources_are_read_together(
    spark: SparkSession, driver: Driver, tmp_path: Path, count: int
) -> None:
    frames = []
    for i in range(count):
        folder = tmp_path / f"source-{i}"
        folder.mkdir()
        for file in range(FILES):
            (folder / f"{file}.json").write_text('{"id": 1}\n' * ROWS)
        frames.append(spark.readStream.schema("id long").json(str(folder)))
    a_file_each = BatchControl(target_seconds=3600, initial_records=count * ROWS, max_records=count * ROWS)
    driver.control(QueryControl(interval_seconds=0.5, batch=a_file_each))
    with driver.running(union(frames), tmp_path / "checkpoint") as query:
        await_rows(query, count * FILES * ROWS)
        batches = [[source["numInputRows"] for source in report["sources"]] for report in progress(query)]
    assert [rows for rows in batches if any(rows)] == [[ROWS] * count] * FILES, "a file of each in a batch"


def test_no_source_is_left_out_where_batches_take_much_longer_than_they_should(
    spark: SparkSession, driver: Driver, tmp_path: Path
) -> None:
    count, files = 5, 4
    frames = []
    for i in range(count):
        folder = tmp_path / f"source-{i}"
        folder.mkdir()
        for file in range(files):
            (folder / f"{file}.json").write_text('{"id": 1}\n')
        frames.append(spark.readStream.schema("id long").json(str(folder)))
    first_is_full = BatchControl(initial_records=count)
    # Five directories are never read in a tenth of a second.
    driver.control(QueryControl(interval_seconds=0.1, batch=first_is_full))
    with driver.running(union(frames), tmp_path / "checkpoint") as query:
        await_rows(query, count * files)
        batches = [[source["numInputRows"] for source in report["sources"]] for report in progress(query)]
    read = [0] * count
    for rows in filter(any, batches):
        waiting = [done < files for done in read]
        assert [n > 0 for n in rows] == waiting, f"one was left out: {batches}"
        read = [done + n for done, n in zip(read, rows, strict=True)]


def test_a_stream_united_with_itself_is_where_it_was_after_a_restart_and_so_are_the_others(
    spark: SparkSession, driver: Driver, tmp_path: Path
) -> None:
    recordings = {name: write_recording(tmp_path / name, [range(rows)]) for name, rows in ENDS.items()}
    twice, once_read = (
        spark.readStream.format("replay").load(str(recording)) for recording in recordings.values()
    )
    frame = union([twice, twice, once_read])
    driver.control(QueryControl(interval_seconds=0.1))
    with driver.running(frame, tmp_path / "checkpoint") as query:
        await_rows(query, 2 * ENDS["twice"] + ENDS["once"])
        wait_until(
            lambda: {name: driver.source(name).processed_records_total for name in ENDS} == ENDS,
            "each record to be counted, and once",
        )
    with driver.running(frame, tmp_path / "checkpoint"):
        runs = wait_until(
            lambda: [run for run in driver.governor.runs if len(run.sources.by_handle) == 2], "both sources"
        )
        with runs[0].lock:
            assert runs[0].sources.resumed() == {name: {"row": rows} for name, rows in ENDS.items()}
