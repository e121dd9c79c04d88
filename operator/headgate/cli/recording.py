"""Recorded observations: one JSON object a line, checked before anything is decided on it.

A recording is written by hand or by a script, and a slip in it (a number in quotes, `pendingRecord`) would
otherwise come out as a verdict on something nobody observed. So whatever is not of the documented form is
refused with its line and field. A member that is `null` or missing is unknown, which is no slip.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from headgate.decision.observation import Observation, SourceObservation
from headgate.errors import UsageError
from headgate_contract.nearest import did_you_mean

Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)] | None
Amount: TypeAlias = Annotated[float, Field(allow_inf_nan=False, ge=0)] | None

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


class _Recorded(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel)


class _Source(_Recorded):
    """The members of a source, by the names of `SourceObservation`."""

    watermark_lag_seconds: Number = Field(None, alias="watermarkLag")
    pending_records: Amount = None
    phase: bool | None = None
    idle: bool | None = None
    query_value: Number = Field(None, alias="query")
    finished: bool | None = None
    paused: bool | None = None
    held_by_alignment: bool | None = None


class _Observation(_Recorded):
    t: Annotated[float, Field(allow_inf_nan=False)]
    query: str
    attempt: Annotated[int, Field(ge=0)] | None = None
    sources: dict[str, _Source | None] | None = None
    throughput: Amount = None
    arrival_rate: Amount = None


@dataclass(frozen=True, slots=True)
class LinePosition:
    """Where a line stands."""

    file: str
    line: int

    def error(self, message: str, *path: str | int) -> RecordingError:
        """Return what is wrong with the line, or with the member at a path inside its object."""
        field = f"{'.'.join(map(str, path))}: " if path else ""
        return RecordingError(f"{self.file}: line {self.line}: {field}{message}")

    def unknown(self, name: str, known: Collection[str], what: str, *path: str | int) -> RecordingError:
        """Return that there is no such thing, what there is, and which of these may have been meant."""
        return self.error(_unknown_name(name, known, what), *path)


def read_line(raw: bytes, file: str, number: int) -> Line | None:
    """Return the observation of a line, `None` for a blank one; raise RecordingError if it is none."""
    place = LinePosition(file, number)
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise place.error("is not UTF-8 text") from None
    if not text.strip():
        return None
    try:
        line = _Observation.model_validate(_parsed(text.rstrip(), place))
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        raise place.error(_message(details), *details["loc"]) from None
    sources = {name: SourceObservation(**dict(source or ())) for name, source in (line.sources or {}).items()}
    attempt = 1 if line.attempt is None else line.attempt
    observation = Observation(
        t=line.t,
        query=line.query,
        attempt=attempt,
        sources=sources,
        throughput=line.throughput,
        arrival_rate=line.arrival_rate,
    )
    return Line(number, observation, has_attempt=line.attempt is not None)


def _unknown_name(name: str, known: Collection[str], what: str) -> str:
    names = f"{what} are {', '.join(known)}" if known else f"{what} are none"
    return f"{_shown(name)} is not known; {names}{did_you_mean(name, known)}"


def _parsed(text: str, place: LinePosition) -> Any:
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


_WORDS: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than_equal": "at least 0",
    "int_type": "a whole number",
    "string_type": "a string",
}


def _message(details: ErrorDetails) -> str:
    kind, location, value = details["type"], details["loc"], details["input"]
    if kind == "extra_forbidden":
        model = _Observation if len(location) == 1 else _Source
        fields = [field.alias or name for name, field in model.model_fields.items()]
        return _unknown_name(str(location[-1]), fields, "fields")
    if kind == "missing" or value is None:
        return "is missing"
    if kind == "float_type" and type(value) is int:  # larger than any float
        kind = "finite_number"
    return f"must be {_WORDS.get(kind, 'an object')}, not {_shown(value)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
