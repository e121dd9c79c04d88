"""The Kafka sources of one run of a query, by name: what all that ask about their records have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from headgate_spark.event_time import Decoder
from headgate_spark.planner.asked import AskedOfSources


class OneSource(Protocol):
    """What asks about the records of one source."""

    def forget(self) -> None:
        """The records are others than those that were asked about."""

    def close(self) -> None:
        """Nothing more will be asked: end the thread when it has done what it is doing."""


S = TypeVar("S", bound=OneSource)


class SourcesOfRun(AskedOfSources, Generic[S]):
    """One for each source that was opened. Sources that are none of Kafka are not among them."""

    def __init__(self) -> None:
        self._sources: dict[str, S] = {}
        self._decoders: Mapping[str, Decoder] = {}

    def decode_by(self, decoders: Mapping[str, Decoder]) -> None:
        self._decoders = decoders

    def forget(self, source: str) -> None:
        if source in self._sources:
            self._sources[source].forget()

    def close(self) -> None:
        for source in self._sources.values():
            source.close()

    def _reopens(self, source: str) -> None:
        """A source is opened; a name may come to stand for another stream, until the first planning."""
        if source in self._sources:
            self._sources[source].close()
