"""A folder on a file system that fails: by the number of a call, in each way in which one may."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from enum import Enum, auto


class Fault(Enum):
    """What goes wrong in a call."""

    DENIED = auto()
    READ_ONLY = auto()
    FULL = auto()
    TORN = auto()
    """Half of a file is written under a name of its own, and the call fails."""
    LOST = auto()
    """The call is carried out, and its answer is lost."""


_ERRNO = {Fault.DENIED: errno.EACCES, Fault.READ_ONLY: errno.EROFS, Fault.FULL: errno.ENOSPC}


class FaultyDirectory:
    """In memory. `faults` are by the number of the call; `always` goes for all others."""

    def __init__(self, faults: Mapping[int, Fault] | None = None, always: Fault | None = None) -> None:
        self.files: dict[str, str] = {}
        self.faults = dict(faults or {})
        self.always = always
        self.calls = 0

    def __str__(self) -> str:
        return "faulty:/ck.headgate"

    def names(self) -> list[str]:
        self._call(writes=False)
        return list(self.files)

    def read(self, name: str) -> str:
        self._call(writes=False)
        return self.files[name]

    def create(self, name: str, text: str) -> None:
        fault = self._call(writes=True)
        if fault is Fault.TORN:
            self.files[f".{name}.17"] = text[: len(text) // 2]
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = text
        self._answer(fault)

    def delete(self, name: str) -> None:
        fault = self._call(writes=True)
        self.files.pop(name, None)
        self._answer(fault)

    def _call(self, *, writes: bool) -> Fault | None:
        self.calls += 1
        fault = self.faults.get(self.calls, self.always)
        if fault is Fault.DENIED or (writes and fault in _ERRNO):
            raise OSError(_ERRNO[fault], os.strerror(_ERRNO[fault]))  # type: ignore[index]
        return fault

    def _answer(self, fault: Fault | None) -> None:
        if fault is Fault.LOST:
            raise TimeoutError("the answer is lost")
