"""A query that goes into Spark's real-time mode and back, inside one run: what the shim does, told by a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, expr
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery, StreamingQueryListener

from support.spark import (
    ScriptedPlanner,
    be_patient,
    configured,
    governed,
    once,
    replace_triggers,
    running,
    wait_until,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

LEAST = "spark.sql.streaming.realTimeMode.minBatchDuration"
LIVE = "realtime:1000"
STATE = "spark.sql.streaming"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
KEYS = 7


class Live(ScriptedPlanner):
    """Notes what was refused, and then has micro-batches."""

    def __init__(self) -> None:
        super().__init__("all")
        self.to_opened = "prepare:realtime"
        self.lost: list[str] | None = None
        """What it was told first and did not take, where a call is to fail."""
        self.live: str | None = None
        """The one query that is to be live in real-time mode."""
        self.unshortened: SparkSession | None = None
        """A session whose triggers cannot be shortened."""

    def fence(self, run_id: str) -> str:
        if self.unshortened is not None:
            replace_triggers(self.unshortened)
        return super().fence(run_id)

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        answer = super().admit(handle, trigger, start)
        is_live = self.live is not None and self.sources[handle]["query"]["name"] == self.live
        return LIVE if is_live and not self.refusals else answer

    def opened(self, handle: int, descriptor: str) -> str:
        super().opened(handle, descriptor)
        return self.to_opened

    def refused(self, run_id: str, why: str, *, passes: bool) -> None:
        if self.lost == []:
            self.lost.append(why)
            raise ValueError("it is not taken")
        super().refused(run_id, why, passes=passes)
        self.answer = "all"


class Memory:
    """A source in the driver's memory that can be read in real-time mode, and holds whole numbers from 0 on."""

    def __init__(self, spark: SparkSession, partitions: int = 1) -> None:
        jvm = spark.sparkContext._jvm
        streams = jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
        self._jvm = jvm
        longs = jvm.org.apache.spark.sql.Encoders.LONG()
        self._stream = streams.apply(spark._jsparkSession, partitions, longs)
        self.frame = DataFrame(self._stream.toDF(), spark)
        self.size = 0

    def add(self, count: int) -> None:
        numbers = self._jvm.java.util.stream.LongStream.range(self.size, self.size + count).boxed()
        rows = numbers.collect(self._jvm.java.util.stream.Collectors.toList())
        self._stream.addData(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows).toSeq())
        self.size += count

    @property
    def counts(self) -> dict[int, int]:
        """Rows by key, as a count of all of them has to end."""
        return dict(Counter(number % KEYS for number in range(self.size)))


def appending(path: Path) -> Callable[[Row], None]:
    """A sink that appends each row to a file. Workers know nothing of this module, so it is made where it is used."""
    name = str(path)

    def append(row: Row) -> None:
        with open(name, "a", encoding="utf-8") as file:  # noqa: PTH123 -- a file is all that a worker is given
            file.write(f"{row[0]} {row[1]}\n")

    return append


def counted(memory: Memory, sink: Path) -> DataStreamWriter:
    counts = memory.frame.groupBy((col("value") % KEYS).alias("key")).count()
    return counts.writeStream.outputMode("update").foreach(appending(sink))


def written(sink: Path) -> dict[int, str]:
    """The last value of each key."""
    lines = sink.read_text().splitlines() if sink.exists() else []
    return {int(key): value for key, _, value in (line.partition(" ") for line in lines)}


def await_rows(query: StreamingQuery, sink: Path, expected: Mapping[int, str]) -> None:
    def are_there() -> bool:
        assert query.exception() is None, query.exception()
        return written(sink) == expected

    wait_until(are_there, f"{expected}, but {written(sink)}")


def await_counts(query: StreamingQuery, sink: Path, memory: Memory) -> None:
    await_rows(query, sink, {key: str(count) for key, count in memory.counts.items()})


def running_tasks(spark: SparkSession) -> int:
    executors = spark._jsc.sc().statusTracker().getExecutorInfos()
    return sum(each.numRunningTasks() for each in executors)


def is_idle(spark: SparkSession) -> bool:
    """Tasks of a query that was stopped in a batch of real-time mode are killed in their own time, and hold slots."""
    return running_tasks(spark) == 0


@pytest.fixture
def planner(spark: SparkSession) -> Iterator[Live]:
    wait_until(lambda: is_idle(spark), "the end of all tasks")
    spark.conf.set(LEAST, "500ms")  # as durations are written most often; a number is milliseconds, too
    be_patient(spark)
    live = Live()
    with governed(spark, live):
        yield live
    spark.conf.unset(LEAST)


@pytest.fixture
def memory(spark: SparkSession) -> Memory:
    return Memory(spark)


def trigger_of(query: StreamingQuery) -> str:
    return str(query._jsq.streamingQuery().trigger())


