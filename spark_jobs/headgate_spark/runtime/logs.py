"""The runtime's log: one line each on standard error, beside Spark's own."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO

import structlog


class _Lossy:
    """A stream that loses a line which cannot be written, for want of space or because it was closed.

    The thread that stops the queries logs what it does, and must not die of a full disk.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.flush()


def configure() -> None:
    """Write times, level, sentence and key-values; standard output stays the job's."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(
                key_order=["timestamp", "level", "event"], repr_native_str=False
            ),
        ],
        logger_factory=structlog.PrintLoggerFactory(_Lossy(sys.stderr)),  # type: ignore[arg-type]  # no more of it is used
        cache_logger_on_first_use=True,
    )
