"""Which batches run in Spark's real-time mode: when a query goes live in it, and when it goes back to micro-batches.

Such a batch reads whatever comes, for as long as it lasts, and cannot be held to anything. So a query is in it only
while it is in no backlog, has caught up, and nothing is said of it that could not be kept. Both is decided between
two batches, once what its sources have is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from headgate_contract import LiveControl, SourceControl
from headgate_spark.planner.model import BatchReport, Position, TriggerKind
from headgate_spark.planner.settings import PlannerSettings
from headgate_spark.planner.source import SourceState

CAUGHT_UP_SECONDS = 5.0
"""A query has caught up when a batch took all there was and was over so soon: what has come in meanwhile is little.
Real-time mode takes it at its own pace, half of that or less (`realtime_backlog_vs_plain_realtime`), beside what goes
on coming in."""
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 60.0, 3600.0
"""From a refusal to the next try: what a query is like does not change."""
FIRST_SOON_SECONDS, LAST_SOON_SECONDS = 5.0, 60.0
"""The same where slots are lacking: executors come and go, and the batches of other queries are soon over."""
MOST_DOUBLINGS = 22
"""After so many each wait is the longest, also one of a millisecond; a float is not to run over."""
FELL_BEHIND = (
    "it has fallen behind in real-time mode, and goes back there after backlog.reentry.dwell, or after twice as long "
    "each time within an hour; give it more task slots, or have it live in micro-batches (live.mode: MicroBatch)"
)

HasNone = Callable[[str, str, int, int], bool]
"""Whether it is known that a partition of a source has no record from one offset on and up to another."""


class RealTime:
    """The real-time mode of one query. Times are seconds of one monotonic clock."""

    def __init__(self, *, has_run: bool, has_none: HasNone = lambda *_: False) -> None:
        """`has_run`: a batch of the query was planned in an earlier run. `has_none` tells of what is unread."""
        self._has_none = has_none
        self.control = LiveControl()
        """How the query is to run while it is live."""
        self.has_run = has_run
        """A batch of the query was planned before, in this run or an earlier one."""
        self.hindrance: str | None = None
        """What is said of the query that real-time mode could not keep: a sentence; `None`: nothing."""
        self.refusal: str | None = None
        """Why Spark does not run it so: a sentence; `None`: it does, as far as is known."""
        self.is_on = False
        """The last batch that was planned is one of real-time mode: it runs, or it has just ended."""
        self.fall: str | None = None
        """That it has fallen behind there and stays away for a while: a sentence; `None`: it has not, lately."""
        self._refusals = 0
        self._not_before = -math.inf
        self._falls, self._fell_at = 0, -math.inf
        self._is_drained = False
        self._before: dict[str, Position] = {}
        """Up to where each source had records when the batch before began, if that was one of it."""
        self._began: dict[str, Position] = {}
        """Up to where each source had records when the batch began."""
        self._stood: dict[str, Position] = {}
        """Where each source was when that was decided."""

    # What it is told

    def follow(self, settings: PlannerSettings, sources: Collection[SourceState]) -> None:
        """Take trigger and document. Whoever declares it anew may have done something about a refusal."""
        control = settings.control.live if settings.control else LiveControl()
        if control != self.control:
            self.refusal, self.fall, self._refusals = None, None, 0
            self._not_before, self._falls = -math.inf, 0
        self.control = control
        self.hindrance = _hindrance(settings, sources) if control.real_time else None

    def refused(self, why: str, now: float, *, passes: bool) -> None:
        """Spark cannot run the query so, or a batch has failed there; `why` is a sentence, and may pass in seconds.

        Each try after the first waits twice as long as the one before.
        """
        self.is_on, self.refusal = False, why
        first, last = (
            (FIRST_SOON_SECONDS, LAST_SOON_SECONDS) if passes else (FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS)
        )
        self._not_before = now + min(first * 2**self._refusals, last)
        self._refusals = min(self._refusals + 1, MOST_DOUBLINGS)

    def not_all_were_told(self) -> None:
        """Of a source Spark was not told that it is read so: then none is, and no batch was."""
        self.is_on = False

    def batch_ended(self, report: BatchReport, *, took_all: bool) -> None:
        """A micro-batch has ended; `took_all`: it was to bring all that its sources had."""
        self._is_drained = took_all and report.duration_seconds <= CAUGHT_UP_SECONDS

    @property
    def why_not(self) -> str | None:
        """What keeps the query from it, apart from a backlog: a sentence; `None`: nothing."""
        return self.hindrance or self.refusal or self.fall

    # What it decides

    def is_awaited(self, *, backlog: bool, now: float) -> bool:
        """Tell whether nothing but what is still to be read keeps the query from it.

        A query's first batch is a micro-batch. Where one of real-time mode was killed that was the first, there is
        state and nothing in the logs, and Spark starts no micro-batches on that any more.
        """
        is_possible = self._is_possible and self.has_run
        return is_possible and not backlog and now >= self._not_before

    @property
    def lacks_first_batch(self) -> bool:
        """Whether the query is to be live in it and has no batch yet: one of no records will do."""
        return self._is_possible and not self.has_run

    @property
    def _is_possible(self) -> bool:
        return self.control.real_time and self.hindrance is None

    def changes_at(self, now: float) -> float:
        """Return when it may be gone into by time alone."""
        return self._not_before if self._not_before > now else math.inf

    def decide(
        self,
        sources: Collection[SourceState],
        told: Collection[str],
        *,
        backlog: bool,
        dwell: float,
        now: float,
    ) -> bool:
        """Return whether the batch that begins is one of it.

        What the sources have is known, and of those that were `told` of in this trigger, how far they were read: the
        others still stand where the last batch began. `dwell` is how long a query that has fallen behind stays away
        from it.
        """
        was_on, self.is_on = self.is_on, False
        if not self.is_awaited(backlog=backlog, now=now):
            return False
        known = {state.name: state.latest for state in sources if state.pending is not None}
        if len(known) < len(sources):
            return False
        if was_on and self._has_fallen_behind(sources, told):
            self._falls = 1 if now - self._fell_at > LAST_RETRY_SECONDS else self._falls + 1
            self._fell_at = now
            doublings = min(self._falls - 1, MOST_DOUBLINGS)
            self._not_before = now + min(dwell * 2**doublings, max(dwell, LAST_RETRY_SECONDS))
            self.fall = FELL_BEHIND
            return False
        if was_on:
            self.refusal, self.fall, self._refusals = None, None, 0
        elif not self._is_drained and any(state.pending for state in sources):
            return False
        self._before = self._began if was_on else {}
        self._stood = {state.name: dict(state.position or {}) for state in sources}
        self._began = {name: dict(latest or {}) for name, latest in known.items()}
        self.is_on, self._is_drained = True, False
        return True

    def _has_fallen_behind(self, sources: Collection[SourceState], told: Collection[str]) -> bool:
        """Tell whether records are unread that were there when the batch began: it is behind by more than a batch.

        A source that is still to be asked stands where the batch began. Of it is told, a batch late, whether that one
        had begun with records unread that were there when the batch before began.
        """
        return any(
            self._has_left(state, p, end)
            for state in sources
            for p, end in (self._began if state.name in told else self._before).get(state.name, {}).items()
        )

    def _has_left(self, state: SourceState, partition: str, end: int) -> bool:
        """Tell whether a partition has records unread up to `end`.

        Real-time mode ends behind the last record that it has read. So it leaves what no reader gets, as the marker
        at the end of a transaction is; a micro-batch is planned past that (read in the bytecode of
        `KafkaBatchPartitionReader.nextWithTimeout` and `getOffset`, 4.2.0). Whether the one offset behind what it has
        just read has a record is only known once it was looked at, in the batch that begins.
        """
        at = (state.position or {}).get(partition, end)
        if at >= end or self._has_none(state.name, partition, at, end):
            return False
        has_moved = at != self._stood.get(state.name, {}).get(partition)
        return end - at > 1 or not has_moved


def _hindrance(settings: PlannerSettings, sources: Collection[SourceState]) -> str | None:
    if settings.trigger.kind is not TriggerKind.PROCESSING_TIME:
        return f"the query's trigger ({settings.trigger.kind.value}) ends it by itself; give it a processing time"
    for state in sources:
        if (problem := _of_source(state.control)) is not None:
            return f"source {state.name} {problem}"
        if not state.is_counted:
            return f"source {state.name} cannot be counted, so nobody knows when it has caught up"
    return None


def _of_source(control: SourceControl) -> str | None:
    if control.rate_limit is not None:
        return (
            "has a rate limit, which cannot hold inside a batch of real-time mode; leave one of the two out"
        )
    if control.alignment is not None:
        return "is aligned, which cannot hold inside a batch of real-time mode; leave one of the two out"
    return "is paused" if control.paused else None
