"""A directory on the file system of a checkpoint: any one through Spark's Hadoop, this machine's without."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

GONE = re.compile(r"FileNotFoundException|NoSuchFileException|No such file")
"""In the words of a file system that has no such file or folder."""


class Directory(Protocol):
    """Files of text by name; `str()` of it is where it is. Each method raises what the file system raises."""

    def names(self) -> list[str]:
        """Return the names of what is in it; none where it does not exist."""

    def read(self, name: str) -> str:
        """Return the text of a file. Raises ValueError where it cannot be the text that was written."""

    def create(self, name: str, text: str) -> None:
        """Write a new file, whole or not at all; raises OSError where it is there already.

        When this returns, a power cut cannot lose it.
        """

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""


Files = Callable[[Any], Any]
"""Returns the file system of a path, both as Hadoop has them."""
SHARED_BY_SERVERS = frozenset({"hdfs", "viewfs"})
"""File systems that may be read from a server which is behind; `msync` has it catch up, and needs one call."""


class HadoopDirectory:
    """A directory of any file system that Spark knows."""

    def __init__(self, jvm: Any, files: Files, uri: str) -> None:
        self._jvm = jvm
        self._uri = uri
        self._files = files

    @cached_property
    def _fs(self) -> Any:
        """Its file system, which may take long to be reached, and fail."""
        return self._files(self._path())

    @cached_property
    def _local(self) -> Path | None:
        """Where it is on this machine; `None`: elsewhere. Hadoop's local file system is the one that asks no disk to
        keep what was closed."""
        if self._fs.getUri().getScheme() != "file":
            return None
        return Path(self._path().toUri().getPath())

    def __str__(self) -> str:
        return self._uri

    def names(self) -> list[str]:
        if self._fs.getUri().getScheme() in SHARED_BY_SERVERS:
            with suppress(Exception):  # not every one has that, and none needs it but those with observers
                self._fs.msync()
        try:
            found = self._fs.listStatus(self._path())
        except Exception as error:
            if GONE.search(str(error)) is None:
                raise
            return []
        return [str(status.getPath().getName()) for status in found]

    def read(self, name: str) -> str:
        stream = self._fs.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        except Exception as error:
            if "ChecksumException" in str(error):
                raise ValueError(f"it does not fit its checksum, .{name}.crc") from None
            raise
        finally:
            stream.close()

    def create(self, name: str, text: str) -> None:
        """A rename puts the file in its place, and must not replace another: HDFS does that in one step.

        Hadoop's local file system replaces all the same, so the name is looked up first, and the checkpoint's
        lock keeps others off. On an object store a rename is a copy: a reader sees the whole file or none,
        but of two runs that write at the same moment both may succeed. There nothing here keeps a second
        writer off; whoever starts drivers has to.
        """
        unfinished = self._path(f".{name}.{os.getpid()}")
        is_there = False
        try:
            with closing(self._fs.create(unfinished, True)) as stream:
                stream.write(text.encode())
            if self._local is not None:
                _keep(self._local / unfinished.getName())
            is_there = not self._fs.exists(self._path(name)) and self._fs.rename(unfinished, self._path(name))
            if self._local is not None:
                _keep_names(self._local)
        finally:
            if not is_there:
                with suppress(Exception):  # of what it has failed is told
                    self._fs.delete(unfinished, False)
        if not is_there:
            raise OSError(f"cannot write {self._path(name).toString()}: is it written by another run?")

    def delete(self, name: str) -> None:
        """Hadoop's local file system answers alike where there is none and where it may not be removed.

        So it is asked whether the file is there still, and all of it twice: another driver may write it anew
        in between.
        """
        path = self._path(name)
        if not any(self._fs.delete(path, False) or not self._fs.exists(path) for _ in range(2)):
            raise PermissionError(f"Operation not permitted: {path.toString()} cannot be deleted")

    def _path(self, name: str = "") -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._uri}/{name}" if name else self._uri)


class LocalDirectory:
    """A directory of this machine, for when the JVM is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def names(self) -> list[str]:
        return [entry.name for entry in self._path.iterdir()] if self._path.is_dir() else []

    def read(self, name: str) -> str:
        return (self._path / name).read_text(encoding="utf-8")

    def create(self, name: str, text: str) -> None:
        unfinished = self._path / f".{name}.{os.getpid()}"
        try:
            unfinished.write_text(text, encoding="utf-8")
            _keep(unfinished)
            os.link(unfinished, self._path / name)
            _keep_names(self._path)
        finally:
            unfinished.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)


def _keep(file: Path) -> None:
    """Have the disk keep what a file holds. Raises what the file system raises."""
    opened = os.open(file, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _keep_names(folder: Path) -> None:
    """Have the disk keep the names in a folder, where its file system can be asked to: some of networks cannot."""
    with suppress(OSError):
        _keep(folder)
