"""What a governor needs around it, made up: checkpoints, locks, queries, and streams as the shim describes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from headgate_spark.engine.checkpoint import CheckpointInUseError
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.run import Started
from headgate_spark.planner.model import Trigger


class Kept:
    """What is kept beside a checkpoint under one name."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def load(self) -> Any | None:
        return self.values[-1] if self.values else None

    def save(self, value: Any) -> None:
        self.values.append(value)


class MadeUpCheckpoint:
    """A checkpoint that nobody has written yet; `reads` is called before it answers."""

    def __init__(self, reads: Callable[[], object] = lambda: None) -> None:
        self.hybrid, self.batches, self.topics = Kept(), Kept(), Kept()
        self.left = Resumption()
        self._reads = reads

    def resumption(self) -> Resumption:
        self._reads()
        return self.left

    def without_jvm(self) -> None:
        return None


class Locks:
    """The locks of a file system: a checkpoint that is locked is refused, whoever asks."""

    def __init__(self) -> None:
        self._table = threading.Lock()
        self.held: set[str] = set()

    def acquire(self, checkpoint: str) -> Lock:
        with self._table:
            if checkpoint in self.held:
                raise CheckpointInUseError(f"checkpoint {checkpoint} is in use by the run with pid 4711")
            self.held.add(checkpoint)
        return Lock(self, checkpoint)


class Lock:
    """One that is held."""

    def __init__(self, locks: Locks, checkpoint: str) -> None:
        self._locks, self._checkpoint = locks, checkpoint

    def release(self) -> None:
        self._locks.held.discard(self._checkpoint)


class Unmeasured:
    """Measures nothing."""

    def batch_took(self, query: str, seconds: float) -> None:
        pass

    def forget(self, query: str) -> None:
        pass

    def planner_call(self) -> AbstractContextManager[None]:
        return nullcontext()


class MadeUpQuery:
    """A query that runs until it is told to end, or to fail."""

    def __init__(self) -> None:
        self.active = True
        self.failed_of: str | None = None

    def fail(self, reason: str) -> None:
        self.active, self.failed_of = False, reason

    def last_progress(self) -> str | None:
        return None

    def is_active(self) -> bool:
        return self.active

    def failure(self) -> str | None:
        return self.failed_of

    def causes(self) -> str | None:
        return self.failed_of

    def stop(self) -> None:
        self.active = False


def described(
    handle: int,
    *,
    topic: str = "orders",
    query: str = "copy",
    run: str = "r1",
    checkpoint: str = "s3a://b/ck",
    index: int | None = None,
) -> str:
    """A stream of a topic, as the shim describes it."""
    name = f"{query} " if query else ""
    return json.dumps(
        {
            "handle": handle,
            "thread": f"stream execution thread for {name}[id = id-{run}, runId = {run}]",
            "checkpoint": checkpoint,
            "format": "kafka",
            "api": "v2",
            "options": {"subscribe": topic},
            "index": None if index is None else str(index),
        }
    )


def started(
    governor: Governor,
    query: MadeUpQuery,
    *,
    run: str = "r1",
    name: str = "copy",
    trigger: Trigger | None = None,
) -> None:
    """Have the job start a query."""
    with governor.start_of_query() as register:
        register(run, Started(trigger or Trigger(), True, query, None, name=name))
