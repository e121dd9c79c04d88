"""What the driver printed, read from its log file.

The driver writes the file itself, so that nothing is lost when the loop dies; here it is only read, from the
end for a person who asks why the driver failed, or on and on to mirror it.
"""

from __future__ import annotations

import os
from pathlib import Path

_TAIL_BYTES = 64 * 1024


class DriverLog:
    """The log of one application's drivers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = path.stat().st_size if path.exists() else 0

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the last lines of the last attempt, without its heading."""
        try:
            with self.path.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _TAIL_BYTES))
                text = file.read().decode("utf-8", errors="replace")
        except OSError:
            return ()
        of_last_attempt = text.rpartition("\n--- attempt ")[2] if "\n--- attempt " in text else text
        return tuple(of_last_attempt.splitlines()[1:][-lines:])

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
