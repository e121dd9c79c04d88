"""Seconds, as the loop computes with them, in the forms that a status is written in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.api.duration import format_duration
from headgate.decision import Eta


def moment(unix_time: float) -> datetime:
    """Return a Unix time as a moment in UTC, to the second."""
    return datetime.fromtimestamp(unix_time, UTC).replace(microsecond=0)


def seconds(value: float | None) -> timedelta | None:
    """Return seconds as a duration to the millisecond, never negative; nothing for what is not known."""
    return None if value is None else timedelta(milliseconds=max(0, round(value * 1000)))


def duration_text(value: float) -> str:
    """Return seconds for people: in whole seconds from ten on, `1m30s`."""
    digits = 0 if value >= 10 else 1
    return format_duration(timedelta(seconds=max(0.0, round(value, digits))))


def eta_text(eta: Eta) -> str | None:
    """Return an estimate as a duration in whole seconds, `never`, or nothing."""
    return eta if eta is None or isinstance(eta, str) else format_duration(timedelta(seconds=round(eta)))
