"""Recorded observations: one JSON object a line, checked before anything is decided on it.

A recording is written by hand or by a script, and a slip in it (a number in quotes, `pendingRecord`) would
otherwise come out as a verdict on something nobody observed. So whatever is not of the documented form is
refused with its line and field. A member that is `null` or missing is unknown, which is no slip.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from headgate.api.finding import did_you_mean
from headgate.decision.observation import Observation, SourceObservation
from headgate.errors import UsageError

T = TypeVar("T")

_SHOWN = 40
"""Characters of a refused value that are quoted."""


class RecordingError(UsageError):
    """A line of a recording is not of the documented form."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that holds an observation. `attempt` of the observation counts only where `has_attempt`."""

    number: int
    observation: Observation
    has_attempt: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: the file, the line, and the path inside the line's object."""

    file: str
    line: int
    path: str = ""

    def error(self, message: str) -> RecordingError:
        field = f"{self.path}: " if self.path else ""
        return RecordingError(f"{self.file}: line {self.line}: {field}{message}")

    def member(self, name: str) -> Place:
        return Place(self.file, self.line, f"{self.path}.{name}" if self.path else name)


def read_line(raw: bytes, file: str, number: int) -> Line | None:
    """Return the observation of a line, `None` for a blank one; raise RecordingError if it is none."""
    place = Place(file, number)
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise place.error("is not UTF-8 text") from None
    if not text.strip():
        return None
    line = _Object(_parsed(text.rstrip(), place), place)
    line.refuse_others("t", "query", "attempt", "sources", "throughput", "arrivalRate")
    attempt = line.typed("attempt", int)
    if attempt is not None and attempt < 0:
        raise place.member("attempt").error(f"must be at least 0, not {_shown(attempt)}")
    observation = Observation(
        t=_required(line.number("t"), place.member("t")),
        query=_required(line.typed("query", str), place.member("query")),
        attempt=1 if attempt is None else attempt,
        sources={name: _source(source) for name, source in line.objects("sources")},
        throughput=line.number("throughput", at_least_zero=True),
        arrival_rate=line.number("arrivalRate", at_least_zero=True),
    )
    return Line(number, observation, has_attempt=attempt is not None)


def unknown_name(name: str, known: Collection[str], what: str) -> str:
    """Say that there is no such thing, what there is, and which of these may have been meant."""
    names = f"{what} are {', '.join(known)}" if known else f"{what} are none"
    return f"{_shown(name)} is not known; {names}{did_you_mean(name, known)}"


def _source(source: _Object) -> SourceObservation:
    source.refuse_others(
        "watermarkLag", "pendingRecords", "phase", "idle", "query", "finished", "paused", "heldByAlignment"
    )
    return SourceObservation(
        watermark_lag_seconds=source.number("watermarkLag"),
        pending_records=source.number("pendingRecords", at_least_zero=True),
        phase=source.typed("phase", bool),
        idle=source.typed("idle", bool),
        query_value=source.number("query"),
        finished=source.typed("finished", bool),
        paused=source.typed("paused", bool),
        held_by_alignment=source.typed("heldByAlignment", bool),
    )


def _parsed(text: str, place: Place) -> Any:
    def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            twin = next(name for name in names if names.count(name) > 1)
            raise place.error(f"{twin} stands twice in one object")
        return members

    try:
        return json.loads(text, object_pairs_hook=without_twins)
    except json.JSONDecodeError as error:
        raise place.error(f"is not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise place.error("is nested too deeply") from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise place.error("holds a number of more digits than can be read") from None


def _required(value: T | None, place: Place) -> T:
    if value is None:
        raise place.error("is missing")
    return value


_WORDS: Mapping[type, str] = {bool: "true or false", int: "a whole number", str: "a string"}


class _Object:
    """A JSON object whose members are asked for by name and type."""

    def __init__(self, value: Any, place: Place) -> None:
        if not isinstance(value, dict):
            raise place.error(f"must be an object, not {_shown(value)}")
        self._members: Mapping[str, Any] = value
        self._place = place

    def refuse_others(self, *known: str) -> None:
        for name in self._members:
            if name not in known:
                raise self._place.member(name).error(unknown_name(name, known, "fields"))

    def number(self, name: str, *, at_least_zero: bool = False) -> float | None:
        value = self._members.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error(name, "must be a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._error(name, "must be a finite number")
        if at_least_zero and number < 0:
            raise self._error(name, "must be at least 0")
        return number

    def typed(self, name: str, kind: type[T]) -> T | None:
        value: T | None = self._members.get(name)
        if value is not None and type(value) is not kind:
            raise self._error(name, f"must be {_WORDS[kind]}")
        return value

    def objects(self, name: str) -> Iterator[tuple[str, _Object]]:
        value, place = self._members.get(name), self._place.member(name)
        for key, item in _Object({} if value is None else value, place)._members.items():
            yield key, _Object({} if item is None else item, place.member(key))

    def _error(self, name: str, message: str) -> RecordingError:
        return self._place.member(name).error(f"{message}, not {_shown(self._members[name])}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
