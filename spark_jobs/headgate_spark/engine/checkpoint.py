"""What Headgate keeps for a checkpoint: a lock, and which historical parts have been read.

Both lie *beside* the checkpoint, in `<checkpoint>.headgate/`, so that nothing of Headgate is in the checkpoint
itself and the job can go on without Headgate at any time.

The lock is held by the JVM, not by this process: it is the JVM that writes the checkpoint, and when Python is
killed the JVM outlives it for a moment. A lock held by Python would be free while the old batch still commits.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlparse

import structlog

log = structlog.get_logger("headgate")


class CheckpointInUseError(RuntimeError):
    """Another run writes the checkpoint."""


class CheckpointLock(Protocol):
    """Held while one run writes a checkpoint."""

    def release(self) -> None:
        """Let the next one in."""


class HybridStore(Protocol):
    """Keeps one small JSON value per checkpoint."""

    def load(self) -> Any | None:
        """Return the value saved last, or `None`."""

    def save(self, value: Any) -> None:
        """Keep `value`; when this returns, a crash cannot lose it."""


def side_directory(checkpoint: str) -> str:
    """Return where Headgate keeps what belongs to `checkpoint`."""
    return checkpoint.rstrip("/") + ".headgate"


def local_path(uri: str) -> Path | None:
    """Return `uri` as a path of this machine, or `None` where it is on another file system."""
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        return Path(unquote(parsed.path))
    return None


def acquire_lock(jvm: Any, checkpoint: str) -> CheckpointLock | None:
    """Take the checkpoint for this run.

    Returns `None` where there is nothing to lock: a checkpoint on an object store (there the operator sees to it
    that no second driver is started) or one that Spark made for this run alone.
    Raises `CheckpointInUseError` with the holder's pid.
    """
    root = local_path(checkpoint)
    if root is None or root.name.startswith("temporary-"):
        return None
    path = Path(side_directory(str(root))) / "lock"
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


class HadoopHybridStore:
    """Numbered files beside the checkpoint, on whatever file system it is.

    Each value is a new file that is renamed into place: a rename that must not replace is atomic on every file
    system, a replacing one is not.
    """

    def __init__(self, jvm: Any, hadoop_conf: Any, checkpoint: str) -> None:
        self._jvm = jvm
        self._directory = side_directory(checkpoint)
        self._fs = self._path("").getFileSystem(hadoop_conf)

    def load(self) -> Any | None:
        """Return the value of the highest number, or `None`."""
        numbers = self._numbers()
        return json.loads(self._read(self._path(f"/hybrid.{max(numbers)}.json"))) if numbers else None

    def save(self, value: Any) -> None:
        """Write `value` under the next number. Raises what the file system raises."""
        number = max(self._numbers(), default=0) + 1
        unfinished = self._path(f"/.hybrid.{number}.{os.getpid()}")
        stream = self._fs.create(unfinished, True)
        try:
            stream.write(json.dumps(value).encode())
        finally:
            stream.close()
        final = self._path(f"/hybrid.{number}.json")
        if not self._fs.rename(unfinished, final):
            raise OSError(f"cannot write {final.toString()}: is it written by another run?")

    def _numbers(self) -> list[int]:
        if not self._fs.exists(self._path("")):
            return []
        names = [status.getPath().getName() for status in self._fs.listStatus(self._path(""))]
        parts = [name.split(".") for name in names if name.startswith("hybrid.") and name.endswith(".json")]
        return [int(part[1]) for part in parts if len(part) == 3 and part[1].isdigit()]

    def _read(self, path: Any) -> str:
        stream = self._fs.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._directory + name)
