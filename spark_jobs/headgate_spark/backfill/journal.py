"""Which steps of a backfill are done, kept beside the checkpoint so that a restart goes on where the last run was.

A step is recorded when its result is there for good; one that was interrupted is done again, over what it has left.
What a step has returned is what every later start goes by: where the histories end, above all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from headgate_spark.backfill.refusals import BackfillError
from headgate_spark.engine.checkpoint import CheckpointInUseError, acquire_lock, side_directory
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.store import NumberedStore

NAME = "backfill"


class Journal:
    """The steps of one backfill, each with what it has returned, as JSON."""

    def __init__(
        self, store: NumberedStore, checkpoint: str, question: Mapping[str, Any], *, has_batches: bool
    ) -> None:
        """`question` is what the backfill is asked to do; `has_batches`: whether its query has run before.

        Raises `BackfillError` where that is not what the checkpoint was made for.
        """
        self._store = store
        self._checkpoint = checkpoint
        self._question = dict(question)
        self._number, kept = store.newest()
        if kept is None and has_batches:
            raise BackfillError(
                f"checkpoint {checkpoint} has batches of a query but no backfill: their rows are read already; "
                "choose a new checkpoint"
            )
        if kept is not None and kept["question"] != self._question:
            raise BackfillError(_changed(checkpoint, kept["question"], self._question))
        self._done: dict[str, Any] = {} if kept is None else kept["done"]

    def has(self, name: str) -> bool:
        """Tell whether a step is done."""
        return name in self._done

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """Return what the step has returned, at an earlier start or now.

        Raises `BackfillError` where another run has recorded a step since this journal was opened.
        """
        if name not in self._done:
            self._record({**self._done, name: work()}, name)
        return self._done[name]

    def _record(self, done: dict[str, Any], name: str) -> None:
        try:
            self._store.create(self._number + 1, {"question": self._question, "done": done})
        except OSError:
            raise BackfillError(
                f"checkpoint {self._checkpoint}: step {name} is not recorded, as another run has recorded one "
                "meanwhile: stop that one, and start again"
            ) from None
        self._number += 1
        self._done = done


@contextmanager
def open_journal(spark: SparkSession, checkpoint: str, question: Mapping[str, Any]) -> Iterator[Journal]:
    """Open the journal of the backfill that belongs to a checkpoint, and keep other runs off meanwhile.

    Raises as `Journal`, and `BackfillError` where another run is there. It is read only when no other run is, so that
    none can have gone on since.
    """
    with _alone(spark, checkpoint):
        yield _journal(spark, checkpoint, question)


def _journal(spark: SparkSession, checkpoint: str, question: Mapping[str, Any]) -> Journal:
    store = NumberedStore(_directory(spark, side_directory(checkpoint)), NAME)
    offsets = _directory(spark, f"{checkpoint.rstrip('/')}/offsets")
    return Journal(store, checkpoint, question, has_batches=any(name.isdigit() for name in offsets.names()))


def staging(checkpoint: str) -> str:
    """Return where the results of the steps are, as a directory of Parquet tables."""
    return f"{side_directory(checkpoint)}/{NAME}"


@contextmanager
def _alone(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    try:
        lock = acquire_lock(spark._jvm, checkpoint)
    except CheckpointInUseError as error:
        raise BackfillError(str(error)) from None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _directory(spark: SparkSession, uri: str) -> HadoopDirectory:
    return HadoopDirectory(spark._jvm, spark._jsc.hadoopConfiguration(), uri)


def _changed(checkpoint: str, kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    name = next(name for name in (*kept, *asked) if kept.get(name) != asked.get(name))
    return (
        f"checkpoint {checkpoint} belongs to a backfill with {name} = {kept.get(name)}, not {asked.get(name)}: "
        "write it as it was, or choose a new checkpoint"
    )
