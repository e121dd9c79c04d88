"""The runtime's log: one line each on standard error, beside Spark's own."""

from __future__ import annotations

import sys

import structlog


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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
