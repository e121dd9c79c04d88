"""Which rows of the history a streaming join would still hold when the history has been read.

Pure: the batch hands in the newest event times, and replays what lies at or after the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

Micros = int
"""Microseconds: of event time since 1970-01-01 UTC, or of a span."""


@dataclass(frozen=True)
class Horizon:
    """From which event time on the rows of each side are replayed; `None`: all of them."""

    left: Micros | None
    right: Micros | None


@dataclass(frozen=True)
class Bounds:
    """How far the event times of two partners may lie apart, and how late rows of each side may come."""

    earliest: timedelta
    """The least of right minus left; below 0 where the right row may come before the left one."""
    latest: timedelta
    """The most of right minus left."""
    left_delay: timedelta
    right_delay: timedelta


def horizon(newest_left: Micros | None, newest_right: Micros | None, bounds: Bounds) -> Horizon:
    """Return from where on rows can find a partner that comes after the history.

        watermark = min(newest left - left delay, newest right - right delay)
        left  >= watermark - latest       a partner is at most `latest` newer, and newer than the watermark
        right >= watermark + earliest     a partner is at most `-earliest` newer, and newer than the watermark

    This is the state of a stream-stream join as Spark evicts it, with its watermark policy `min`. The newest row of
    each side is always among them, so that the stream begins with the watermark at which the history has ended.
    `None` for a side without rows: its watermark has not been set, so a join would hold everything.
    """
    if newest_left is None or newest_right is None:
        return Horizon(None, None)
    watermark = min(
        _whole_millis(newest_left) - micros(bounds.left_delay),
        _whole_millis(newest_right) - micros(bounds.right_delay),
    )
    return Horizon(
        left=min(newest_left, watermark - micros(bounds.latest)),
        right=min(newest_right, watermark + micros(bounds.earliest)),
    )


def micros(span: timedelta) -> Micros:
    """Return a span in microseconds, exactly."""
    return span // timedelta(microseconds=1)


def _whole_millis(time: Micros) -> Micros:
    """Spark keeps watermarks in milliseconds, rounded down."""
    return time // 1000 * 1000
