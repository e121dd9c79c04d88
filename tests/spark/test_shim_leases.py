"""A leased hold: nobody is asked until it is over, recalled, or a watched stream has something new."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_spark.engine.shim import DriverJvm
from support.driver import recording
from support.python_sources import counted_reader
from support.spark import ScriptedPlanner, batch_sizes, be_patient, governed, running, wait_until

pytestmark = pytest.mark.spark

LONG = "lease:3600000:50:"
LOOKS, LEAST_SECONDS = 100, 0.01
CUT = "2023-11-14T22:13:21Z"
"""A second after the first row of a recording: half of two thousand rows lie before it."""


class Counting(ScriptedPlanner):
    """Answers by the name of the query, and counts the questions about each of its sources."""

    def __init__(self) -> None:
        super().__init__()
        self.of_query: dict[str, str] = {}
        self.questions: Counter[tuple[str, str]] = Counter()

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        source = self.sources[handle]
        query = source["query"]["name"]
        self.questions[query, source["index"]] += 1
        super().admit(handle, trigger, start)
        return self.of_query.get(query, "hold")


@pytest.fixture
def planner(spark: SparkSession) -> Iterator[Counting]:
    counting = Counting()
    be_patient(spark)
    with governed(spark, counting):
        yield counting


class Triggers:
    """A second query that is asked at every trigger, beside the one that is looked at."""

    def __init__(self, planner: Counting) -> None:
        self._planner = planner

    def pass_by(self, count: int = 6) -> None:
        until = self._planner.questions["clock", "0"] + count
        wait_until(lambda: self._planner.questions["clock", "0"] >= until, f"{count} triggers")


@pytest.fixture
def triggers(spark: SparkSession, planner: Counting, tmp_path: Path) -> Iterator[Triggers]:
    with running(numbers(spark).writeStream.queryName("clock").format("noop"), tmp_path / "clock"):
        yield Triggers(planner)


def numbers(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().select("value")


def replayed(spark: SparkSession, directory: Path) -> DataFrame:
    """A thousand rows, and a thousand more once the file `live` is there."""
    reader = spark.readStream.format("replay").option("eventTime", "ts").option("cut", CUT)
    path = recording(directory / "recording", 2000)
    return reader.option("startedBy", str(directory / "live")).load(str(path)).select("id")


@contextmanager
def leased(frame: DataFrame, planner: Counting, directory: Path, answer: str) -> Iterator[None]:
    planner.of_query["leased"] = answer
    with running(frame.writeStream.queryName("leased").format("noop"), directory / "leased") as query:
        wait_until(lambda: planner.questions["leased", "0"], "the first question")
        yield
        assert batch_sizes(query) == []


def test_nobody_is_asked_while_a_lease_stands(
    spark: SparkSession, planner: Counting, triggers: Triggers, tmp_path: Path
) -> None:
    with leased(numbers(spark), planner, tmp_path, LONG):
        triggers.pass_by()
        assert planner.questions["leased", "0"] == 1


def test_a_lease_holds_for_every_source_of_the_query(
    spark: SparkSession, planner: Counting, triggers: Triggers, tmp_path: Path
) -> None:
    with leased(numbers(spark).union(numbers(spark)), planner, tmp_path, LONG):
        triggers.pass_by()
        assert planner.questions["leased", "1"] == 0


def test_a_lease_ends_with_its_time(spark: SparkSession, planner: Counting, tmp_path: Path) -> None:
    with leased(numbers(spark), planner, tmp_path, "lease:20:50:"):
        wait_until(lambda: planner.questions["leased", "0"] > 3, "more questions")


def test_a_recalled_lease_ends_at_once(
    spark: SparkSession, planner: Counting, triggers: Triggers, tmp_path: Path
) -> None:
    with leased(numbers(spark), planner, tmp_path, LONG):
        triggers.pass_by()
        DriverJvm.of(spark.sparkContext).recall()
        wait_until(lambda: planner.questions["leased", "0"] == 2, "a second question")


def test_a_recall_while_the_planner_answers_is_not_lost(
    spark: SparkSession, planner: Counting, tmp_path: Path
) -> None:
    answer = planner.admit

    def recalled_meanwhile(handle: int, trigger: str, start: str | None) -> str:
        DriverJvm.of(spark.sparkContext).recall()
        return answer(handle, trigger, start)

    planner.admit = recalled_meanwhile  # type: ignore[method-assign]
    with leased(numbers(spark), planner, tmp_path, LONG):
        wait_until(lambda: planner.questions["leased", "0"] > 3, "more questions")


def watch(planner: Counting, more_than: str = "") -> int:
    """Have the stream of the leased query surveyed once, and watched by its lease; return its handle."""
    handle = next(h for h, source in planner.sources.items() if source["query"]["name"] == "leased")
    planner.of_query["leased"] = f"survey:{handle}"
    planner.after_survey = f"{LONG}{handle}{more_than}"
    wait_until(lambda: planner.surveys, "a survey")
    return handle


def test_something_new_in_a_watched_stream_ends_the_lease(
    spark: SparkSession, planner: Counting, triggers: Triggers, tmp_path: Path
) -> None:
    with leased(replayed(spark, tmp_path), planner, tmp_path, "hold"):
        handle = watch(planner)
        before = wait_until(lambda: planner.questions["leased", "0"], "questions")
        triggers.pass_by()
        assert planner.questions["leased", "0"] == before
        (tmp_path / "live").touch()
        wait_until(lambda: planner.questions["leased", "0"] > before, "another question")
        surveyed = wait_until(lambda: len(planner.surveys) > 1 and planner.surveys[-1], "another survey")
        assert json.loads(surveyed[str(handle)])["row"] > 1000


@pytest.mark.parametrize(("most", "ends"), [(1999, True), (2000, False)])
def test_records_of_a_stream_that_is_watched_for_more_than_so_many_end_the_lease_when_there_are_more(
    spark: SparkSession, planner: Counting, triggers: Triggers, tmp_path: Path, most: int, ends: bool
) -> None:
    with leased(replayed(spark, tmp_path), planner, tmp_path, "hold"):
        watch(planner, f"={most}")
        before = planner.questions["leased", "0"]
        (tmp_path / "live").touch()
        if ends:
            wait_until(lambda: len(planner.surveys) > 1, "another survey")
        else:
            triggers.pass_by(12)
            assert planner.questions["leased", "0"] == before


def test_something_new_in_another_stream_does_not(
    spark: SparkSession, planner: Counting, triggers: Triggers, tmp_path: Path
) -> None:
    with leased(replayed(spark, tmp_path), planner, tmp_path, LONG):
        (tmp_path / "live").touch()
        triggers.pass_by()
        assert planner.questions["leased", "0"] == 1


def test_looks_are_as_far_apart_as_the_planner_says(
    spark: SparkSession, planner: Counting, tmp_path: Path
) -> None:
    looks = tmp_path / "looks"
    frame = spark.readStream.format(counted_reader(spark, looks)).load()
    with leased(frame, planner, tmp_path, "hold"):
        handle = next(iter(planner.sources))
        planner.of_query["leased"] = f"survey:{handle}"
        planner.after_survey = f"lease:3600000:10:{handle}"
        wait_until(lambda: planner.surveys, "a survey")
        before, began = wait_until(lambda: looks.stat().st_size, "a look"), time.monotonic()
        wait_until(lambda: looks.stat().st_size >= before + LOOKS, "more looks")
        assert time.monotonic() - began > (LOOKS - 2) * LEAST_SECONDS
