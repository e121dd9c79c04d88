"""The JSON of Prometheus' query API, decoded into typed values.

Of the labels of a sample only those that are read become objects. At 160,000 samples a tick this is the
difference between a tenth of a processor and a half.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from headgate.reconcile.ports import Outage, OutageReason


class QueryFailure(Exception):  # noqa: N818  no error of ours: the poller turns it into an `Outage`
    """One query was not answered; `outage` says why in words for a person."""

    def __init__(self, reason: OutageReason, message: str) -> None:
        super().__init__(message)
        self.outage = Outage(reason, message)


class TooMuch(QueryFailure):
    """An answer is larger than is read; `namespace` has the driver with most of it, where that can be told."""

    def __init__(self, message: str, namespace: str | None) -> None:
        super().__init__(OutageReason.MALFORMED, message)
        self.namespace = namespace


LabelsT = TypeVar("LabelsT")
AnyLabels = dict[str, str]


class Labels(msgspec.Struct, gc=False, rename={"name": "__name__"}):
    """The labels by which a sample finds its place; an empty one is not there.

    They stand in the order in which Prometheus writes them: a decoder looks for each behind the one before.
    """

    name: str = ""
    cause: str = ""
    endpoint: str = ""
    instance: str = ""
    job: str = ""
    kind: str = ""
    lane: str = ""
    member: str = ""
    namespace: str = ""
    partition: str = ""
    pod: str = ""
    query: str = ""
    read_limit: str = ""
    reason: str = ""
    source: str = ""
    split: str = ""
    user: str = ""
    version: str = ""
    voter: str = ""

    def get(self, name: str) -> str | None:
        """Return the text of a label; `None` of one that is not read."""
        return getattr(self, name, None)


class Sample(msgspec.Struct, Generic[LabelsT], gc=False):
    """One element of an instant vector."""

    metric: LabelsT
    value: tuple[float, str] | None = None
    """Unix time of the evaluation, and the value as text; none for a histogram."""

    @property
    def number(self) -> float:
        """The value; NaN for what is no number."""
        try:
            return math.nan if self.value is None else float(self.value[1])
        except ValueError:
            return math.nan


@dataclass(frozen=True, slots=True)
class Vector(Generic[LabelsT]):
    """An instant vector; a scalar is one sample without labels."""

    samples: list[Sample[LabelsT]]
    warnings: tuple[str, ...] = ()
    """What Prometheus, or whoever stands in its place, says of an answer that may not be complete."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Success(msgspec.Struct):
    status: str
    data: _Data
    warnings: tuple[str, ...] = ()


class _Error(msgspec.Struct, rename="camel"):
    status: str
    error_type: str
    error: str


_SUCCESS = msgspec.json.Decoder(_Success)
_ERROR = msgspec.json.Decoder(_Error)
_NO_ANSWER = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises of a body that is none; the last of one whose lists are nested without an end."""
_SCALAR = msgspec.json.Decoder(tuple[float, str])


class Decoder(ABC, Generic[LabelsT]):
    """Decodes answers."""

    def decode(self, body: bytes | bytearray) -> Vector[LabelsT]:
        """Return the vector; raises QueryFailure when the body is none."""
        try:
            answer = _SUCCESS.decode(body)
            if answer.data.result_type == "vector":
                return Vector(self._samples(answer.data.result), answer.warnings)
            if answer.data.result_type == "scalar":
                scalar = Sample(self._labels(b"{}"), _SCALAR.decode(answer.data.result))
                return Vector([scalar], answer.warnings)
        except _NO_ANSWER as problem:
            raise QueryFailure(
                OutageReason.MALFORMED, f"is not an answer of Prometheus: {problem}"
            ) from problem
        kind = {"matrix": "a range vector"}.get(answer.data.result_type, f"a {answer.data.result_type}")
        raise QueryFailure(OutageReason.QUERY_FAILED, f"returns {kind}, not an instant vector or a scalar")

    @abstractmethod
    def _samples(self, result: msgspec.Raw) -> list[Sample[LabelsT]]:
        """Return the elements of a vector; raises msgspec.DecodeError where it is none."""

    @abstractmethod
    def _labels(self, text: bytes) -> LabelsT:
        """Return the labels of one series from their JSON."""


class VectorDecoder(Decoder[LabelsT]):
    """Decodes answers whose samples have labels of one type."""

    def __init__(self, labels: type[LabelsT]) -> None:
        self._one = msgspec.json.Decoder(labels)
        self._all = msgspec.json.Decoder(list[Sample[labels]])  # type: ignore[valid-type]

    def _samples(self, result: msgspec.Raw) -> list[Sample[LabelsT]]:
        return cast("list[Sample[LabelsT]]", self._all.decode(result))

    def _labels(self, text: bytes) -> LabelsT:
        return self._one.decode(text)


class _Series(msgspec.Struct, gc=False):
    """A sample whose labels are text yet."""

    metric: msgspec.Raw
    value: tuple[float, str] | None = None


_SERIES = msgspec.json.Decoder(list[_Series])

FORGOTTEN_SECONDS = 300.0
"""How long a series is remembered that does not come again, at least; at most twice as long."""
SPARE = 1000
"""Series that are remembered beside two for each of the last answer: a driver may bring others with each scrape."""


class SeriesDecoder(Decoder[LabelsT]):
    """Decodes answers that bring the same series again and again, and reads the labels of each once.

    A server writes the labels of a series the same way each time, and that text is what it is known by here. Another
    spelling costs a reading and changes nothing. Used by one thread at a time.
    """

    def __init__(
        self, labels: Callable[[bytes], LabelsT], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = labels
        self._clock = clock
        self._since = clock()
        self._came: dict[bytes, LabelsT] = {}
        """Since then."""
        self._came_before: dict[bytes, LabelsT] = {}
        """In a time of the same length before."""

    @property
    def remembered(self) -> int:
        return len(self._came.keys() | self._came_before.keys())

    def _samples(self, result: msgspec.Raw) -> list[Sample[LabelsT]]:
        series = _SERIES.decode(result)
        if (now := self._clock()) >= self._since + FORGOTTEN_SECONDS:
            self._came, self._came_before, self._since = {}, self._came, now
        if len(self._came) + len(self._came_before) > 2 * len(series) + SPARE:
            self._came, self._came_before = {}, {}
        return [Sample(self._labels(bytes(one.metric)), one.value) for one in series]

    def _labels(self, text: bytes) -> LabelsT:
        labels = self._came.get(text)
        if labels is None:
            labels = self._came_before.get(text)
            labels = self._came[text] = self._read(text) if labels is None else labels
        return labels


def error_of(body: bytes | bytearray) -> tuple[str, str] | None:
    """Return type and text of the error that a body tells; `None` when it tells none."""
    try:
        error = _ERROR.decode(body)
    except _NO_ANSWER:
        return None
    return error.error_type, error.error
