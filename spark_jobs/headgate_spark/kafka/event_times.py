"""Event times of Kafka sources, by the timestamps of their records.

The planner asks under a run's lock, in the trigger of its query, and may not wait for a broker that is slow or gone.
So each source has a thread that asks; the planner waits for it within a budget, and otherwise says that event times
are not known, which holds the source. An answer that comes late is kept for the same question, which comes again at
the next trigger. The thread starts when Spark opens the source, so that it is connected before the first planning.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTimeError
from typing import Protocol

import structlog

from headgate_spark.kafka.lookups import LATEST_RECORD
from headgate_spark.planner.event_times import EventTimesUnknownError, Found, Millis, Split

log = structlog.get_logger("headgate")

BUDGET_SECONDS = 1.0
"""How long a planning waits for an answer: a fifth of what the shim grants the whole call."""

Asked = Mapping[str, Millis]
Answers = Mapping[str, Found | None]


class Lookups(Protocol):
    """The partitions of one source (`lookups.JvmLookups`)."""

    def find(self, asked: Asked) -> Answers:
        """Return for each partition the first record not earlier than asked for; may raise anything."""

    def close(self) -> None:
        """Give everything back."""


Connect = Callable[[Mapping[str, str]], Lookups]


class KafkaEventTimes:
    """The Kafka sources of one run of a query; implements the planner's `EventTimes`."""

    def __init__(self, connect: Connect, budget_seconds: float = BUDGET_SECONDS) -> None:
        """`connect` makes a client from the options of a source; called on the source's own thread."""
        self._connect = connect
        self._budget = budget_seconds
        self._sources: dict[str, _Asking] = {}

    def open(self, source: str, options: Mapping[str, str]) -> None:
        """Get ready for a source; returns at once."""
        self._sources[source] = _Asking(source, lambda: self._connect(options))

    def problem(self, source: str) -> str | None:
        """Return why a source cannot be aligned: it is none of Kafka."""
        return (
            None
            if source in self._sources
            else f"source {source} tells no event times; only Kafka sources do"
        )

    def close(self) -> None:
        """The run has ended."""
        for source in self._sources.values():
            source.close()

    def first_later(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        """Return for each split the first record later than asked for; `None`: there is none up to now."""
        return self._find({split: time + 1 for split, time in asked.items()})

    def latest(self, splits: Collection[Split]) -> dict[Split, Found | None]:
        """Return for each split the record with the largest timestamp up to now; `None`: there is none."""
        return self._find(dict.fromkeys(splits, LATEST_RECORD))

    def _find(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        by_source: defaultdict[str, dict[str, Millis]] = defaultdict(dict)
        for (source, split), at in asked.items():
            by_source[source][split] = at
        deadline = time.monotonic() + self._budget
        for source, of_source in by_source.items():
            self._sources[source].ask(of_source)
        answers = {s: self._sources[s].answer(of_source, deadline) for s, of_source in by_source.items()}
        return {split: answers[split.source].get(split.split) for split in asked}


class _Asking:
    """The thread that asks for one source, one question after the other."""

    def __init__(self, source: str, connect: Callable[[], Lookups]) -> None:
        self._source = source
        self._connect = connect
        self._lookups: Lookups | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-event-times-{source}")
        self._thread.submit(self._connected)
        self._question: Asked | None = None
        self._answer: Future[Answers] | None = None
        self._failing = False

    def ask(self, asked: Asked) -> None:
        """Begin to ask, unless the same was asked before or an earlier question is not answered yet."""
        if self._answer is not None and (self._question == asked or not self._answer.done()):
            return
        self._question = asked
        self._answer = self._thread.submit(lambda: self._connected().find(asked))

    def answer(self, asked: Asked, deadline: float) -> Answers:
        """Return the answer. Raises `EventTimesUnknownError` if it has failed, or is not there by `deadline`."""
        if self._answer is None or self._question != asked:
            raise self._unknown("Kafka has not answered an earlier question yet")
        try:
            answers = self._answer.result(max(0.0, deadline - time.monotonic()))
        except NotInTimeError:
            raise self._unknown("Kafka has not answered yet") from None
        except Exception as error:  # a client fails in many ways
            self._answer = None
            raise self._unknown(f"Kafka says: {error}") from error
        self._answer, self._failing = None, False
        return answers

    def close(self) -> None:
        """End the thread when it has done what it is doing."""
        self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=False)

    def _unknown(self, reason: str) -> EventTimesUnknownError:
        problem = f"source {self._source}: event times are not known, so it waits: {reason}"
        if not self._failing:
            log.warning("event times are not known; the source waits", source=self._source, reason=reason)
        self._failing = True
        return EventTimesUnknownError(problem)

    def _connected(self) -> Lookups:
        if self._lookups is None:
            self._lookups = self._connect()
        return self._lookups

    def _disconnect(self) -> None:
        if self._lookups is not None:
            self._lookups.close()
