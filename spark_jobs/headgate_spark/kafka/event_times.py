"""Event times of Kafka sources: the timestamps of their records, or what a column of their values says.

Here a run's sources are told apart: each is asked on a thread of its own (`asking`), all of them at once, and a
planning waits for the answers within one budget. A question costs a request to the broker, seconds when the client
is cold, so a member of a group is connected and asked once when Spark opens it, before the first planning.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Optional

from headgate_contract import EventTimeControl
from headgate_spark.kafka.asking import Answer, Kind, SourceEventTimes, Times
from headgate_spark.kafka.lookups import JvmLookups, JvmReads
from headgate_spark.kafka.payload import Reader, reader_of
from headgate_spark.kafka.payload_times import PayloadTimes
from headgate_spark.kafka.record_times import RecordTimes
from headgate_spark.kafka.sources_of_run import SourcesOfRun
from headgate_spark.planner.event_times import (
    EventTimes,
    EventTimesUnknownError,
    Found,
    LateAnswers,
    Later,
    Latest,
    Millis,
    Partition,
    Sampled,
)

BUDGET_SECONDS = 2.0
"""How long one planning waits for answers, all together: less than half of what the shim grants a call (5 s)."""

Connect = Callable[[str, Mapping[str, str], Optional[Reader]], Times]
"""Makes what tells the event times of a source: from its name, its options, and what finds them in a value;
`None`: they are the timestamps of records."""


class KafkaEventTimes(SourcesOfRun[SourceEventTimes], EventTimes):
    """The Kafka sources of one run of a query; implements the planner's `EventTimes`."""

    def __init__(self, connect: Connect, budget_seconds: float = BUDGET_SECONDS) -> None:
        """`connect` is called on the source's own thread."""
        super().__init__()
        self._connect = connect
        self._budget = budget_seconds
        self._deadline = 0.0
        """Monotonic time at which the present planning stops to wait."""

    def open(self, source: str, options: Mapping[str, str]) -> None:
        self._reopens(source)
        self._sources[source] = SourceEventTimes(
            source,
            lambda where: reader_of(source, where, self._decoders.get(source)),
            lambda reader: self._connect(source, options, reader),
        )

    def prepare(
        self, source: str, max_future_seconds: float, event_time: EventTimeControl | None = None
    ) -> None:
        if source in self._sources:
            self._sources[source].prepare(round(max_future_seconds * 1000), event_time)

    def problem(self, source: str) -> str | None:
        """Return why a source cannot be aligned: it is none of Kafka, or nothing could read its event times."""
        if source not in self._sources:
            return super().problem(source)
        return self._sources[source].problem

    def sampled(self, source: str) -> Sampled | None:
        return self._sources[source].sampled if source in self._sources else None

    def expect(self, ends: Mapping[Partition, int]) -> None:
        for source, of_source in _by_source(ends).items():
            self._sources[source].ask(Kind.LATEST, of_source, is_ahead=True)

    def begin(self) -> LateAnswers:
        self._deadline = time.monotonic() + self._budget
        later: list[Later] = []
        latest: dict[Partition, Latest] = {}
        for source, asking in self._sources.items():
            late = asking.begin()
            later += (
                Later(Partition(source, partition), than, found)  # that there was none may be wrong by now
                for told in late[Kind.FIRST_LATER]
                for partition, than in told.asked.items()
                if (found := told.answers.get(partition)) is not None
            )
            latest |= {
                Partition(source, p): _latest(told, p) for told in late[Kind.LATEST] for p in told.asked
            }
        return LateAnswers(later, latest)

    def first_later(self, asked: Mapping[Partition, Millis]) -> dict[Partition, Found | None]:
        answers = self._ask(Kind.FIRST_LATER, asked)
        return {partition: answers[partition.source].answers.get(partition.name) for partition in asked}

    def latest(self, ends: Mapping[Partition, int]) -> dict[Partition, Latest]:
        """Return for each partition how late its records are; of a late answer, up to what there was then."""
        answers = self._ask(Kind.LATEST, ends)
        return {partition: _latest(answers[partition.source], partition.name) for partition in ends}

    def _ask(self, kind: Kind, asked: Mapping[Partition, int]) -> dict[str, Answer]:
        by_source = _by_source(asked)
        for source, of_source in by_source.items():
            self._sources[source].ask(kind, of_source)
        answers: dict[str, Answer] = {}
        try:
            for source, of_source in by_source.items():
                answers[source] = self._sources[source].answer(kind, of_source, self._deadline)
        except EventTimesUnknownError:
            for source, answer in answers.items():
                self._sources[source].keep(kind, answer)
            raise
        return answers


def _by_source(asked: Mapping[Partition, int]) -> Mapping[str, Mapping[str, int]]:
    by_source: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (source, partition), at in asked.items():
        by_source[source][partition] = at
    return by_source


def _latest(answer: Answer, partition: str) -> Latest:
    """Return how late the records of a partition are, up to where it was asked for, or to the latest record if that
    is behind it: its log went on before the answer came."""
    found, asked = answer.answers.get(partition), answer.asked[partition]
    return Latest(found, asked if found is None else max(asked, found.offset + 1))


def by_clients_of(jvm: Any) -> KafkaEventTimes:
    """Return the event times of a run, asked by the Kafka client that Spark's connector has brought into the JVM."""

    def connect(source: str, options: Mapping[str, str], reader: Reader | None) -> Times:
        lookups = JvmLookups(jvm, options)
        if reader is None:
            return RecordTimes(source, lookups, lambda: JvmReads(jvm, options))
        records = JvmReads(jvm, options, values=True)
        return PayloadTimes(source, lookups, records, reader)

    return KafkaEventTimes(connect)
