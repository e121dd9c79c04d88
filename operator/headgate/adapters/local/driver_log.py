"""What the driver printed, read from its log file.

The driver writes the file itself, so that nothing is lost when the loop dies; here it is only read, from the
end for a person who asks why the driver failed, or on and on to mirror it.
"""

import os
import re
from pathlib import Path

_TAIL_BYTES = 64 * 1024

_JAVA_FRAME = re.compile(r"\s+(at [^\s(]+\(.*\)|\.\.\. \d+ (more|common frames omitted))\s*")
"""A line of a JVM's stack trace, of which there may be dozens below the one that says what was wrong."""


class DriverLog:
    """The log of one application's drivers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = path.stat().st_size if path.exists() else 0

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the last lines of the last attempt, without its heading and what a JVM's stack traces list."""
        try:
            with self.path.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _TAIL_BYTES))
                text = file.read().decode("utf-8", errors="replace")
        except OSError:
            return ()
        of_last_attempt = text.rpartition("\n--- attempt ")[2] if "\n--- attempt " in text else text
        told = [line for line in of_last_attempt.splitlines()[1:] if not _JAVA_FRAME.fullmatch(line)]
        return tuple(told[-lines:])

    def news(self) -> str:
        """Return what was printed since the last call; nothing of what was there before the first."""
        try:
            size = self.path.stat().st_size
            if size < self._position:
                self._position = 0
            with self.path.open("rb") as file:
                file.seek(self._position)
                fresh = file.read(size - self._position)
        except OSError:
            return ""
        self._position = size
        return fresh.decode("utf-8", errors="replace")