class Heard(StreamingQueryListener):
    """What a listener of the job hears: the kind of each event, of which query and run, and how that has ended."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str | None]] = []

    def note(self, kind: str, of: Any, failure: str | None = None) -> None:
        self.events.append((kind, str(of.id), str(of.runId), failure))

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 -- Spark's name, as those below
        self.note("started", event)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self.note("progress", event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """None of the events that are looked at."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.note("terminated", event, event.exception)

    def of(self, query: StreamingQuery) -> list[tuple[str, str, str | None]]:
        """The events of a query; those of the tests before may still come."""
        return [(kind, *more) for kind, of, *more in self.events if of == str(query.id)]


@pytest.fixture
def heard(spark: SparkSession) -> Iterator[Heard]:
    listener = Heard()
    spark.streams.addListener(listener)
    yield listener
    spark.streams.removeListener(listener)


def test_switches_both_ways_in_one_run_and_counts_each_row_once(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession, heard: Heard
) -> None:
    """One run to all that a job can hold: its handle, the manager of its session, its listeners."""
    sink = tmp_path / "rows"
    memory.add(1000)
    spark.streams.resetTerminated()
    with running(counted(memory, sink), tmp_path / "checkpoint") as query:
        run, own = str(query.runId), trigger_of(query)

        def add_and_await(mode: str) -> None:
            wait_until(lambda: mode in trigger_of(query), mode)
            memory.add(50)
            await_counts(query, sink, memory)
            assert query.isActive
            assert query.exception() is None
            assert not query.awaitTermination(0.001)
            assert not spark.streams.awaitAnyTermination(0.001)
            assert [str(each.runId) for each in spark.streams.active] == [run]
            assert str(spark.streams.get(query.id).runId) == run

        await_counts(query, sink, memory)
        for _ in range(2):
            planner.answer = LIVE
            add_and_await("RealTime")
            planner.answer = "all"
            add_and_await(own)
        planner.answer = "realtime:700"
        add_and_await("RealTimeTrigger(700)")
        planner.answer = LIVE
        add_and_await("RealTimeTrigger(1000)")
        reports = query.recentProgress
    assert not query.isActive
    assert query.awaitTermination(0.001)
    assert spark.streams.awaitAnyTermination(0.001)
    assert query.exception() is None, "it was stopped in the midst of a batch of real-time mode"
    assert {str(report["runId"]) for report in reports} == {run}
    numbers = [report["batchId"] for report in reports if report["numInputRows"]]
    assert numbers == sorted(numbers)
    wait_until(lambda: ("terminated", run, None) in heard.of(query), "its end")
    first, *between, _ = heard.of(query)
    assert first == ("started", run, None)
    assert set(between) == {("progress", run, None)}
    assert planner.refusals == []
    assert len(planner.begun) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "concat_ws(' ', avg(value), round(stddev(value), 6), max_by(value, value))",
        "approx_count_distinct(value)",
        "concat_ws(' ', sort_array(collect_set(value)))",
        "percentile_approx(value, 0.5)",
    ],
    ids=["of numbers", "of a sketch in words", "of a set", "of a sketch in bytes"],
)
def test_state_of_each_form_goes_on_in_the_other_mode(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession, expression: str
) -> None:
    """In real-time mode an aggregation has other operators: they have to read and write the same state."""
    sink = tmp_path / "rows"

    def aggregated(frame: DataFrame) -> DataFrame:
        return frame.groupBy((col("value") % KEYS).alias("key")).agg(expr(f"CAST({expression} AS STRING)"))

    def expected(size: int) -> dict[int, str]:
        rows = aggregated(spark.range(size).withColumnRenamed("id", "value")).collect()
        return {int(key): str(value) for key, value in rows}

    modes = (("all", "Processing"), (LIVE, "RealTime")) * 2
    ends = [
        expected(1000 + 50 * (number + 1)) for number in range(len(modes))
    ]  # later they would take its slots
    memory.add(1000)
    writer = aggregated(memory.frame).writeStream.outputMode("update").foreach(appending(sink))
    with running(writer, tmp_path / "checkpoint") as query:
        for (answer, mode), end in zip(modes, ends, strict=True):
            planner.answer = answer
            wait_until(lambda mode=mode: mode in trigger_of(query), mode)
            memory.add(50)
            await_rows(query, sink, end)
    assert planner.refusals == []


