"""Event times of Kafka sources: the timestamps of their records, or what a column of their values says.

The planner asks under a run's lock, in the trigger of its query, and may not wait for a broker that is slow or gone.
So each source has a thread that asks; the planner waits for it within a budget, and otherwise says that event times
are not known, which holds the source. An answer that comes late is kept for the same question, which comes again at
the next trigger. A member of a group is connected when Spark opens it, before the first planning.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTimeError
from typing import Any, Protocol, TypeVar

import structlog

from headgate_contract import EventTimeControl
from headgate_spark.kafka.lookups import JvmLookups, JvmRecords
from headgate_spark.kafka.payload import reader_of
from headgate_spark.kafka.payload_times import PayloadTimes
from headgate_spark.kafka.record_times import Answers, Asked, RecordTimes
from headgate_spark.planner.event_times import (
    DEFAULT_MAX_FUTURE,
    EventTimesUnknownError,
    Found,
    Latest,
    Millis,
    Sampled,
    Split,
)

log = structlog.get_logger("headgate")

T = TypeVar("T")

BUDGET_SECONDS = 2.0
"""How long one planning waits for answers, all together: less than half of what the shim grants a call (5 s)."""


class Times(Protocol):
    """Tells the event times of one source; may raise anything. `max_future` is in milliseconds."""

    max_future: Millis

    def first_later(self, asked: Asked) -> Answers:
        """Return for each partition the first record later than asked for; `None`: there is none up to now."""

    def latest(self, partitions: Collection[str]) -> Answers:
        """Return for each partition the record with the largest event time up to now; `None`: there is none."""

    @property
    def sampled(self) -> Sampled:
        """What was seen of its records."""

    def close(self) -> None:
        """Give everything back."""


Connect = Callable[[str, Mapping[str, str], EventTimeControl | None], Times]
"""Makes what tells the event times of a source: from its name, its options, and where in the value they are."""

Question = tuple[str, Mapping[str, int]]
"""Which method of `Times`, and for which partitions what is asked."""


class KafkaEventTimes:
    """The Kafka sources of one run of a query; implements the planner's `EventTimes`."""

    def __init__(self, connect: Connect, budget_seconds: float = BUDGET_SECONDS) -> None:
        """`connect` is called on the source's own thread."""
        self._connect = connect
        self._budget = budget_seconds
        self._sources: dict[str, _Asking] = {}
        self._deadline = 0.0
        """Monotonic time at which the present planning stops to wait."""

    def open(self, source: str, options: Mapping[str, str]) -> None:
        """Take note of a source. Nothing is connected before it is asked for."""
        self._sources[source] = _Asking(source, lambda where: self._connect(source, options, where))

    def prepare(
        self, source: str, max_future_seconds: float, event_time: EventTimeControl | None = None
    ) -> None:
        """A source is to be asked about soon; returns at once. Event times beyond now and that do not count.

        `event_time` is where in the values of its records they are; `None`: they are the records' timestamps.
        """
        if source in self._sources:
            self._sources[source].prepare(round(max_future_seconds * 1000), event_time)

    def problem(self, source: str) -> str | None:
        """Return why a source cannot be aligned: it is none of Kafka, or nothing could read its event times."""
        if source not in self._sources:
            return f"source {source} tells no event times; only Kafka sources do. Take alignment out of it"
        return self._sources[source].problem

    def sampled(self, source: str) -> Sampled | None:
        """Return what was seen of the records of a source; `None`: nothing yet."""
        return self._sources[source].sampled if source in self._sources else None

    def close(self) -> None:
        """The run has ended."""
        for source in self._sources.values():
            source.close()

    def begin(self) -> None:
        """A planning begins: its questions wait for their answers within one budget."""
        self._deadline = time.monotonic() + self._budget

    def first_later(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        """Return for each split the first record later than asked for; `None`: there is none up to now."""
        answers = {source: found for source, (found, _) in self._ask("first_later", asked).items()}
        return {split: answers[split.source].get(split.split) for split in asked}

    def latest(self, ends: Mapping[Split, int]) -> dict[Split, Latest]:
        """Return for each split how late its records are; of an answer that came late, up to where they were then."""
        answers, told = self._ask("latest", ends), {}
        for split in ends:
            found, asked = answers[split.source]
            told[split] = Latest(found.get(split.split), asked[split.split])
        return told

    def _ask(self, what: str, asked: Mapping[Split, int]) -> dict[str, tuple[Answers, Mapping[str, int]]]:
        """Return the answers by source, and what had been asked."""
        by_source: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for (source, split), at in asked.items():
            by_source[source][split] = at
        questions: dict[str, Question] = {
            source: (what, of_source) for source, of_source in by_source.items()
        }
        for source, question in questions.items():
            self._sources[source].ask(question)
        return {
            source: self._sources[source].answer(question, self._deadline)
            for source, question in questions.items()
        }


def by_clients_of(jvm: Any) -> KafkaEventTimes:
    """Return the event times of a run, asked by the Kafka client that Spark's connector has brought into the JVM."""

    def connect(source: str, options: Mapping[str, str], where: EventTimeControl | None) -> Times:
        lookups = JvmLookups(jvm, options)
        if where is None:
            return RecordTimes(source, lookups, lambda: JvmRecords(jvm, options, lookups))
        records = JvmRecords(jvm, options, lookups, values=True)
        return PayloadTimes(source, lookups, records, reader_of(source, where))

    return KafkaEventTimes(connect)


class _Asking:
    """The thread that asks for one source, one question after the other."""

    def __init__(self, source: str, connect: Callable[[EventTimeControl | None], Times]) -> None:
        self._source = source
        self._connect = connect
        self._max_future = DEFAULT_MAX_FUTURE
        self._event_time: EventTimeControl | None = None
        self._times: Times | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._question: Question | None = None
        self._answer: Future[Answers] | None = None
        self._is_new = True
        """Whether it was asked in this planning: that there is no record may be wrong by the next one."""
        self._failing = False

    def prepare(self, max_future: Millis, event_time: EventTimeControl | None) -> None:
        """Connect; take how far ahead of now an event time may be, and where it is."""
        self._max_future = max_future
        if event_time != self._event_time:
            self._event_time, self._answer = event_time, None
            self._submit(self._disconnect)
        if self.problem is None:
            self._submit(self._connected)

    @property
    def problem(self) -> str | None:
        """Why its event times cannot be read, as they are declared."""
        try:
            if self._event_time is not None:
                reader_of(self._source, self._event_time)
        except ValueError as error:
            return str(error)
        return None

    @property
    def sampled(self) -> Sampled | None:
        """What was seen of its records; `None`: nothing yet."""
        return None if self._times is None else self._times.sampled

    def ask(self, question: Question) -> None:
        """Begin to ask, unless the same was asked before or an earlier question is not answered yet."""
        self._is_new = self._answer is None or (self._answer.done() and not self._has_asked(question))
        if self._is_new:
            self._question = question
            self._answer = self._submit(lambda: self._answered(*question))

    def answer(self, question: Question, deadline: float) -> tuple[Answers, Mapping[str, int]]:
        """Return the answer, and what had been asked: of the latest records that may have been a while ago.

        Raises `EventTimesUnknownError` if it has failed, or is not there by `deadline`.
        """
        if self._answer is None or self._question is None or not self._has_asked(question):
            raise self._unknown("Kafka has not answered an earlier question yet")
        try:
            answers = self._answer.result(max(0.0, deadline - time.monotonic()))
        except NotInTimeError:
            raise self._unknown("Kafka has not answered yet") from None
        except Exception as error:  # a client fails in many ways
            self._answer = None
            raise self._unknown(f"Kafka says: {error}") from error
        self._answer = None
        what, asked = self._question
        if what == "first_later" and not self._is_new and None in answers.values():
            raise self._unknown("Kafka's answer came too late to say that there is no record")
        self._failing = False
        return answers, asked

    def close(self) -> None:
        """End the thread when it has done what it is doing."""
        if self._thread is not None:
            self._thread.submit(self._disconnect)
            self._thread.shutdown(wait=False)
            self._thread = None

    def _has_asked(self, question: Question) -> bool:
        """Tell whether the answer to what was asked last is one to this question."""
        if self._question is None or self._question[0] != question[0]:
            return False
        if question[0] == "latest":
            return question[1].keys() <= self._question[1].keys()
        return self._question == question

    def _unknown(self, reason: str) -> EventTimesUnknownError:
        problem = f"source {self._source}: event times are not known, so it waits: {reason}"
        if not self._failing:
            log.warning("event times are not known; the source waits", source=self._source, reason=reason)
        self._failing = True
        return EventTimesUnknownError(problem)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-event-times-{self._source}")
        return self._thread.submit(work)

    # On the thread ---------------------------------------------------------------------------

    def _answered(self, what: str, asked: Mapping[str, Millis]) -> Answers:
        times = self._connected()
        return times.first_later(asked) if what == "first_later" else times.latest(asked.keys())

    def _connected(self) -> Times:
        if self._times is None:
            self._times = self._connect(self._event_time)
        self._times.max_future = self._max_future
        return self._times

    def _disconnect(self) -> None:
        if self._times is not None:
            self._times.close()
        self._times = None
