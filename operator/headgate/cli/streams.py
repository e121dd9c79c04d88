"""The standard streams, where they may fail: closed by the caller, a reader that is gone, a disk that is full."""

import errno
import io
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

_OF_OUTPUT: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def make_ready() -> None:
    """See to it that whatever is written does not fail for what it is, nor for a stream that is not there.

    What the caller has closed (`<&-`, `>&-`) is empty and leads nowhere, and is not the next file that is opened. A
    character that the terminal's encoding does not have is written by its number. A width of 0 columns, which some
    terminals without a size export, is not known, and Rich would write nothing.
    """
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  for the life of the process
        elif mode == "w" and isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def is_of_output(error: OSError) -> bool:
    """Return whether `error` is of writing to an open stream, and not of a file that has a name."""
    return error.filename is None and error.errno in _OF_OUTPUT


def has_reader(stream: TextIO) -> bool:
    """Return whether what is written to `stream` can still be read.

    A pipe tells a writer that its reader is gone only when something is written, and a query that runs well has
    nothing to say for hours.
    """
    try:
        output = select.poll()
        output.register(stream.fileno(), 0)
        return not any(flags & (select.POLLERR | select.POLLHUP) for _, flags in output.poll(0))
    except (OSError, ValueError):  # a stream in memory has no descriptor
        return True


def let_go(stream: TextIO) -> None:
    """Let what is still to be written to `stream` go nowhere.

    The interpreter flushes its streams when it ends, and one that fails then changes the exit code.
    """
    with suppress(OSError, ValueError):  # a stream in memory has no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
