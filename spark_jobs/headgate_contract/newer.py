"""What newer Pythons have in their standard library, for all from 3.9 on.

The runtime runs in whatever Python a driver's image has, and the oldest of a Spark that is supported has 3.9. On a
newer one each name here is the standard library's own.
"""

from __future__ import annotations

import re
import sys
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import Any

__all__ = ["UTC", "StrEnum", "dataclass", "moment_in"]

UTC = timezone.utc

if sys.version_info >= (3, 11):
    from enum import StrEnum

    moment_in = datetime.fromisoformat
else:

    class StrEnum(str, Enum):
        """Members are texts, and are written as such."""

        def __str__(self) -> str:
            return str.__str__(self)

        def __format__(self, form: str) -> str:
            return str.__format__(self, form)

        @staticmethod
        def _generate_next_value_(name: str, *_: object) -> str:
            return name.lower()

    def moment_in(text: str) -> datetime:
        """Return the moment that a text of ISO 8601 tells, in any of its forms; 3.10 reads what it writes alone."""
        return _read(text)


if sys.version_info >= (3, 10):
    from dataclasses import dataclass
else:
    from dataclasses import dataclass as _dataclass

    def dataclass(**asked: Any) -> Any:
        """Make a class of fields; it takes more memory than with slots, and fields by their places too."""
        return _dataclass(
            **{name: value for name, value in asked.items() if name not in {"slots", "kw_only"}}
        )


_DATE = r"(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d)|-W(\d\d)(?:-(\d))?|W(\d\d)(\d)?)"
_CLOCK = r"(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?|(\d\d)(?:(\d\d)(?:[.,](\d+))?)?)?"
_DATETIME = re.compile(rf"{_DATE}(?:.{_CLOCK}(?:(Z)|([+-]){_CLOCK})?)?", re.ASCII | re.DOTALL)


def _read(text: str) -> datetime:
    found = _DATETIME.fullmatch(text)
    if found is None:
        raise ValueError(f"Invalid isoformat string: {text!r}")
    groups = found.groups()
    day = _day(*groups[:9])
    hour, minute, second, micros = _clock(*groups[9:16])
    zulu, sign = groups[16:18]
    zone = UTC if zulu else None
    if sign:
        hours, minutes, seconds, parts = _clock(*groups[18:])
        if max(minutes, seconds) > 59:
            raise ValueError(f"Invalid isoformat string: {text!r}")
        ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=parts)
        zone = timezone(-ahead if sign == "-" else ahead)
    return datetime(day.year, day.month, day.day, hour, minute, second, micros, zone)


def _day(year: str, *parts: str | None) -> date:
    month, day, week, weekday = (a or b for a, b in ((parts[i], parts[j]) for i, j in _ALIKE_IN_DATES))
    if week is not None:
        return date.fromisocalendar(int(year), int(week), int(weekday or 1))
    return date(int(year), int(month or 0), int(day or 0))


_ALIKE_IN_DATES = ((0, 2), (1, 3), (4, 6), (5, 7))


def _clock(hour: str | None, *parts: str | None) -> tuple[int, int, int, int]:
    """Return hours, minutes, seconds and microseconds; further digits are left out."""
    minute, second, fraction = (a or b for a, b in zip(parts[:3], parts[3:]))
    return int(hour or 0), int(minute or 0), int(second or 0), int((fraction or "")[:6].ljust(6, "0"))