@pytest.mark.usefixtures("logs_are_forged")
def test_another_writer_of_its_checkpoint_ends_it_as_in_micro_batches(
    planner: Live, memory: Memory, tmp_path: Path
) -> None:
    planner.answer = LIVE
    offsets = tmp_path / "checkpoint" / "offsets"
    with running(counted(memory, tmp_path / "rows"), tmp_path / "checkpoint") as query:
        wait_until(
            lambda: "RealTime" in trigger_of(query) and (offsets / "0").exists(), "an entry of the log"
        )
        entry = (offsets / "0").read_bytes()
        for number in range(1, 20):  # the other driver's; this one's batches are too long to be past them
            if not (offsets / str(number)).exists():
                (offsets / str(number)).write_bytes(entry)
        wait_until(lambda: not query.isActive, "its end")
        assert "CONCURRENT_STREAM_LOG_UPDATE" in str(query.exception())


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (f"{STATE}.stateStore.providerClass", HDFS, "format 1"),
        (f"{STATE}.internal.stateStore.partitions", "8", "needs 9 task slots"),
    ],
    ids=["a store of its own", "more partitions of state than of shuffles"],
)
def test_stays_in_micro_batches_with_what_the_job_says_of_its_state(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession, key: str, value: str, words: str
) -> None:
    planner.answer = LIVE
    memory.add(100)
    writer = counted(memory, tmp_path / "rows")
    with configured(spark, {key: value}), running(writer, tmp_path / "checkpoint") as query:
        await_counts(query, tmp_path / "rows", memory)
    assert words in planner.refusals[0]


def test_stays_in_micro_batches_where_a_failure_there_could_not_be_mended(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession
) -> None:
    planner.answer, planner.unshortened = LIVE, spark
    memory.add(100)
    writer = counted(memory, tmp_path / "rows").trigger(processingTime="1 second")
    with running(writer, tmp_path / "checkpoint") as query:
        await_counts(query, tmp_path / "rows", memory)
    assert [what for what, _ in planner.lacking] == ["trigger"]
    assert planner.refusals[0].startswith("a batch that fails there would end the query, since Spark ")


def test_slots_that_a_real_time_query_of_the_job_itself_holds_are_not_free(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession
) -> None:
    """One for each task of its batch: none is left, where one would be kept for a query of any other kind."""
    rows = Memory(spark, partitions=2).frame.select((col("value") % KEYS).alias("key"), col("value"))
    plain = rows.writeStream.foreach(appending(tmp_path / "plain")).outputMode("update")
    with running(plain.trigger(realTime="1 second"), tmp_path / "plain-checkpoint"):
        wait_until(lambda: running_tasks(spark) == 2, "the tasks of the plain query")
        planner.live = "counts"  # the plain one is asked as well, at each batch
        memory.add(100)
        with running(counted(memory, tmp_path / "rows").queryName("counts"), tmp_path / "checkpoint"):
            wait_until(lambda: planner.refusals, "a refusal")
    assert "needs 2 task slots all the time, and 0 of 2 are free for it; add executors" in planner.refusals[0]


def test_one_slot_is_left_for_the_other_queries_of_the_driver_which_go_on(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession
) -> None:
    """Of two slots it would take both. The query beside it has none of its own, and was there before."""
    other = Memory(spark)
    other.add(100)
    rows = other.frame.select((col("value") % KEYS).alias("key"), col("value"))
    beside = rows.writeStream.outputMode("update").foreach(appending(tmp_path / "beside"))
    with running(beside, tmp_path / "beside-checkpoint") as sibling:
        wait_until(lambda: len(written(tmp_path / "beside")) == KEYS, "its first rows")
        memory.add(100)
        planner.live = "counts"
        with running(
            counted(memory, tmp_path / "rows").queryName("counts"), tmp_path / "checkpoint"
        ) as query:
            wait_until(lambda: planner.refusals, "a refusal")
            await_counts(query, tmp_path / "rows", memory)
            other.add(KEYS)
            last = {n % KEYS: str(n) for n in range(other.size)}
            await_rows(sibling, tmp_path / "beside", last)
    assert (
        "needs 2 task slots all the time, and 1 of 2 are free for it (one is kept for other"
        in planner.refusals[0]
    )


def test_state_stays_in_micro_batches_where_executors_come_and_go_by_themselves(
    planner: Live, memory: Memory, tmp_path: Path, spark: SparkSession
) -> None:
    planner.answer = LIVE
    memory.add(100)
    conf = spark.sparkContext._jsc.sc().conf()  # that of the running driver
    keys = [f"spark.dynamicAllocation.{key}" for key in ("enabled", "testing")]
    for key in keys:
        conf.set(key, "true")
    try:
        with running(counted(memory, tmp_path / "rows"), tmp_path / "checkpoint") as query:
            await_counts(query, tmp_path / "rows", memory)
    finally:
        for key in keys:
            conf.remove(key)
    assert "dynamic allocation" in planner.refusals[0]


def test_a_refusal_is_told_again_where_the_planner_did_not_take_it(
    planner: Live, memory: Memory, tmp_path: Path
) -> None:
    planner.lost = []
    planner.answer = once("realtime:100")
    memory.add(100)
    with running(counted(memory, tmp_path / "rows"), tmp_path / "checkpoint") as query:
        await_counts(query, tmp_path / "rows", memory)
    assert len(planner.refusals) == 1
    assert planner.lost == planner.refusals
