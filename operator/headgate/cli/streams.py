"""Standard output and standard error, where they may fail: a reader that is gone, a disk that is full."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

_OF_OUTPUT: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def open_those_closed() -> None:
    """Let output go nowhere that the caller has closed (`>&-`), instead of into the next file that is opened."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  for the life of the process


def is_of_output(error: OSError) -> bool:
    """Return whether `error` is of writing to an open stream, and not of a file that has a name."""
    return error.filename is None and error.errno in _OF_OUTPUT


def let_go(stream: TextIO) -> None:
    """Let what is still to be written to `stream` go nowhere.

    The interpreter flushes its streams when it ends, and one that fails then changes the exit code.
    """
    with suppress(OSError, ValueError):  # a stream in memory has no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
