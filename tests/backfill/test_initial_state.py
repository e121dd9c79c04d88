"""The state of an operator of one's own, computed as a batch, and the stream that goes on from it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import Row

from headgate_spark import backfill
from headgate_spark.backfill import journal
from support.backfills import LEFT, Event, Joining, KilledError, Killing, finish, rows

pytestmark = pytest.mark.spark

COUNTS = "k long, n long"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def counting() -> StatefulProcessor:
    """Count the rows of a key, from where the history has ended.

    Its class is made here, so that Spark takes it along whole: workers know nothing of the tests.
    """

    class Counting(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.count = handle.getValueState("count", "n long")

        def handleInitialState(self, key: Any, initial: Row, timers: Any) -> None:  # noqa: N802
            self.count.update((initial["count"],))

        def handleInputRows(self, key: Any, events: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: N802
            before = self.count.get()[0] if self.count.exists() else 0
            now = before + sum(1 for _ in events)
            if now > before:  # Spark asks also for keys that only the history has
                self.count.update((now,))
                yield Row(k=key[0], n=now)

        def close(self) -> None:
            """Nothing is open."""

    return Counting()


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PROVIDER, ROCKSDB)
    yield
    spark.conf.unset(PROVIDER)  # what is set, and be it to the default, counts as a job's own choice


def by_key(history: DataFrame) -> DataFrame:
    return history.groupBy("k").count()


def counted(
    spark: SparkSession, inputs: Joining, compute: Callable[[DataFrame], DataFrame] = by_key
) -> backfill.Seeded:
    source = backfill.Files(str(inputs.folder / "left"), "parquet", LEFT)
    return backfill.initial_state(spark, source, compute, checkpoint=inputs.checkpoint)


def events(*keys: int) -> tuple[list[Event], list[Event]]:
    return [Event(key, 0) for key in keys], []


@pytest.mark.usefixtures("rocksdb")
def test_the_state_of_the_history_is_that_of_its_cut_at_every_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(1, 1, 2)])
    counted(spark, inputs)
    inputs.arrive([events(1, 3)])
    assert counts(inputs, counted(spark, inputs)) == {1: 3, 3: 1}
    inputs.arrive([events(1, 2)])
    assert counts(inputs, counted(spark, inputs)) == {1: 4, 2: 2}


@pytest.mark.usefixtures("rocksdb")
@pytest.mark.parametrize("history", [(), (1, 1, 2)], ids=["an empty history", "a history"])
def test_the_counts_come_to_those_of_the_operator_that_has_read_everything(
    spark: SparkSession, tmp_path: Path, history: tuple[int, ...]
) -> None:
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(*history)])
    seeded = counted(spark, inputs)
    inputs.arrive([events(1, 2, 2, 3)])
    found = counts(inputs, seeded)
    everything = spark.readStream.schema(LEFT).parquet(str(inputs.folder / "left"))
    plain = everything.groupBy("k").transformWithState(counting(), COUNTS, "Update", "none")
    assert found == emitted(plain, str(tmp_path / "plain"))


@pytest.mark.usefixtures("rocksdb")
def test_a_state_whose_computation_was_killed_is_that_of_the_same_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(1, 1, 2)])

    def killed(history: DataFrame) -> DataFrame:
        raise KilledError

    with pytest.raises(KilledError):
        counted(spark, inputs, killed)
    inputs.arrive([events(1, 3)])
    assert rows(counted(spark, inputs).state) == Counter([(2, 1), (1, 2)])


@pytest.mark.usefixtures("rocksdb")
def test_a_computation_that_is_killed_at_every_step_counts_each_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = random.Random("an operator with initial state")
    history, *live = ([made_up.randrange(8) for _ in range(40)] for _ in range(3))
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(*history)])
    killing = Killing(monkeypatch)
    for step, keys in zip(("cut", "state"), live, strict=True):
        for moment in ("before", "after"):
            killing.at = (moment, step)
            with pytest.raises(KilledError):
                counted(spark, inputs)
        inputs.arrive([events(*keys)])  # once the cut is kept, what arrives between two attempts is live
    seeded = counted(spark, inputs)
    assert rows(seeded.state) == Counter((n, key) for key, n in Counter(history).items())
    assert counts(inputs, seeded) == dict(Counter([*history, *live[0], *live[1]]))


@pytest.mark.usefixtures("rocksdb")
def test_a_state_of_which_a_file_is_gone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(1, 1, 2)])
    counted(spark, inputs)
    gone = next(Path(f"{inputs.checkpoint}.headgate/backfill/state").glob("*.parquet"))
    gone.unlink()
    with pytest.raises(backfill.BackfillError, match=rf"file {gone} of .* is gone: put it back, or delete"):
        counted(spark, inputs)


def test_a_state_store_without_initial_state_is_refused_before_a_cut_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(1)])
    with pytest.raises(backfill.BackfillError, match=r"takes no state to begin with: set .*providerClass to"):
        counted(spark, inputs)
    assert not list(Path(f"{inputs.checkpoint}.headgate").glob("backfill*"))


@pytest.mark.usefixtures("rocksdb")
def test_a_run_that_comes_when_another_one_has_just_finished_goes_by_its_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = Joining(tmp_path, "inner", 0, 0, 0, 0)
    inputs.arrive([events(1, 1, 2)])
    acquire = journal.acquire_lock

    def acquired_when_another_run_has_finished(jvm: Any, checkpoint: str) -> Any:
        monkeypatch.setattr(journal, "acquire_lock", acquire)
        counted(spark, inputs)
        inputs.arrive([events(1, 3)])
        return acquire(jvm, checkpoint)

    monkeypatch.setattr(journal, "acquire_lock", acquired_when_another_run_has_finished)
    assert rows(counted(spark, inputs).state) == Counter([(2, 1), (1, 2)])


def counts(inputs: Joining, seeded: backfill.Seeded) -> dict[int, int]:
    """What the operator emits for what is there now."""
    keyed = seeded.live.groupBy("k")
    running = keyed.transformWithState(counting(), COUNTS, "Update", "none", seeded.state.groupBy("k"))
    return emitted(running, inputs.checkpoint)


def emitted(running: DataFrame, checkpoint: str) -> dict[int, int]:
    """The newest count of each key that a query emits until it has read all there is."""
    newest: dict[int, int] = {}

    def take(batch: DataFrame, number: int) -> None:
        newest.update({row.k: row.n for row in batch.collect()})

    writer = running.writeStream.outputMode("update").foreachBatch(take).trigger(availableNow=True)
    finish(writer.option("checkpointLocation", checkpoint))
    return newest
