"""Seconds and numbers of records, as the loop computes with them, in the forms that a status is written in."""

from datetime import UTC, datetime, timedelta
from typing import Final

from headgate.api.duration import format_duration, parse_duration
from headgate.decision.estimate import Eta
from headgate_contract.durations import LONGEST


def moment(unix_time: float) -> datetime:
    """Return a Unix time as a moment in UTC, to the second; the nearest that a calendar has."""
    return datetime.fromtimestamp(min(max(unix_time, _FIRST), _LAST), UTC).replace(microsecond=0)


_FIRST, _LAST = (one.replace(tzinfo=UTC).timestamp() for one in (datetime.min, datetime(9999, 12, 31)))


def seconds(value: float | None) -> timedelta | None:
    """Return seconds as a duration to the millisecond, never negative, nor longer than one can be.

    Nothing for what is not known.
    """
    return None if value is None else timedelta(milliseconds=round(min(max(0.0, value), _LONGEST) * 1000))


def measured(value: float | None) -> timedelta | None:
    """Return measured seconds as exactly as people read them: in one unit or two, `1h2m`, `3m20s`, `4.2s`, `440ms`.

    Never negative, nor longer than a duration can be; nothing for what is not known.
    """
    if value is None:
        return None
    value = min(max(0.0, value), _LONGEST)
    step = next((step for below, step in _STEPS if value < below), _LONGEST_STEP)
    return round(value / step) * timedelta(seconds=step)


_STEPS = ((1.0, 0.001), (10.0, 0.1), (3600.0, 1.0))
"""Below so many seconds, a time is told in steps of so many."""
_LONGEST_STEP = 60.0
_LONGEST = parse_duration(LONGEST).total_seconds()


def duration_text(value: float) -> str:
    """Return measured seconds for people, as exactly as `measured` has them."""
    return format_duration(measured(value) or timedelta(0))


def eta_text(eta: Eta) -> str | None:
    """Return an estimate as a duration, at most to the second, `never`, or nothing."""
    return eta if eta is None or isinstance(eta, str) else duration_text(round(eta))


LARGEST: Final = 1e30
"""More than any log holds. A whole number of hundreds of digits, in a status of somebody else, is no float."""


def amount_text(value: float) -> str:
    """Write a number of records: `950`, `12.3k`, `4.05M`."""
    value = min(value, LARGEST)
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}" if value % 1 else f"{value:.0f}"


def rate_text(value: float) -> str:
    """Write records per second: `68k/s`."""
    return f"{amount_text(value)}/s"
