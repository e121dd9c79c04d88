"""What must hold on every supported version of Spark, with one and the same jar.

Runs by itself, in an environment with PySpark alone: `python smoke.py DIRECTORY [JAR ...]`. Prints one line for each
check that fails and ends with exit code 1, or prints nothing and ends with 0. With the jars of Delta and Iceberg it
tries their tables too. `run.py` beside it runs it on each version.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from headgate_spark.engine import shim
from headgate_spark.engine.governor import verbs
from headgate_spark.engine.questions import Questions
from headgate_spark.engine.shim import DriverJvm

SECONDS = 60.0
TOKEN = "of the smoke"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Planner:
    """Gives the answers of a list, one per planning, and then holds."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.indexes: dict[int, str] = {}
        self.free: set[str] = set()
        self.begun: list[dict[str, Any]] = []
        self.progress: list[str] = []
        self.noticed_runs: list[str] = []
        self.ended_runs: list[str] = []

    def begins(self, query: str) -> None:
        self.begun.append(json.loads(query))

    def fence(self, run_id: str) -> str:
        return "none"

    def progressed(self, run_id: str, progress: str) -> None:
        self.progress.append(progress)

    def noticed(self, query: str) -> None:
        self.noticed_runs.append(json.loads(query)["runId"])

    def ended(self, run_id: str, failure: str | None) -> None:
        self.ended_runs.append(run_id)

    def opened(self, handle: int, descriptor: str) -> str:
        self.indexes[handle] = json.loads(descriptor)["index"]
        return "ok"

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        self.asked += 1
        if self.indexes[handle] in self.free:
            return "all"
        return self.answers.pop(0) if self.answers else "hold"

    def plan(self, handle: int, trigger: str, latest: Mapping[int, str | None]) -> str:
        return "all"

    def outage(self, handle: int, failure: str | None) -> None:
        pass

    def thrown(self, handle: int, failure: str) -> None:
        pass

    def refused(self, run_id: str, why: str, *, passes: bool) -> None:
        self.answers = ["all"]

    def lacks(self, run_id: str, what: str, why: str) -> None:
        raise AssertionError(f"{what}: {why}")

    def closed(self, handle: int, failure: str | None) -> None:
        del self.indexes[handle]


