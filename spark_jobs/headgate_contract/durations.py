"""Durations as people write them: `250ms`, `5s`, `1h30m`.

The form is the one that CEL's `duration()` takes, so that a rule computes the same number in the API server as here.
Digits are therefore read as Go's `time.ParseDuration` reads them: to whole nanoseconds, cutting what is finer, and
refusing what does not fit 64 bits. A number without a unit is refused: nobody can tell whether 5 means seconds.
"""

from __future__ import annotations

import re
from functools import lru_cache

PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
MAX_LENGTH = 32
LONGEST_HOURS = 2_562_047  # 292 years, in the 64 bits of Go's nanoseconds
LONGEST = f"{LONGEST_HOURS}h"

_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NANOSECONDS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000}
_LARGEST = _NANOSECONDS["h"] * LONGEST_HOURS
_FRACTION_DIGITS = 18  # what Go keeps of a fraction before it would overflow
_EXAMPLES = "write for example 250ms, 5s, 2m or 1h30m"


@lru_cache(maxsize=1024)
def nanoseconds(text: str) -> int:
    """Return the duration that `text` writes, in nanoseconds; raise ValueError where it is none."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"is too long for a duration: {len(text)} characters of at most {MAX_LENGTH}")
    if not _WHOLE.fullmatch(text):
        raise ValueError(_refusal(text))
    total = sum(_part(*match.groups()) for match in _PART.finditer(text))
    if total > _LARGEST:
        raise ValueError(f"{text!r} is too long; it must be at most {LONGEST}")
    return total


def seconds(text: str) -> float:
    """Return the duration that `text` writes, cut to whole microseconds; raise ValueError where it is none."""
    return (nanoseconds(text) // 1000) / 1_000_000


def written(microseconds: int) -> str:
    """Write a duration (not negative) in its shortest exact form: `1h30m`, `1.5s`, `250ms`, `0s`."""
    if microseconds < 0:
        raise ValueError(f"a duration cannot be negative: {microseconds} microseconds")
    if 0 < microseconds < 1_000_000:
        return f"{_decimal(microseconds, 1000)}ms"
    whole, rest = divmod(microseconds, 1_000_000)
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h"] * (hours > 0) + [f"{minutes}m"] * (minutes > 0)
    if whole or rest or not parts:
        parts.append(f"{_decimal(whole * 1_000_000 + rest, 1_000_000)}s")
    return "".join(parts)


def _decimal(count: int, per_unit: int) -> str:
    whole, rest = divmod(count, per_unit)
    width = len(str(per_unit)) - 1
    return f"{whole}.{rest:0{width}d}".rstrip("0") if rest else str(whole)


def _part(whole: str, fraction: str | None, unit: str) -> int:
    size = _NANOSECONDS[unit]
    digits = (fraction or "")[:_FRACTION_DIGITS]
    return int(whole) * size + (int(int(digits) * (size / 10 ** len(digits))) if digits else 0)


def _refusal(text: str) -> str:
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        return f"{text} has no unit; {_EXAMPLES}"
    if text.startswith("-"):
        return f"{text!r} is negative; {_EXAMPLES}"
    return f"{text!r} is not a duration; {_EXAMPLES}"
