"""The thread that asks Kafka for the event times of one source, one question after the other.

The planner asks under a run's lock, in the trigger of its query, and may not wait for a broker that is slow or gone.
So it waits within a budget, and what has not come by then holds the source. The question stays under way, and its
answer is handed to the next planning (`begin`), whatever that one asks: it is still true. So a source moves on behind
a broker whose every answer takes longer than a planning waits. Of each kind one question is under way at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import field
from enum import Enum, auto
from typing import NamedTuple, TypeVar, Union

import structlog

from headgate_contract import EventTimeControl
from headgate_contract.newer import dataclass
from headgate_spark.kafka.failures import in_words
from headgate_spark.kafka.payload import Reader
from headgate_spark.kafka.payload_times import PayloadTimes
from headgate_spark.kafka.record_times import Answers, RecordTimes
from headgate_spark.planner.event_times import DEFAULT_MAX_FUTURE, EventTimesUnknownError, Millis, Sampled

log = structlog.get_logger("headgate")

T = TypeVar("T")

NOT_YET = "Kafka has not answered yet"
REMEDY = (
    "See that its brokers answer and that the client may describe the topics, or take alignment out of it"
)
REFRESH_SECONDS = 10.0
"""How often that is refreshed which is known of a source beside answers, while it is asked."""
OF_PAYLOADS = ", or eventTime.column to go by the timestamps of its records"


Times = Union[RecordTimes, PayloadTimes]
"""Tells the event times of one source; may raise anything."""


class Kind(Enum):
    """Which method of `Times` is asked."""

    FIRST_LATER = auto()
    LATEST = auto()


class Answer(NamedTuple):
    """What was asked of which partitions (an event time, or how far their logs went then), and the answers."""

    asked: Mapping[str, int]
    answers: Answers


@dataclass(slots=True)
class _Question:
    """The question of one kind that is under way, or whose answer nobody has taken."""

    answer: Future[Answer] | None = None
    is_late: bool = False
    """The planning that asked it is over: that there is no record may be wrong by now."""
    is_ahead: bool = False
    """The planning that it was asked for has not begun."""
    untaken: list[Answer] = field(default_factory=list)
    """Answers to earlier ones."""

    @property
    def is_answered(self) -> bool:
        """Whether it could be taken without waiting."""
        return self.answer is not None and self.answer.done()


class SourceEventTimes:
    """Asks for one source."""

    def __init__(
        self,
        source: str,
        read: Callable[[EventTimeControl], Reader],
        connect: Callable[[Reader | None], Times],
    ) -> None:
        """`read` makes what finds event times in values, or raises `ValueError` with what to do; `connect` makes what
        tells them, from that, or from timestamps (`None`)."""
        self._source = source
        self._read = read
        self._connect = connect
        self._max_future = DEFAULT_MAX_FUTURE
        self._event_time: EventTimeControl | None = None
        self._times: Times | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._questions: dict[Kind, _Question] = {kind: _Question() for kind in Kind}
        self._has_looked_ahead = False
        self._refresh_due = 0.0
        """Monotonic time."""
        self._said: str | None = None
        """What Kafka failed with last, since it last answered."""
        self._warned_of: set[bool] = set()
        """Whether it was logged that Kafka is silent (`False`), and that it failed (`True`), since it was in time."""

    def prepare(self, max_future: Millis, event_time: EventTimeControl | None) -> None:
        """Connect, and look how late the records are; take how far ahead of now an event time may be, and where."""
        self._max_future = max_future
        if event_time != self._event_time:
            self._event_time, self._has_looked_ahead = event_time, False
            self.forget()
        if self.problem is not None:
            return
        self._submit(self._connected)
        if not self._has_looked_ahead and self._questions[Kind.LATEST].answer is None:
            self._questions[Kind.LATEST].answer = self._submit(self._look_ahead)
            self._refresh()
        self._has_looked_ahead = True

    def forget(self) -> None:
        """Forget what was told, and what is under way: it is not true any more. Returns at once."""
        self._questions = {kind: _Question() for kind in Kind}
        self._submit(self._disconnect)

    @property
    def problem(self) -> str | None:
        """Why its event times cannot be read, as they are declared."""
        try:
            if self._event_time is not None:
                self._read(self._event_time)
        except ValueError as error:
            return str(error)
        return None

    @property
    def sampled(self) -> Sampled | None:
        """What was seen of its records; `None`: nothing yet."""
        times = self._times  # the thread may be about to disconnect
        return None if times is None else times.sampled

    def begin(self) -> dict[Kind, list[Answer]]:
        """A planning begins; return the answers that came after the one that had asked was over, the oldest first."""
        late = {}
        for kind, question in self._questions.items():
            self._take_in(question)
            question.is_late, question.is_ahead = not question.is_ahead, False
            late[kind], question.untaken = question.untaken, []
        return late

    def ask(self, kind: Kind, asked: Mapping[str, int], *, is_ahead: bool = False) -> None:
        """Begin to ask, unless an earlier question of the kind is not answered yet.

        `is_ahead`: the planning that will ask it has not begun. An answer that is there by then was of no use to the
        planning before, where nothing had come, and tells too little for this one.
        """
        question = self._questions[kind]
        if is_ahead:
            self._take_in(question)
        if question.answer is None:
            self._put(kind, asked)
            question.is_ahead = is_ahead

    def answer(self, kind: Kind, asked: Mapping[str, int], deadline: float) -> Answer:
        """Return an answer to what is asked: of the latest records it may have been given a while ago.

        Raises `EventTimesUnknownError` if it has failed, or is not there by `deadline` (monotonic).
        """
        question = self._questions[kind]
        answer = self._result(question, deadline)
        if not _is_answer(kind, answer, asked, is_late=question.is_late):
            question.untaken.append(answer)
            self._put(kind, asked)
            answer = self._result(question, deadline)
        return answer

    def keep(self, kind: Kind, answer: Answer) -> None:
        """Keep an answer that was taken and could not be used, for the next planning."""
        self._questions[kind].untaken.append(answer)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.submit(self._disconnect)
            self._thread.shutdown(wait=False)
            self._thread = None

    def _put(self, kind: Kind, asked: Mapping[str, int]) -> None:
        def answered() -> Answer:
            times, is_later = self._connected(), kind is Kind.FIRST_LATER
            return Answer(asked, times.first_later(asked) if is_later else times.latest(asked.keys()))

        question = self._questions[kind]
        question.answer = self._submit(answered)
        question.is_late = False
        if time.monotonic() >= self._refresh_due:
            self._refresh()

    def _refresh(self) -> None:
        """Have it refreshed behind the question that was just asked."""
        self._refresh_due = time.monotonic() + REFRESH_SECONDS
        self._submit(self._refreshed)

    def _take_in(self, question: _Question) -> None:
        """Keep what is answered for the next planning, and let another question be asked."""
        if question.is_answered:
            with suppress(EventTimesUnknownError):
                question.untaken.append(self._result(question, deadline=0.0))

    def _result(self, question: _Question, deadline: float) -> Answer:
        """Return the answer to what is under way, which may be an earlier question."""
        left = max(0.0, deadline - time.monotonic())
        if question.answer is None or not wait((question.answer,), left).done:
            raise self._unknown()
        try:
            answer = question.answer.result()
        except Exception as error:  # a client fails in many ways, of which some are timeouts
            question.answer, self._said = None, in_words(error)
            raise self._unknown() from error
        question.answer, self._said = None, None
        if not question.is_late:
            self._warned_of.clear()
        return answer

    def _unknown(self) -> EventTimesUnknownError:
        reason = NOT_YET if self._said is None else f"Kafka says: {self._said}"
        remedy = REMEDY if self._event_time is None else REMEDY + OF_PAYLOADS
        has_failed = self._said is not None
        if has_failed not in self._warned_of:
            self._warned_of.add(has_failed)
            message = f"event times are not known; the source waits. {remedy}"
            log.warning(message, source=self._source, reason=reason)
        problem = f"source {self._source}: event times are not known, so it waits: {reason}. {remedy}"
        return EventTimesUnknownError(problem)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-event-times-{self._source}")
        return self._thread.submit(work)

    # On the thread ---------------------------------------------------------------------------

    def _look_ahead(self) -> Answer:
        """Ask before anybody does: the first answers of a client take seconds. What fails will be asked again."""
        try:
            times = self._connected()
            ends = times.ends()
            return Answer(ends, times.latest(ends.keys()) if ends else {})
        except Exception as error:
            log.debug("the first look at event times failed", source=self._source, error=str(error))
            return Answer({}, {})

    def _refreshed(self) -> None:
        if self._times is not None:
            self._times.refresh()

    def _connected(self) -> Times:
        if self._times is None:
            where = self._event_time
            self._times = self._connect(None if where is None else self._read(where))
        self._times.max_future = self._max_future
        return self._times

    def _disconnect(self) -> None:
        if self._times is not None:
            self._times.close()
        self._times = None


def _is_answer(kind: Kind, answer: Answer, asked: Mapping[str, int], *, is_late: bool) -> bool:
    """Tell whether an answer is one to what is asked now."""
    if kind is Kind.LATEST:
        return asked.keys() <= answer.asked.keys() and (
            is_late or all(_reaches(answer, partition, end) for partition, end in asked.items())
        )
    if not asked.items() <= answer.asked.items():
        return False
    return not (is_late and any(answer.answers.get(partition) is None for partition in asked))


def _reaches(answer: Answer, partition: str, end: int) -> bool:
    """Tell whether an answer on the latest records holds for those before `end`, which came while it was asked."""
    found = answer.answers.get(partition)
    return answer.asked[partition] == end or (found is not None and found.offset + 1 >= end)
