"""Durations as the resource writes them, `250ms`, `5s`, `1h30m`, in its models and its schema.

What a text means is in `headgate_contract.durations`: a job's own options are read by the same rule.
"""

from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from headgate_contract.durations import LONGEST, MAX_LENGTH, PATTERN, nanoseconds, written

ZERO: Final = timedelta(0)


def parse_duration(text: str) -> timedelta:
    """Return the duration that `text` writes, cut to whole microseconds; raise ValueError where it is none."""
    return timedelta(microseconds=nanoseconds(text) // 1000)


def in_seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def format_duration(value: timedelta) -> str:
    """Write `value` (not negative) in its shortest exact form: `1h30m`, `1.5s`, `250ms`, `0s`."""
    return written(value // timedelta(microseconds=1))


def _validate(value: Any) -> Any:
    """Border of pydantic: text to timedelta, everything else refused with a message."""
    if isinstance(value, timedelta):
        return value
    text = value if isinstance(value, str) else str(value)
    try:
        return parse_duration(text)
    except ValueError as error:
        raise PydanticCustomError("duration", "{reason}", {"reason": str(error)}) from None


Duration = Annotated[
    timedelta,
    BeforeValidator(_validate),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": PATTERN,
            "maxLength": MAX_LENGTH,
            "x-kubernetes-validations": [
                {"rule": f"duration(self) <= duration('{LONGEST}')", "message": f"must be at most {LONGEST}"}
            ],
        }
    ),
]
"""A field that holds a duration: text in files and in the cluster, `timedelta` in the model."""
