"""A checkpoint: its lock, and where the rest of what concerns it is.

The lock is held by the JVM, not by this process: it is the JVM that writes the checkpoint, and when Python is
killed the JVM outlives it for a moment. A lock held by Python would be free while the old batch still commits.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from headgate_contract.codec import decode
from headgate_spark.engine.batch_memory import BatchMemory
from headgate_spark.engine.directory import Directory, LocalDirectory
from headgate_spark.engine.resumption import Resumption, read_resumption
from headgate_spark.engine.side_folder import tolerated, words_of
from headgate_spark.engine.store import NumberedStore
from headgate_spark.engine.topics import ids_in
from headgate_spark.planner.model import HybridMemory

log = structlog.get_logger("headgate")


class CheckpointInUseError(RuntimeError):
    """Another run writes the checkpoint; `by_this_driver`: it is one of this driver's own queries."""

    def __init__(self, message: str, *, by_this_driver: bool = False) -> None:
        super().__init__(message)
        self.by_this_driver = by_this_driver


def side_directory(checkpoint: str) -> str:
    """Return where Headgate keeps what belongs to `checkpoint`: one folder, by whatever link it is reached."""
    root = local_path(checkpoint)
    if root is not None:
        checkpoint = ("file:" if checkpoint.startswith("file:") else "") + os.path.realpath(root)
    return checkpoint.rstrip("/") + ".headgate"


def local_path(location: str) -> Path | None:
    """Return `location` as a path of this machine, or `None` where it is on another file system.

    Hadoop writes a path as it is: `%20`, `#` and `?` are parts of names in it, and mean nothing else.
    """
    path = location.removeprefix("file:")
    return Path("/" + path.lstrip("/")) if path.startswith("/") else None


def is_for_one_run(checkpoint: str) -> bool:
    """Tell whether Spark has made a checkpoint for one run alone: no other can want it."""
    return checkpoint.rstrip("/").rpartition("/")[2].startswith("temporary-")


_OWN: set[Path] = set()
"""Locks that this driver holds. It must not open such a file again: to close it would let go of the lock (POSIX)."""
_OWN_GUARD = threading.Lock()


def acquire_lock(jvm: Any, checkpoint: str, holder: int | None = None) -> CheckpointLock | None:
    """Take the checkpoint for this run. `holder` is the process to stop to have it free, this one if not given.

    Returns `None` where there is nothing to lock: a checkpoint on an object store (there the operator sees to it
    that no second driver is started), one that Spark made for this run alone, or one beside which this driver may not
    write. Raises `CheckpointInUseError` with the holder's pid and host.
    """
    root = local_path(checkpoint)
    if root is None or is_for_one_run(str(root)):
        return None
    path = Path(side_directory(str(root))) / "lock"
    with _OWN_GUARD:
        if path in _OWN:
            raise CheckpointInUseError(
                f"checkpoint {path.parent.with_suffix('')} is in use by another query of this driver; give each of "
                "them one of its own",
                by_this_driver=True,
            )
        _OWN.add(path)
    lock = None
    try:
        lock = _locked(jvm, path, holder or os.getpid())
    except CheckpointInUseError:
        raise
    except Exception as error:  # nothing of it is another run
        log.warning(
            "checkpoint cannot be locked; see that it has one writer",
            checkpoint=checkpoint,
            folder=str(path.parent),
            error=words_of(error),
        )
    finally:
        if lock is None:
            _OWN.discard(path)
    return lock


def _locked(jvm: Any, path: Path, holder: int) -> CheckpointLock:
    """Lock a file. Raises `CheckpointInUseError`, and what the file system raises; nothing stays open then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = jvm.java.io.RandomAccessFile(str(path), "rw")
    try:
        is_ours = opened.getChannel().tryLock() is not None
    except BaseException:
        opened.close()
        raise
    if not is_ours:
        opened.close()
        raise CheckpointInUseError(
            f"checkpoint {path.parent.with_suffix('')} is in use by the run with pid {_holder(path)}; stop that one, "
            "or choose another checkpoint"
        )
    try:
        opened.setLength(0)
        opened.writeBytes(f"{holder} on host {socket.gethostname()}")  # each container has a process 1
    except Exception as error:  # it is locked all the same; another run would not know by whom
        log.debug("the holder of a lock could not be noted", lock=str(path), error=words_of(error))
    return CheckpointLock(opened, path)


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() or "unknown"
    except OSError:
        return "unknown"


class CheckpointLock:
    """Held while one run writes a checkpoint."""

    def __init__(self, opened: Any, path: Path) -> None:
        self._opened = opened
        self._path = path

    def release(self) -> None:
        try:
            self._opened.close()
        finally:
            _OWN.discard(self._path)


def release(lock: CheckpointLock | None, query: str) -> None:
    if lock is not None:
        with tolerated(
            "the lock on a checkpoint was not released", query=query
        ):  # a JVM that is gone has let go
            lock.release()


class Checkpoint:
    """What is known of a checkpoint, and kept beside it, in directories that `open_directory` opens."""

    def __init__(self, location: str, open_directory: Callable[[str], Directory]) -> None:
        self._location = location.rstrip("/")
        side = open_directory(side_directory(location))
        self.hybrid = NumberedStore(side, "hybrid", histories_in)
        """The ends of histories, and which have been read."""
        self.batches = NumberedStore(side, "batches", partial(decode, BatchMemory))
        """What the batches of all runs have taught."""
        self.topics = NumberedStore(side, "topics", ids_in)
        """The ids of the topics that are being read."""
        self._logs = [open_directory(f"{self._location}/{log}") for log in ("offsets", "commits")]

    def resumption(self) -> Resumption:
        """Return where the query takes up again; asked before Spark goes on, or after it has ended.

        Raises what the file system raises.
        """
        return read_resumption(*self._logs)

    def without_jvm(self) -> Checkpoint | None:
        """Return the same for use when the JVM is gone; `None` where this machine alone cannot reach it."""
        root = local_path(self._location)
        return None if root is None else Checkpoint(str(root), lambda path: LocalDirectory(Path(path)))


def histories_in(value: Any) -> HybridMemory:
    """Return what was kept as `value`; members of a later version are ignored. Raises ValueError.

    Not by `decode`: a position is a number of its source's own, which may be larger than every reader of JSON keeps.
    """
    members = value if isinstance(value, dict) else {}
    ends, finished = members.get("ends"), members.get("finished")
    if not isinstance(ends, dict) or not all(
        isinstance(end, dict) and all(type(at) is int for at in end.values()) for end in ends.values()
    ):
        raise ValueError("`ends` has no offsets by source and partition")
    if not isinstance(finished, list) or not all(isinstance(name, str) for name in finished):
        raise ValueError("`finished` is no list of sources")
    return HybridMemory(ends, frozenset(finished))
