"""From what a planner answers to what the shim is told.

A planner knows positions. Between it and Spark stands what it cannot know: the log of a source may not be the one
that was read, and a hold that is to last is leased, if there is no batch to take in.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from headgate_contract.held import HeldBy
from headgate_spark.engine import protocol
from headgate_spark.engine.batches import Batches
from headgate_spark.engine.open_source import OpenSource
from headgate_spark.engine.open_sources import OpenSources
from headgate_spark.engine.settings import Settings
from headgate_spark.planner.lease import Lease
from headgate_spark.planner.model import Answer, Fail, GoLive, Hold, TakeUpTo, Wait

log = structlog.get_logger("headgate")


class Replies:
    """The replies to the questions about one run."""

    def __init__(
        self,
        query: str,
        sources: OpenSources,
        settings: Settings,
        batches: Batches,
        clock: Callable[[], float],
    ) -> None:
        self._query = query
        self._sources = sources
        self._settings = settings
        self._batches = batches
        self._clock = clock

    def to(
        self,
        opened: OpenSource,
        answer: Answer,
        lease: Callable[[float], Lease | None],
        *,
        ends_by_itself: bool,
    ) -> str:
        """Return what the shim is told for a source, and note what it leads to.

        `lease` returns for how long a hold may be leased at a time, or `None`. `ends_by_itself`: the run is over when
        it has read what there is.
        """
        checked = self._checked(opened, answer, ends_by_itself=ends_by_itself)
        if isinstance(checked, Hold):
            return self._held(lease)
        if isinstance(checked, Wait):
            self._batches.waits.begin(self._clock())
            return protocol.wait(checked.seconds)
        if isinstance(checked, Fail):
            return protocol.fail(checked.message)
        if isinstance(checked, GoLive):
            self._batches.planned()
            return protocol.real_time(checked.seconds)
        reply = opened.reply(checked, is_listed=self._settings.control is not None)
        self._batches.planned()
        return reply

    def _held(self, lease: Callable[[float], Lease | None]) -> str:
        leased = None if self._batches.are_watched else lease(self._clock())
        if leased is None:
            return protocol.HOLD
        return protocol.lease(leased, [self._sources.handle(name) for name in leased.watched])

    def _checked(self, opened: OpenSource, answer: Answer, *, ends_by_itself: bool) -> Answer:
        """Return the answer for a source; where its log is not the one that was read, what Spark would do."""
        if isinstance(answer, (Hold, Wait)) and answer.reason.is_deliberate:
            return answer
        moves = isinstance(answer, (TakeUpTo, GoLive)) or answer == Hold(HeldBy.NOTHING_PENDING)
        problem = opened.problem(self._clock(), moves=moves, at_once=ends_by_itself)
        if problem is None:
            return answer
        told = f"query {self._query}: {problem}"
        if opened.descriptor.fails_on_data_loss:
            return Fail(told)
        log.warning("records were lost; the job goes on without them", problem=told)
        # A member only goes back, and finds its end anew: this one was found by what may be the old event times.
        is_aligned = self._sources.records.part.is_member(opened.name)
        planned = answer if isinstance(answer, TakeUpTo) and not is_aligned else None
        end = opened.end_in_new_log(planned) if moves else None
        self._sources.records.forget(opened.name)
        opened.accept_log()
        self._sources.keep_topics()
        return answer if end is None else end
