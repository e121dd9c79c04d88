"""A checkpoint: its lock, and where the rest of what concerns it is.

The lock is held by the JVM, not by this process: it is the JVM that writes the checkpoint, and when Python is
killed the JVM outlives it for a moment. A lock held by Python would be free while the old batch still commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import structlog

from headgate_spark.engine.directory import Directory, HadoopDirectory, LocalDirectory
from headgate_spark.engine.histories import memory_in
from headgate_spark.engine.resumption import Resumption, read_resumption
from headgate_spark.engine.store import NumberedStore, Store

log = structlog.get_logger("headgate")


class CheckpointInUseError(RuntimeError):
    """Another run writes the checkpoint."""


class CheckpointLock(Protocol):
    """Held while one run writes a checkpoint."""

    def release(self) -> None:
        """Let the next one in."""


class Checkpoint(Protocol):
    """What is known of a checkpoint, and kept beside it."""

    @property
    def hybrid(self) -> Store:
        """The ends of histories, and which have been read."""

    @property
    def batches(self) -> Store:
        """What the batches of all runs have taught."""

    @property
    def topics(self) -> Store:
        """The ids of the topics that are being read."""

    def resumption(self) -> Resumption:
        """Return where the query takes up again; asked before Spark goes on, or after it has ended."""

    def without_jvm(self) -> Checkpoint | None:
        """Return the same for use when the JVM is gone; `None` where this machine alone cannot reach it."""


def side_directory(checkpoint: str) -> str:
    """Return where Headgate keeps what belongs to `checkpoint`."""
    return checkpoint.rstrip("/") + ".headgate"


def local_path(location: str) -> Path | None:
    """Return `location` as a path of this machine, or `None` where it is on another file system.

    Hadoop writes a path as it is: `%20`, `#` and `?` are parts of names in it, and mean nothing else.
    """
    path = location.removeprefix("file:")
    return Path("/" + path.lstrip("/")) if path.startswith("/") else None


def acquire_lock(jvm: Any, checkpoint: str) -> CheckpointLock | None:
    """Take the checkpoint for this run.

    Returns `None` where there is nothing to lock: a checkpoint on an object store (there the operator sees to it
    that no second driver is started) or one that Spark made for this run alone.
    Raises `CheckpointInUseError` with the holder's pid.
    """
    root = local_path(checkpoint)
    if root is None or root.name.startswith("temporary-"):
        return None
    path = Path(side_directory(str(root.resolve()))) / "lock"  # one file, by whatever links the two runs come
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.warning(
            "checkpoint cannot be locked; see that it has one writer", checkpoint=checkpoint, error=str(error)
        )
        return None
    opened = jvm.java.io.RandomAccessFile(str(path), "rw")
    if not _is_locked_by(opened):
        opened.close()
        holder = path.read_text(encoding="utf-8").strip() or "unknown"
        raise CheckpointInUseError(
            f"checkpoint {root} is in use by the run with pid {holder}; stop that one, or choose another checkpoint"
        )
    opened.setLength(0)
    opened.writeBytes(str(os.getpid()))
    return _JvmLock(opened)


def _is_locked_by(opened: Any) -> bool:
    """Return whether the file could be locked. Java answers null if another process has it, and raises if we have."""
    try:
        return opened.getChannel().tryLock() is not None
    except Exception as error:
        if "OverlappingFileLockException" in str(error):
            return False
        raise


class _JvmLock:
    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def release(self) -> None:
        self._opened.close()


def release(lock: CheckpointLock | None, query: str) -> None:
    """Let go of the checkpoint of a query."""
    if lock is None:
        return
    try:
        lock.release()
    except Exception as error:  # a JVM that is gone has let go of it
        log.debug("the lock on a checkpoint was not released", query=query, error=str(error))


class FileCheckpoint:
    """A checkpoint in directories that `open_directory` opens."""

    def __init__(self, location: str, open_directory: Callable[[str], Directory]) -> None:
        self._location = location.rstrip("/")
        side = open_directory(side_directory(location))
        self.hybrid: Store = NumberedStore(side, "hybrid", memory_in)
        self.batches: Store = NumberedStore(side, "batches")
        self.topics: Store = NumberedStore(side, "topics")
        self._logs = [open_directory(f"{self._location}/{log}") for log in ("offsets", "commits")]

    def resumption(self) -> Resumption:
        """Return where the query takes up again. Raises what the file system raises."""
        return read_resumption(*self._logs)

    def without_jvm(self) -> Checkpoint | None:
        """Return the same for use when the JVM is gone; `None` where this machine alone cannot reach it."""
        root = local_path(self._location)
        return None if root is None else FileCheckpoint(str(root), lambda path: LocalDirectory(Path(path)))


class HadoopCheckpoint(FileCheckpoint):
    """A checkpoint on whatever file system it is."""

    def __init__(self, jvm: Any, hadoop_conf: Any, location: str) -> None:
        super().__init__(location, lambda uri: HadoopDirectory(jvm, hadoop_conf, uri))
