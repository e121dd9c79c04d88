"""Which steps of a backfill are done, kept beside the checkpoint so that a restart goes on where the last run was.

A step is recorded when its result is there for good; one that was interrupted is done again, over what it has left.
What a step has returned is what every later start goes by: where the histories end, above all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from headgate_spark.backfill.parquet import directory, gone
from headgate_spark.backfill.refusals import BackfillError
from headgate_spark.engine.checkpoint import CheckpointInUseError, acquire_lock, side_directory
from headgate_spark.engine.directory import Directory
from headgate_spark.engine.store import DamagedFileError, NumberedStore

NAME = "backfill"


class Journal:
    """The steps of one backfill, each with what it has returned, as JSON."""

    def __init__(
        self,
        store: NumberedStore[dict[str, Any]],
        checkpoint: str,
        question: Mapping[str, Any],
        *,
        has_batches: bool,
    ) -> None:
        """`question` is what the backfill is asked to do; `has_batches`: whether its query has run before.

        Raises `BackfillError` where that is not what the checkpoint was made for, or what is kept is damaged.
        """
        self._store = store
        self._checkpoint = checkpoint
        self._folder = side_directory(checkpoint)
        self._question = dict(question)
        self.has_batches = has_batches
        try:
            self._number, kept = store.newest()
        except DamagedFileError as error:
            raise BackfillError(
                f"checkpoint {checkpoint}: {error}: put it back from a copy, or {self._anew}"
            ) from None
        if kept is None and has_batches:
            raise BackfillError(
                f"checkpoint {checkpoint} has batches of a query but no backfill: their rows are read already; put "
                f"{self._folder} back if it was deleted, or choose a new checkpoint"
            )
        if kept is not None and kept["question"] != self._question:
            raise BackfillError(_changed(checkpoint, kept["question"], self._question))
        self._done: dict[str, Any] = {} if kept is None else kept["done"]

    def has(self, name: str) -> bool:
        return name in self._done

    def kept(self, name: str) -> Any:
        """Return what a step that is done has returned."""
        return self._done[name]

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """Return what the step has returned, at an earlier start or now.

        Raises `BackfillError` where another run has recorded a step since this journal was opened, and where the step
        is missing though the query has run.
        """
        if name not in self._done:
            if self.has_batches:
                raise BackfillError(  # done again, its rows would be read twice
                    f"checkpoint {self._checkpoint} has batches of its query, but {self._folder} does not say that "
                    f"step {name} of the backfill is done: put the folder back as it was, or choose a new checkpoint"
                )
            self._record({**self._done, name: work()}, name)
        return self._done[name]

    def see_results(self, spark: SparkSession, *steps: str) -> None:
        """Raise `BackfillError` where a file is gone that one of these steps has written, as far as that was kept."""
        written = [file for step in steps for file in self._done.get(step) or ()]
        file = gone(spark, staging(self._checkpoint), written)
        if file is not None:
            raise BackfillError(f"file {file} of the computed history is gone: put it back, or {self._anew}")

    @property
    def _anew(self) -> str:
        """How a backfill begins anew. What a query has read of an old one it would read of the new one again."""
        if self.has_batches:
            return "choose a new checkpoint"
        return f"delete {self._folder}, and the history is cut and computed anew"

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
    try:
        lock = acquire_lock(spark._jvm, checkpoint)
    except CheckpointInUseError as error:
        raise BackfillError(str(error)) from None
    try:
        store = store_in(directory(spark, side_directory(checkpoint)))
        offsets = directory(spark, f"{checkpoint.rstrip('/')}/offsets")
        has_batches = any(name.isdigit() for name in offsets.names())
        yield Journal(store, checkpoint, question, has_batches=has_batches)
    finally:
        if lock is not None:
            lock.release()


def store_in(folder: Directory) -> NumberedStore[dict[str, Any]]:
    return NumberedStore(folder, NAME, _steps_in)


def _steps_in(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(
        isinstance(value.get(key), dict) for key in ("question", "done")
    ):
        raise ValueError("it has no question with the steps that are done")
    return value


def staging(checkpoint: str) -> str:
    """Return where the results of the steps are, as a directory of Parquet tables."""
    return f"{side_directory(checkpoint)}/{NAME}"


def _changed(checkpoint: str, kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    name = next(name for name in (*kept, *asked) if kept.get(name) != asked.get(name))
    return (
        f"checkpoint {checkpoint} belongs to a backfill with {name} = {kept.get(name)}, not {asked.get(name)}: "
        "write it as it was, or choose a new checkpoint"
    )
