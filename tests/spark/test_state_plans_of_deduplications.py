"""A large batch of a deduplication, whose tasks hold keys before they write them, against plain Spark: the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from support.examples import examples
from support.spark import (
    ScriptedPlanner,
    configured,
    governed,
    once,
    reports,
    running,
    unregister,
    wait_until,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

TOLD = "it was told to fail"
FROM_RECORDS = "spark.headgate.sortedStateFromRecords"
REMEMBERS = re.compile(r"RememberedKeys\n[^\n]*StreamingDeduplicate")
STATE = "spark.sql.streaming.stateStore"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDERS: dict[str, dict[str, str]] = {"hdfs": {}, "rocksdb": {f"{STATE}.providerClass": ROCKSDB}}
PROVIDERS["changes"] = PROVIDERS["rocksdb"] | {f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true"}
PROVIDERS["format 2"] = PROVIDERS["changes"] | {f"{STATE}.checkpointFormatVersion": "2"}
PROVIDERS["uncounted"] = PROVIDERS["rocksdb"] | {f"{STATE}.rocksdb.trackTotalNumberOfRows": "false"}
KEYS: dict[str, tuple[str, ...]] = {
    "numbers": ("value % 7",),
    "many numbers": ("value * 7919 % 1000 - 500", "int(value % 2)"),
    "new in each batch": ("value",),
    "dates and nulls": ("date(timestamp)", "nullif(int(value % 5), 3)"),
    "words of many lengths, of which some are null": ("nullif(repeat('x', int(value % 90)), 'xxx')",),
    "structures": ("named_struct('a', value % 3, 'b', string(value % 4))",),
    "the time": ("timestamp",),
}
COUNTS = ("numRowsTotal", "numRowsUpdated", "numRowsRemoved", "numRowsDroppedByWatermark")
DROPPED = "numDroppedDuplicateRows"


@dataclass(frozen=True)
class Case:
    """A deduplication, and what its three batches of records meet with."""

    keys: str
    kind: str = "plain"
    provider: str = "rocksdb"
    fails: bool = False
    """Whether the first batch fails once its state is written, and is repeated by the next run."""

    peeks: bool = False
    """Whether each batch is looked into before all of it is taken."""

    rows: int = 40
    millis: int = 25_000
    """What lies between two batches: so much of the state has ended."""

    large: bool = True

    @property
    def conf(self) -> Mapping[str, str]:
        return PROVIDERS[self.provider] | {FROM_RECORDS: "0" if self.large else "1"}

    def frame(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        source = source.option("startTimestamp", 1_700_000_000_000).option(
            "advanceMillisPerBatch", self.millis
        )
        keys = [sf.expr(key).alias(f"k{place}") for place, key in enumerate(KEYS[self.keys])]
        rows = source.load().select(*keys, "value", sf.col("timestamp").alias("at"))
        names = [f"k{place}" for place, _ in enumerate(keys)]
        if self.kind == "plain":
            return rows.dropDuplicates(names)
        rows = rows.withWatermark("at", "10 seconds")
        if self.kind == "within":
            return rows.dropDuplicatesWithinWatermark(names)
        return rows.dropDuplicates([*names, "at"])


@dataclass
class Outcome:
    """What each batch has given out, has come to in its state, and was planned as."""

    rows: dict[int, list[str]] = field(default_factory=dict)
    peeked: dict[int, list[str]] = field(default_factory=dict)
    states: list[tuple[int, list[tuple[Any, ...]]]] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    plans: dict[int, str] = field(default_factory=dict)

    def keep(self, spark: SparkSession, case: Case, fails: bool) -> Callable[[DataFrame, int], None]:
        def kept(batch: DataFrame, number: int) -> None:
            (query,) = spark.streams.active
            self.plans.setdefault(number, str(query._jsq.explainInternal(False)))
            if case.peeks:
                self.peeked[number] = [repr(row) for row in batch.take(3)]
            self.rows[number] = [repr(row) for row in batch.collect()]
            if fails:
                raise ValueError(TOLD)

        return kept


def batch(spark: SparkSession, case: Case, checkpoint: Path, outcome: Outcome, fails: bool = False) -> None:
    """Let one run take what there is, which is one batch with records."""
    writer = case.frame(spark).writeStream.outputMode("append")
    writer = writer.foreachBatch(outcome.keep(spark, case, fails)).trigger(availableNow=True)
    with running(writer, checkpoint) as query:
        with pytest.raises(StreamingQueryException, match=TOLD) if fails else nullcontext():
            assert query.awaitTermination(60)
        outcome.states += [
            (
                report["batchId"],
                [
                    (*(state[name] for name in COUNTS), state["customMetrics"].get(DROPPED))
                    for state in report["stateOperators"]
                ],
            )
            for report in reports(query)
            if report["stateOperators"]
        ]


def run(spark: SparkSession, case: Case, checkpoint: Path) -> Outcome:
    """Three runs on one checkpoint, a failing one besides, and what is in the state then."""
    outcome = Outcome()
    for fails in (True,) * case.fails + (False,) * 3:
        batch(spark, case, checkpoint, outcome, fails)
    state = spark.read.format("statestore").load(str(checkpoint))
    outcome.kept = sorted(repr(row) for row in state.select("key", "value").collect())
    return outcome


CASES = st.builds(
    Case,
    st.sampled_from(sorted(KEYS)),
    st.sampled_from(("plain", "timed", "within")),
    st.sampled_from(sorted(PROVIDERS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from((1, 40, 1000)),
    st.sampled_from((1_000, 25_000)),
    st.booleans(),
)


@settings(
    max_examples=examples(2),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=CASES)
@example(Case("numbers", "within", "changes", fails=True))
@example(Case("many numbers", "plain", "format 2", rows=1000, millis=1_000))
@example(Case("words of many lengths, of which some are null", "timed", peeks=True, rows=1000))
@example(Case("new in each batch", "within", "uncounted"))
@example(Case("many numbers", "within", "hdfs"))
def test_a_deduplication_has_the_rows_in_their_order_and_the_state_that_plain_spark_gives_it(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    place = tmp_path_factory.mktemp("case")
    with configured(spark, case.conf):
        unregister(spark)
        plain = run(spark, case, place / "plain")
        with governed(spark, ScriptedPlanner("all")):
            ours = run(spark, case, place / "governed")
        assert ours.rows == plain.rows
        assert ours.peeked == plain.peeked
        assert ours.states == plain.states
        assert ours.kept == plain.kept
        remembers = case.large and case.provider != "hdfs"
        assert all(bool(REMEMBERS.search(plan)) == remembers for plan in ours.plans.values()), ours.plans
        # Plain Spark goes on with what is left, and the other way round.
        batch(spark, case, place / "governed", ours)
        with governed(spark, ScriptedPlanner("all")):
            batch(spark, case, place / "plain", plain)
    assert ours.rows == plain.rows
    assert ours.states == plain.states


def test_more_keys_than_a_task_holds_are_written_in_between(spark: SparkSession, tmp_path: Path) -> None:
    """Sixty-four megabytes: each of these keys has two kilobytes, and comes twice, with all others in between."""
    keys = 40_000
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2 * keys).load()
    long = sf.concat((sf.col("value") % keys).cast("string"), sf.lit("x" * 2_000))
    found: list[int] = []

    def count(batch: DataFrame, _: int) -> None:
        found.append(batch.where(sf.length("key") > 2_000).count())

    writer = rows.select(long.alias("key")).dropDuplicates().writeStream.foreachBatch(count)
    planner = ScriptedPlanner(once("all"))
    with (
        configured(spark, PROVIDERS["changes"] | {FROM_RECORDS: "0"}),
        governed(spark, planner),
        running(writer, tmp_path) as query,
    ):
        report = wait_until(lambda: next((r for r in reports(query) if r["numInputRows"]), None), "a batch")
        assert REMEMBERS.search(str(query._jsq.explainInternal(False)))
    (state,) = report["stateOperators"]
    assert found[:1] == [keys]
    assert (state["numRowsTotal"], state["numRowsUpdated"]) == (keys, keys)
    assert state["customMetrics"][DROPPED] == keys


def test_a_store_that_cannot_commit_fails_the_query_as_in_plain_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its exception is checked, and the task calls the store through a proxy."""

    def failure(name: str) -> str:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).load()
        writer = rows.select("value").dropDuplicates().writeStream.format("noop").trigger(availableNow=True)
        with running(writer, tmp_path / name) as query:
            assert query.awaitTermination(60)
        for partition in (tmp_path / name / "state" / "0").iterdir():
            (partition / "2.changelog" / "in the way").mkdir(parents=True)
        with running(writer, tmp_path / name) as query:
            with pytest.raises(StreamingQueryException) as raised:
                query.awaitTermination(60)
            return str(raised.value).partition("terminated with exception: ")[2].partition("\n")[0]

    with configured(spark, PROVIDERS["changes"] | {FROM_RECORDS: "0"}):
        unregister(spark)
        plain = failure("plain")
        with governed(spark, ScriptedPlanner("all")):
            assert failure("governed") == plain
    assert plain.startswith("[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT]")
