"""The event time inside the value of a record: what `eventTime.column` and `eventTime.format` say.

    value -> decoded -> what `column` leads to -> milliseconds since 1970

JSON is decoded here; Avro, Protobuf and whatever else by a function that the job registers
(`headgate_spark.event_time`). Moments come in many forms, and the resource does not name one: texts are those of
ISO 8601, and a number tells its unit by its size, since the ranges do not overlap between 1973 and 5138.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Union

from headgate_contract import EventTimeControl
from headgate_contract.document import PAYLOAD_FORMATS
from headgate_contract.newer import UTC, dataclass, moment_in
from headgate_contract.settings.table import DECODER, OPTION
from headgate_spark import event_time
from headgate_spark.event_time import Decoder
from headgate_spark.planner.event_times import Millis

JSON = PAYLOAD_FORMATS[0]

Path = tuple[Union[str, int], ...]

SMALLEST_NUMBER = 10**8
"""Taken for seconds it is in March 1973, as 10^11 is for milliseconds, where these begin, and so on."""
SMALLEST_TIME: Millis = 1000 * SMALLEST_NUMBER
"""The same in milliseconds, as timestamps of records are; a moment of today in seconds is below it: January 1970."""
SHORTEST_NUMBER = 9
"""Digits of a text that is a number; one of eight is a date (`20131125`)."""
MOST_TOLD = 120
"""Characters of a reason: a decoder may tell a whole record."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI = timedelta(milliseconds=1)
_PER_SECOND = ((10**11, 1), (10**14, 10**3), (10**17, 10**6))
"""Numbers below the first of a pair are moments in so many parts of a second."""
_NANOS = 10**9
_SEGMENT = re.compile(r"""\.([\w-]+)|\[(-?\d+)\]|\['([^'\\]+)'\]|\["([^"\\]+)"\]""")


class NoEventTimeError(Exception):
    """A value has no event time that can be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Finds the event time in a value."""

    column: str
    """As it is declared, for messages."""
    path: Path
    decode: Decoder

    def moment(self, value: bytes) -> object:
        """Return what stands where the event time should be. Raises `NoEventTimeError`."""
        try:
            decoded = self.decode(value)
        except Exception as error:  # decoders are the job's, and fail in many ways
            raise NoEventTimeError(
                shortened(f"it cannot be decoded ({type(error).__name__}: {error})")
            ) from None
        try:
            return follow(self.path, decoded)
        except LookupError:
            raise NoEventTimeError("it has no such member") from None

    def event_time(self, value: bytes) -> Millis:
        """Return the event time in a value. Raises `NoEventTimeError`."""
        moment = self.moment(value)
        try:
            return millis_of(moment)
        except (ValueError, OverflowError):
            raise NoEventTimeError(
                shortened(f"it has {moment!r} there, which is no moment since 1970")
            ) from None


def reader_of(source: str, where: EventTimeControl, named: Decoder | None = None) -> Reader:
    """Return what finds the event time in a value. Raises `ValueError`, with what to do, where nothing could.

    `named` is the decoder that the query names for the source; else it is the one that the job has registered.
    """
    try:
        path = steps_of(where.column)
    except ValueError as error:
        raise ValueError(f"source {source}: eventTime.column: {error}; correct it") from None
    form = where.format or JSON
    decode = named or event_time.registered(source) or (json.loads if form == JSON else None)
    if decode is None:
        raise ValueError(
            f"source {source} has its event time in {where.column} of a payload in {form}, for which the job has "
            f'registered no decoder; call headgate_spark.event_time.register("{source}", decoder) before the query '
            f"starts, name one in the option {OPTION}{DECODER}, or leave out eventTime.column to align it by the "
            "timestamps of its records"
        )
    return Reader(where.column, path, decode)


def steps_of(text: str) -> Path:
    """Return the steps of a path to one member of a decoded record. Raises `ValueError` where it is none.

    They are the singular queries of JSONPath (RFC 9535, section 2.3.5.1): names and indexes, so that there is one
    answer at most, as in `$.pickup.time`, `$['pick-up'].stops[0]` or `$.stops[-1].at`. What has no `$` is the name
    of a member: `pickup_time`.
    """
    if not text.startswith("$"):
        return (text,)
    steps: list[str | int] = []
    at = 1
    while found := _SEGMENT.match(text, at):
        name, index, *quoted = found.groups()
        steps.append(int(index) if index else name or quoted[0] or quoted[1])
        at = found.end()
    if at < len(text) or not steps:
        raise ValueError(f"{text} is no path of names and indexes, such as $.pickup.time or $['stops'][0]")
    return tuple(steps)


def follow(path: Path, document: object) -> object:
    """Return what is at the end of a path. Raises `LookupError` where there is nothing."""
    for step in path:
        document = _member(step, document)
    return document


def _member(step: str | int, document: object) -> object:
    if isinstance(step, str) and isinstance(document, Mapping):
        return document[step]
    if isinstance(step, int) and isinstance(document, Sequence) and not isinstance(document, (str, bytes)):
        return document[step]
    raise LookupError(step)


def millis_of(moment: object) -> Millis:
    """Return a moment in milliseconds since 1970; without an offset it is one of UTC.

    Raises `ValueError`, `OverflowError` where it is beyond all moments.
    """
    if isinstance(moment, (int, float)) and not isinstance(moment, bool):
        millis = _of_number(moment)
    elif isinstance(moment, str):
        text = moment.strip()
        is_number = text.isdecimal() and len(text) >= SHORTEST_NUMBER
        millis = _of_number(int(text)) if is_number else _of_datetime(moment_in(text))
    elif isinstance(moment, datetime):
        millis = _of_datetime(moment)
    else:
        raise ValueError  # noqa: TRY004 -- no moment, as an empty text is none
    if millis < 0:
        raise ValueError
    return millis


def is_small(moment: object) -> bool:
    """Tell whether a moment is a number that is too small to tell its unit by its size, and was taken for seconds."""
    return isinstance(moment, (int, float)) and not isinstance(moment, bool) and moment < SMALLEST_NUMBER


def shortened(reason: str) -> str:
    return reason if len(reason) <= MOST_TOLD else reason[:MOST_TOLD] + "…"


def _of_number(number: float) -> Millis:
    if not math.isfinite(number):
        raise ValueError
    parts = next((parts for below, parts in _PER_SECOND if abs(number) < below), _NANOS)
    return math.floor(number * 1000 // parts)


def _of_datetime(moment: datetime) -> Millis:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (known - _EPOCH) // _MILLI