class Smoke:
    """The checks, each with a directory and queries of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm = DriverJvm.of(spark.sparkContext)

    def check_a_v2_source_is_held_then_released_then_read_to_an_offset(self, scratch: Path) -> None:
        planner = Planner()
        with (
            self.governed(planner),
            self.running(self.numbers().writeStream.format("noop"), scratch) as query,
        ):
            self.until(lambda: planner.asked > 3)
            assert not (scratch / "offsets" / "0").exists(), "a batch was planned while the source was held"
            planner.answers += ["all", 'offset:{"offset":1234,"timestamp":5000}']
            self.until(lambda: sizes(query) == [10, 1224])
        assert query.exception() is None
        assert planner.indexes == {}

    def check_a_v1_source_is_held_then_read_in_granted_files(self, scratch: Path) -> None:
        planner = Planner("hold", "hold", "files:1", "files:3", "all")
        writer = self.files(scratch / "in", 8).writeStream.format("noop")
        with self.governed(planner), self.running(writer, scratch / "checkpoint") as query:
            self.until(lambda: sizes(query) == [100, 300, 400])
        assert query.exception() is None

    def check_process_all_available_waits_through_held_triggers(self, scratch: Path) -> None:
        planner = Planner(*["hold"] * 10, *["all"] * 1000)
        writer = self.files(scratch / "in", 8).writeStream.format("noop")
        with self.governed(planner), self.running(writer, scratch / "checkpoint") as query:
            query.processAllAvailable()
            assert sizes(query) == [800]

    def check_a_source_held_while_another_reads_starts_at_its_beginning(self, scratch: Path) -> None:
        planner = Planner()
        planner.free = {"0"}
        frame = self.numbers().union(self.numbers(1000)).groupBy().count()
        writer = frame.writeStream.outputMode("complete").format("memory").queryName("held")
        with self.governed(planner), self.running(writer, scratch) as query:
            self.until(lambda: len(sizes(query)) >= 3)
            planner.answers.append("all")
            self.until(lambda: any(size >= 1000 for size in sizes(query)))
        assert query.exception() is None

    def check_the_first_batch_of_an_aggregation_alone_looks_nothing_up(self, scratch: Path) -> None:
        planner = Planner()
        writer = self.numbers().groupBy("value").count().writeStream.outputMode("update").format("noop")
        with self.governed(planner), self.running(writer, scratch) as query:
            for batch in (1, 2):
                planner.answers.append("all")
                self.until(lambda n=batch: len(sizes(query)) == n)  # type: ignore[misc]
                assert ("StateStoreRestore" in query._jsq.explainInternal(False)) == (batch > 1)

    def check_a_large_batch_goes_through_rocksdb_in_the_order_of_its_keys(self, scratch: Path) -> None:
        """By a number of two fields and a text, which makes all nodes and expressions of such a sort."""
        planner = Planner()
        number = self.numbers_column()
        keys = [
            (number % 7).alias("a"),
            (number % 5).cast("int").alias("b"),
            number.cast("string").alias("c"),
        ]
        frame = self.numbers().groupBy(*keys).count()
        rows: dict[tuple[int, int, str], int] = {}

        def keep_counts(batch: DataFrame, _: int) -> None:
            rows.update(((row["a"], row["b"], row["c"]), row["count"]) for row in batch.collect())

        writer = frame.writeStream.outputMode("update").foreachBatch(keep_counts)
        with self.in_order_of_keys(), self.governed(planner), self.running(writer, scratch) as query:
            for batch in (1, 2):
                planner.answers.append("all")
                self.until(lambda n=batch: len(sizes(query)) == n)  # type: ignore[misc]
                plan = query._jsq.explainInternal(False)
                assert re.search(r"StateStore(Restore|Save) [^\n]*\n[^\n]*\bSort \[", plan), plan
            read = sum(sizes(query))
        assert rows == {(each % 7, each % 5, str(each)): 1 for each in range(read)}

    def check_the_keys_of_a_large_deduplication_are_remembered(self, scratch: Path) -> None:
        """In both kinds of it, from the empty state and from one that has keys."""
        number = self.numbers_column()
        rows = self.numbers().select((number % 7).alias("a"), number.cast("timestamp").alias("timestamp"))
        timed = rows.withWatermark("timestamp", "1 hour")
        with self.in_order_of_keys():
            for place, frame in enumerate(
                (rows.dropDuplicates(["a"]), timed.dropDuplicatesWithinWatermark(["a"]))
            ):
                planner, found = Planner(), list[int]()

                def keep(batch: DataFrame, _: int, found: list[int] = found) -> None:
                    found.extend(row["a"] for row in batch.collect())

                writer = frame.writeStream.foreachBatch(keep)
                with self.governed(planner), self.running(writer, scratch / str(place)) as query:
                    for number in (1, 2):
                        planner.answers.append("all")
                        self.until(lambda n=number: len(sizes(query)) == n)  # type: ignore[misc]
                        plan = query._jsq.explainInternal(False)
                        assert re.search(r"RememberedKeys\n[^\n]*StreamingDeduplicate", plan), plan
                    last = json.loads(query._jsq.lastProgress().json())["stateOperators"][0]
                assert sorted(found) == list(range(7))
                assert last["numRowsTotal"] == 7, last

    def check_a_first_batch_of_real_time_mode_looks_its_groups_up(self, scratch: Path) -> None:
        if self.spark.version.startswith("4.0."):
            return  # it has no real-time mode
        jvm: Any = self.spark._jvm
        streaming = jvm.org.apache.spark.sql.execution.streaming
        rows = streaming.sources.LowLatencyMemoryStream.apply(
            self.spark._jsparkSession, 1, jvm.org.apache.spark.sql.Encoders.LONG()
        )
        writer = DataFrame(rows.toDF(), self.spark).groupBy("value").count().writeStream.outputMode("update")
        writer = writer.foreach(lambda row: None)
        writer._jwrite.trigger(streaming.RealTimeTrigger(1000))
        conf = {  # 4.1 and 4.2 refuse to keep state in that mode, but where they are told to let everything pass
            "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
            "spark.sql.streaming.realTimeMode.minBatchDuration": "500",
            "spark.sql.shuffle.partitions": "1",
        }
        before = {key: self.spark.conf.get(key) for key in conf}
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        plans: list[str] = []

        def is_planned() -> bool:
            assert query.exception() is None, query.exception()
            plans.append(query._jsq.explainInternal(False))
            return "RealTimeStreamScan" in plans[-1]

        try:
            with (
                self.governed(Planner(*["all"] * 1000)),
                self.running(writer, scratch, trigger=False) as query,
            ):
                self.until(is_planned)
        finally:
            for key, value in before.items():
                self.spark.conf.set(key, value)
        assert "StateStoreRestore" in plans[-1] or "StatefulStreamlineAggregate" in plans[-1], plans[-1]

    def check_a_checkpoint_goes_from_plain_to_governed_to_plain(self, scratch: Path) -> None:
        for planner, batches in ((None, 2), (Planner("all"), 1), (None, 2)):
            frame = self.numbers().groupBy((self.numbers_column() % 3).alias("key")).count()
            rows: dict[int, int] = {}
            writer = frame.writeStream.outputMode("complete").foreachBatch(keep(rows))
            in_charge = nullcontext() if planner is None else self.governed(planner)
            with in_charge, self.running(writer, scratch) as query:
                self.until(lambda q=query, n=batches: len(sizes(q)) >= n)  # type: ignore[misc]
        read = sum(rows.values())
        assert read >= 50, f"{read} rows were read"
        assert rows == {key: len(range(key, read, 3)) for key in range(3)}, "counted once each"

    def check_available_now_ends_by_itself(self, scratch: Path) -> None:
        planner = Planner(*["all"] * 5)
        writer = self.files(scratch / "in", 4).writeStream.format("noop").trigger(availableNow=True)
        with self.governed(planner), self.running(writer, scratch / "checkpoint", trigger=False) as query:
            self.until(lambda: not query.isActive)
        assert query.exception() is None
        assert sizes(query) == [400]

    def check_a_failing_planner_fails_the_query_with_the_reason(self, scratch: Path) -> None:
        self.jvm.shim("Shim").setPatience(500, 500)
        writer = self.numbers().writeStream.format("noop")
        with self.governed(Planner(*["perhaps"] * 1000)), self.running(writer, scratch) as query:
            self.until(lambda: not query.isActive)
        self.jvm.shim("Shim").setPatience(5_000, 60_000)
        assert 'unknown answer "perhaps"' in str(query.exception())

    def check_the_memory_of_a_batch_is_counted_and_told_once(self, scratch: Path) -> None:
        memory = self.jvm.shim("TaskMemory")
        memory.watch(self.jvm.context)
        frame = self.numbers(1000).groupBy((self.numbers_column() % 7).alias("key")).count()
        writer = frame.writeStream.outputMode("complete").format("noop")
        told: dict[int, list[int]] = {}
        with self.governed(Planner("all")), self.running(writer, scratch) as query:

            def is_told() -> bool:
                told.update({batch[0]: batch[1:] for batch in json.loads(memory.take(str(query.id)))})
                return 0 in told

            self.until(is_told)
        spilled_in_memory, spilled_to_disk, peaks, largest_peak = told[0]
        assert spilled_in_memory == spilled_to_disk == 0
        assert 0 < largest_peak <= peaks

    def check_executors_cannot_be_changed_where_there_are_none(self, _scratch: Path) -> None:
        assert not self.jvm.shim("Executors").areChangeable(self.jvm.context)

    def check_a_job_that_is_triggered_each_hour_is_asked_ten_times_a_second(self, scratch: Path) -> None:
        planner = Planner(*["all"] * 1000)
        writer = (
            self.numbers().writeStream.queryName("hourly").format("noop").trigger(processingTime="1 hour")
        )
        with self.governed(planner), self.running(writer, scratch, trigger=False) as query:
            self.until(lambda: len(sizes(query)) > 5 and bool(planner.noticed_runs))
        (begun,) = planner.begun
        assert (begun["name"], begun["trigger"], begun["intervalMillis"]) == (
            "hourly",
            "processingTime",
            3_600_000,
        )
        assert begun["plan"]
        assert planner.ended_runs == planner.noticed_runs == [begun["runId"]]
        told = [json.loads(each)["batchId"] for each in planner.progress]
        assert told == sorted(told)
        assert len(told) > 4

    def numbers(self, rows: int = 10) -> DataFrame:
        frame = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
        return frame.select("value")

    def numbers_column(self) -> Any:
        from pyspark.sql.functions import col

        return col("value")

    def files(self, path: Path, count: int) -> DataFrame:
        self.spark.range(0, count * 100, 1, count).write.parquet(str(path))
        return self.spark.readStream.schema("id long").parquet(str(path))

    @contextmanager
    def in_order_of_keys(self) -> Iterator[None]:
        """Within, the state of queries is in RocksDB, and each batch is large enough for the order of its keys."""
        conf = {
            "spark.headgate.sortedStateFromRecords": "0",
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        }
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key in conf:
                self.spark.conf.unset(key)

    @contextmanager
    def governed(self, planner: Planner) -> Iterator[None]:
        questions = Questions(verbs(planner), TOKEN)
        questions.start()
        self.jvm.shim("Shim").connect(questions.port, TOKEN)
        try:
            yield
        finally:
            # That a query has ended is told later, by another thread.
            self.jvm.shim("Shim").settle(round(SECONDS * 1000))
            self.jvm.shim("Shim").connect(0, None)
            questions.close()

    @contextmanager
    def running(
        self, writer: DataStreamWriter, checkpoint: Path, *, trigger: bool = True
    ) -> Iterator[StreamingQuery]:
        if trigger:
            writer = writer.trigger(processingTime="50 milliseconds")
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        try:
            yield query
        finally:
            query.stop()

    @staticmethod
    def until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {SECONDS} s")
            time.sleep(0.02)


class Tables(Smoke):
    """The checks of formats whose jars were given."""

    def check_a_delta_table_is_held_then_read_in_granted_files(self, scratch: Path) -> None:
        table = str(scratch / "table")
        for rows in self.commits():
            rows.write.format("delta").mode("append").save(table)
        self._read_in_granted_files(self.spark.readStream.format("delta").load(table), scratch)

    def check_an_iceberg_table_is_held_then_read_in_granted_files(self, scratch: Path) -> None:
        table = "lake.db.numbers"
        self.spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
        for rows in self.commits():
            rows.writeTo(table).append()
        self._read_in_granted_files(self.spark.readStream.table(table), scratch)

    def commits(self) -> Iterator[DataFrame]:
        return (self.spark.range(first, first + 100, 1, 1) for first in range(0, 600, 100))

    def _read_in_granted_files(self, stream: DataFrame, scratch: Path) -> None:
        planner = Planner("hold", "hold", "files:1", "files:2", "all")
        writer = stream.writeStream.format("noop")
        with self.governed(planner), self.running(writer, scratch / "checkpoint") as query:
            self.until(lambda: sizes(query) == [100, 200, 300])
        assert query.exception() is None


def sizes(query: StreamingQuery) -> list[int]:
    """Input rows of each data batch, oldest first."""
    reports = [json.loads(report.json()) for report in query._jsq.recentProgress()]
    return [report["numInputRows"] for report in reports if report["numInputRows"]]


def keep(rows: dict[int, int]) -> Callable[[DataFrame, int], None]:
    """A sink that keeps the last count of each key."""
    return lambda batch, _id: rows.update({row["key"]: row["count"] for row in batch.collect()})


def session(root: Path, jars: Sequence[str]) -> SparkSession:
    """A small session with the shim, found by itself on the class path, and these jars."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")
    builder = builder.config("spark.headgate.enabled", "false")  # planners of the checks are in charge
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    class_path = os.pathsep.join([str(shim.jar_path()), *jars])
    builder = builder.config("spark.driver.extraClassPath", class_path)
    if jars:
        for name, value in tables(root / "lake").items():
            builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def tables(lake: Path) -> dict[str, str]:
    """The properties with which a session has Delta, and an Iceberg catalog `lake` in a folder."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(lake),
    }


def main(root: Path, jars: Sequence[str]) -> int:
    """Run every check; returns the exit code."""
    spark = session(root, jars)
    smoke = Tables(spark) if jars else Smoke(spark)
    failed = 0
    for name in (name for name in dir(smoke) if name.startswith("check_")):
        try:
            getattr(smoke, name)(root / name)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
            traceback.print_exc()
    spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
