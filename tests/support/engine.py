"""What a governor needs around it, made up: checkpoints, locks, and what the shim tells of queries and streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from headgate_spark.engine.checkpoint import CheckpointInUseError
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.queries import Started
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.run import QueryRun
from headgate_spark.engine.services import Services


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


def services_with(**services: Any) -> Services:
    """What queries are given from outside: made-up checkpoints, no locks, nobody who measures, or what is said."""
    least = {
        "acquire_lock": lambda _: None,
        "open_checkpoint": lambda _: MadeUpCheckpoint(),
        "observer": Unmeasured(),
    }
    return Services(**{**least, **services})


def a_run(name: str, checkpoint: Any, *, started: Started | None = None, **services: Any) -> QueryRun:
    """A run with no driver around it, of a query that has begun; it does not look at what earlier runs left."""
    given = services_with(open_checkpoint=lambda _: checkpoint, **services)
    return QueryRun("33-44", name, CheckpointState(name, checkpoint), given, started or Started())


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
    return json.dumps(
        {
            "handle": handle,
            "query": {"id": f"id-{run}", "runId": run, "name": query or None},
            "checkpoint": checkpoint,
            "format": "kafka",
            "api": "v2",
            "options": {"subscribe": topic},
            "index": None if index is None else str(index),
        }
    )


def begins(
    governor: Governor,
    *,
    run: str = "r1",
    name: str = "copy",
    trigger: str = "processingTime",
    interval_seconds: float = 0,
    plan: str = "WriteToMicroBatchDataSource",
    sources: Sequence[int] | None = None,
    **more: Any,
) -> None:
    """Have the governor know of a query, as the shim does before it tells of its first stream."""
    members = {
        "id": f"id-{run}",
        "runId": run,
        "name": name or None,
        "trigger": trigger,
        "intervalMillis": round(interval_seconds * 1000) if trigger == "processingTime" else None,
        "plan": plan,
        "sources": sources,
    }
    governor.begins(json.dumps(members | more))


def noticed(governor: Governor, *, run: str = "r1", name: str = "copy", unplanned: str | None = None) -> None:
    """Have the governor know that Spark has started a query."""
    members = {"id": f"id-{run}", "runId": run, "name": name or None, "unplanned": unplanned}
    governor.noticed(json.dumps(members))


def failure(reason: str, causes: str = "") -> str:
    """What a query has failed of, as the shim tells it."""
    exception = f"org.apache.spark.sql.streaming.StreamingQueryException: {reason}"
    return json.dumps({"failure": exception, "causes": causes})
