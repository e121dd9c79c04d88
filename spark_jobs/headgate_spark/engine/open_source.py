"""A stream that Spark has opened, and what is known of the log that it reads.

A log may change under its reader (`changed_logs`, `topics`): here each of these ways is asked about, at each look at
what the source has.
"""

from __future__ import annotations

from dataclasses import field

import structlog

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.engine import protocol
from headgate_spark.engine.changed_logs import Absence, Beginnings, Retention, Retreat
from headgate_spark.engine.failures import out_of_reach
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.topics import Topics
from headgate_spark.planner.model import (
    Answer,
    Fail,
    GoLive,
    Hold,
    Position,
    ReadLimit,
    Source,
    TakeAll,
    TakeBytes,
    TakeLimit,
    TakeNothing,
    TakeUpTo,
    Wait,
)

log = structlog.get_logger("headgate")

NAMED = 5
"""Partitions that a log line names."""

_UNITS = {ReadLimit.ROWS: "rows", ReadLimit.FILES: "files"}
_NO_LIMIT = 2**31 - 1


@dataclass(slots=True, eq=False)
class OpenSource:
    """A stream that Spark has opened, and what it was last asked. Positions are counted as the planner does."""

    descriptor: Descriptor
    source: Source
    beginnings: Beginnings | None = None
    """Of partitions that appear while it runs, where they can be looked up."""
    topics: Topics | None = None
    """Where it has some, and their ids can be looked up."""
    retention: Retention | None = None
    """Where that can be looked up."""
    retreat: Retreat = field(default_factory=Retreat)
    absence: Absence = field(default_factory=Absence)
    out_of_reach: str | None = None
    """Why it cannot be asked what it has, and what to do; `None`: it can, as far as is known."""
    thrown: str | None = None
    """What its query fails of: the exception and its causes, a line each; `None`: it has thrown nothing."""
    latest: str | None = None
    """The latest offset that it told last, its own JSON."""
    surveyed: Position | None = None
    """Up to where it may be planned by that; `None`: not known, or not settled (`look`)."""
    _start: Position | None = None
    _counted: tuple[str, Position] | None = None
    """The offset that was counted last, and its position: where a batch has read all there is, the next starts."""
    _is_unmatched: bool = False
    """No topic matched its pattern when it was last asked."""
    _has_changed: bool = False
    """It goes on in another log (`take_change`)."""

    @property
    def name(self) -> str:
        """The name under which a document speaks of it."""
        return self.source.name

    # Where it is -----------------------------------------------------------------------------------

    def position(self, offset: str | None) -> Position | None:
        """Return `offset` as the planner counts, or `None` where it cannot be counted. Raises `ValueError`."""
        form = self.descriptor.offset_format
        if form is None or offset is None:
            return None
        if self._counted is None or self._counted[0] != offset:
            self._counted = offset, form.position(offset)
        return self._counted[1]

    def readable(self, offset: str | None) -> Position | None:
        """Return where an offset in the checkpoint is; a damaged one is unknown: Spark's own error tells of it."""
        try:
            return self.position(offset)
        except (ValueError, RecursionError):
            return None

    def starts_at(self, offset: str | None) -> None:
        """Spark plans the next batch from `offset`."""
        self._start = self.position(offset)

    @property
    def start(self) -> Position | None:
        """Where the next batch starts, new partitions at their beginning included as far as that is known."""
        return None if self._start is None else self._completed(self._start)

    def _completed(self, start: Position) -> Position:
        return start if self.beginnings is None else self.beginnings.completed(start)

    # What it has -----------------------------------------------------------------------------------

    def look(self, query: str, offset: str | None, now: float, deadline: float, *, is_final: bool) -> None:
        """It has told its latest offset: find out up to where it may be planned (`surveyed`).

        Nothing may be planned while it is not known where a new partition begins, or whether one that is not listed
        is gone for good. This may wait until `deadline` (`time.monotonic`). `is_final`: it is not asked again.
        """
        subscription = self.descriptor.subscription
        has_pattern = subscription is not None and subscription.pattern is not None
        is_unmatched = has_pattern and self._start == {} and not self.position(offset)  # Kafka was asked
        self._note_match(query, is_none=is_unmatched, is_final=is_final)
        self.latest = None if is_unmatched and not is_final else offset
        latest = self.position(self.latest)
        if self.descriptor.format == "kafka":
            self.retreat.look(self._start, latest, now)
        if self.topics is not None and latest is None:
            self.topics.lost_sight()
        elif self.topics is not None and latest is not None and self._start is not None:
            self.topics.look(self._start, latest, now, deadline)
        if self.descriptor.format == "kafka" and not is_final and self._waits_for_absent(latest, now):
            self.surveyed = None
            return
        is_settled = (
            latest is None
            or self._start is None
            or self.beginnings is None
            or self.beginnings.are_settled(self._start, latest, deadline)
        )
        self.surveyed = latest if is_settled else None

    def _waits_for_absent(self, latest: Position | None, now: float) -> bool:
        before = self.absence.partitions
        waits = self.absence.waits(self._start, latest, now)
        if waits and self.absence.partitions - before:
            log.warning(
                "partitions are not listed any more; the source waits a moment for them",
                source=self.name,
                partitions=sorted(self.absence.partitions)[:NAMED],
                count=len(self.absence.partitions),
            )
        return waits

    def _note_match(self, query: str, *, is_none: bool, is_final: bool) -> None:
        if is_none and not self._is_unmatched:
            then = "nothing is read of it" if is_final else "it waits until one does"
            log.warning(
                f"no topic matches the source's subscribePattern; {then}. Create one, or correct the "
                "pattern in the job",
                query=query,
                source=self.name,
                pattern=self.descriptor.options["subscribepattern"],
                servers=self.descriptor.options.get("kafka.bootstrap.servers"),
            )
        self._is_unmatched = is_none

    def retention_margin(self, now: float) -> float | None:
        """Return how much it has left before retention removes what it has not read (`Retention.margin`)."""
        if self.retention is None or self._start is None:
            return None
        return self.retention.margin(self._start, now)

    def take_topics(self) -> None:
        """Take the ids of its topics, if they have come since they were looked at."""
        if self.topics is not None and self._start is not None:
            self.topics.take(self._start)

    # A log that is not the one that was read -------------------------------------------------------

    def checked(self, query: str, answer: Answer, now: float, *, at_once: bool, is_aligned: bool) -> Answer:
        """Return the planner's answer; where the log is not the one that was read, what Spark would do.

        `at_once`: a log that ends too early is not given time. `is_aligned`: the source only goes back, and its end
        is found anew: this one was found by what may be the old event times.
        """
        if isinstance(answer, (Hold, Wait)) and answer.reason.is_deliberate:
            return answer
        has_nothing = answer == Hold(HeldBy.NOTHING_PENDING)
        moves = has_nothing or isinstance(answer, (TakeUpTo, GoLive))
        if self.topics is not None and self.topics.are_new:
            problem = self.topics.message(self.retreat.position, self.position(self.latest) or {})
        elif moves and self.retreat.lasts(now, at_once=at_once):
            problem = self.retreat.message(self.name)
        else:
            return (self._end_without_absent() if has_nothing else None) or answer
        told = f"query {query}: {problem}"
        if self.descriptor.fails_on_data_loss:
            return Fail(told)
        log.warning("records were lost; the job goes on without them", problem=told)
        if moves and self.retreat.partitions:
            ends = self._completed(self.retreat.position)
            if isinstance(answer, TakeUpTo) and not is_aligned:
                ends = answer.ends
            answer = TakeUpTo({**ends, **self.retreat.partitions})
        if self.topics is not None:
            self.topics.accept()
        self.retreat, self._has_changed = Retreat(), True
        return answer

    def _end_without_absent(self) -> TakeUpTo | None:
        """Return where it is, without the partitions that are listed no more, of which Spark learns by such an end.

        `None`: all are listed, or may be in a moment.
        """
        if self.descriptor.format != "kafka" or self.start is None or self.surveyed is None:
            return None
        there = {partition: at for partition, at in self.start.items() if partition in self.surveyed}
        return None if len(there) == len(self.start) else TakeUpTo(there)

    def take_change(self) -> bool:
        """Tell whether its log is another than it was when this was asked last."""
        changed, self._has_changed = self._has_changed, False
        return (self.topics is not None and self.topics.take_change()) or changed

    # What is said of it ----------------------------------------------------------------------------

    def reply(
        self, take: TakeNothing | TakeAll | TakeLimit | TakeBytes | TakeUpTo, *, is_listed: bool
    ) -> str:
        """Return the words for what is to be read. `is_listed`: the limits of its query are the planner's.

        All there is leaves a source the limit that it has of its own, as it should where nobody says anything of its
        query; where somebody does, a source that takes a limit is told that there is none.
        """
        unit = _UNITS.get(self.source.read_limit)
        if isinstance(take, TakeNothing):
            return protocol.NOTHING
        if isinstance(take, TakeAll):
            return protocol.at_most(_NO_LIMIT, unit) if is_listed and unit else protocol.EVERYTHING
        if isinstance(take, TakeBytes):
            return protocol.at_most(take.count, "bytes")
        if isinstance(take, TakeLimit):
            return protocol.at_most(take.count, _UNITS[self.source.read_limit])
        form = self.descriptor.offset_format
        if form is None or self.latest is None:
            raise RuntimeError(f"source {self.name}: an end was planned before it was looked at")
        if take.ends == self.position(self.latest):
            return protocol.up_to(self.latest)  # as the source has written it
        return protocol.up_to(form.offset(take.ends, self.latest))

    def outage(self, query: str, failure: str | None) -> None:
        """Note why it cannot be asked what it has, a text of exceptions, or that it can again (`None`).

        The text is empty where it only has not answered for long. That says something of Kafka alone: to list many
        files takes its time.
        """
        if failure is not None and self.topics is not None:
            self.topics.lost_sight()  # the shim may have seen it between two plannings
        if failure == "" and (self.descriptor.format != "kafka" or self.out_of_reach is not None):
            return
        problem = None if failure is None else out_of_reach(query, self.name, self.descriptor, failure)
        if problem == self.out_of_reach:
            return
        self.out_of_reach = problem
        if problem is None:
            log.info("source answers again", query=query, source=self.name)
        else:
            log.warning("source does not answer; it waits until it does", problem=problem, source=self.name)
