"""One source of a query: where it is, what it may take, what has been counted.

The position that Spark hands in comes from the offset log and is always believed: nothing of a source is in flight
when it is asked. What was handed out is only booked ahead until then.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from headgate_contract import SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.bucket import RateLimiter
from headgate_spark.planner.files import FileCount
from headgate_spark.planner.hybrid import Hybrid, ReadSoFar
from headgate_spark.planner.model import (
    Answer,
    Hold,
    Position,
    ReadLimit,
    Source,
    Take,
    TakeAll,
    TakeBytes,
    TakeLimit,
    TakeUpTo,
    Wait,
)
from headgate_spark.planner.shares import ReadingSource, ends_after, room

SURVEY_SECONDS = 2.0
"""While a source may not read, its latest position is asked for this often: people look at pending records of a
paused source too. Rarely enough that a closed gate costs next to no I/O."""

EMPTY_BATCHES = 2
"""Batches in a row without a record of a source that was allowed to read: it has nothing (a file can be empty)."""

RESTLESS_BATCHES = 10
"""Batches in a row that brought all there was, while the next one found more: nothing that such a source is read to
the end of."""

LATELY_SECONDS = 60.0
"""What counts as lately. Long enough that a source which is held back in each batch is so without a break."""


class _Hold(NamedTuple):
    """A time for which the source was held, for one reason."""

    reason: HeldBy
    begin: float
    end: float


class HeldTime:
    """For how long the source has been held, by reason: since the start, and lately."""

    def __init__(self) -> None:
        self.reason: HeldBy | None = None
        self._since = 0.0
        self._seconds: dict[HeldBy, float] = {}
        """Of the holds that have ended."""
        self._ended: deque[_Hold] = deque()
        """Those of them that may count as lately."""

    def answered(self, reason: HeldBy | None, now: float) -> None:
        """Take note of why the source is held from now on; `None`: it may read."""
        if reason is self.reason:
            return
        if self.reason is not None:
            self._seconds = self.seconds(now)
            self._ended.append(_Hold(self.reason, self._since, now))
        while self._ended and self._ended[0].end <= now - LATELY_SECONDS:
            self._ended.popleft()
        self.reason, self._since = reason, now

    def seconds(self, now: float) -> dict[HeldBy, float]:
        if self.reason is None:
            return dict(self._seconds)
        lasted = self._seconds.get(self.reason, 0.0) + max(0.0, now - self._since)
        return {**self._seconds, self.reason: lasted}

    def lately(self, now: float) -> dict[HeldBy, float]:
        """Return the seconds of the last minute, by the reasons that held it in that time."""
        holds = list(self._ended)
        if self.reason is not None:
            holds.append(_Hold(self.reason, self._since, now))
        found: dict[HeldBy, float] = {}
        for hold in holds:
            if (seconds := hold.end - max(hold.begin, now - LATELY_SECONDS)) > 0:
                found[hold.reason] = found.get(hold.reason, 0.0) + seconds
        return found


class SourceState:
    """What the planner knows of one source."""

    def __init__(self, source: Source, now: float) -> None:
        self.name = source.name
        self.read_limit = source.read_limit
        self.is_cut_in_bytes = False
        """What was planned of it last had a limit in bytes."""
        self._own_rows = source.own_rows
        self.control = SourceControl()
        self.rate = RateLimiter()
        self.files = FileCount()
        self.held = HeldTime()
        self.seen = False
        """Spark has asked this source at least once."""
        self.position: Position | None = None
        self.latest: Position | None = None
        self._counted: dict[str, int] | None = None
        """Records between the two, partition by partition; `None`: not counted since one of them changed."""
        self.exhausted = False
        """Asked without a way to count, and it had nothing."""
        self.had_turn = 0
        """The last planning that was its turn, though it may have had nothing, or been held back; below 0: none."""
        self.partitions_had_turn: dict[str, int] = {}
        """The last planning in which a partition had records while there was not one for each; left out: none."""
        self.planned_total = 0
        self.processed_total = 0
        self._surveyed_at: float | None = None
        self._empty_batches = 0
        self._emptying_batches = 0
        self._active_at = now
        self._looked_at: float | None = None

    # What is seen

    def asked(self, start: Position | None) -> None:
        """Spark asked, and said where the source is."""
        self.seen = True
        self.moved_to(start)

    def moved_to(self, position: Position | None) -> None:
        """The source is at `position`: Spark said so, or a batch up to there has ended."""
        self.position, self._counted = position, None

    def surveyed(self, latest: Position | None, now: float) -> None:
        """The source told its latest position, or (`None`) could not."""
        self.latest, self._counted, self._surveyed_at = latest, None, now
        if self.pending:
            self._active_at = now

    @property
    def _ahead(self) -> dict[str, int]:
        """Records between position and latest, partition by partition."""
        if self.position is None or self.latest is None:
            return {}
        if self._counted is None:
            self._counted = room(self.position, self.latest)
        return self._counted

    def stale_at(self, seconds: float) -> float:
        """Return when the latest position is due to be asked for, even if nothing may be read: it is so old then."""
        return -math.inf if self._surveyed_at is None else self._surveyed_at + seconds

    @property
    def could_not_tell(self) -> bool:
        """Whether it was asked for its latest position and has not told one: no stream does before Spark opens it."""
        return self.is_counted and self.latest is None and self._surveyed_at is not None

    def looks_again_at(self, interval: float) -> float:
        """Return when `interval` seconds have passed since it was asked for everything new and had nothing."""
        return -math.inf if self._looked_at is None else self._looked_at + interval

    # What it may do

    def may_read(self, hybrid: Hybrid) -> bool:
        """Tell whether neither a person nor a history keeps it from being read."""
        return not self.control.paused and not hybrid.waits(self.name)

    @property
    def is_counted(self) -> bool:
        """Whether positions tell how much is pending. Not before a source with counted offsets has a start."""
        return self.read_limit is ReadLimit.OFFSETS and (self.position is not None or not self.seen)

    @property
    def pending(self) -> int | None:
        """Records between position and latest; `None`: not known."""
        if not self.is_counted:
            return 0 if self.exhausted else None
        if self.position is None or self.latest is None:
            return None
        return sum(self._ahead.values())

    @property
    def unread(self) -> dict[str, int]:
        """Where the partitions are of which something is unread; a partition without a start is in none."""
        position = self.position or {}
        return {p: position[p] for p, count in self._ahead.items() if count and p in position}

    @property
    def has_new_partitions(self) -> bool:
        """Whether there are partitions without a start. Only their source knows it, so they are first taken whole."""
        return (
            self.position is not None and self.latest is not None and bool(self.latest.keys() - self.position)
        )

    def rooms(self, *bounds: Position) -> dict[str, int]:
        """Return the records ahead of each partition, up to the nearest of `bounds`."""
        if not bounds or self.position is None or self.latest is None:
            return self._ahead
        return room(self.position, self.latest, *bounds)

    def reach(
        self, ends: Collection[Position], now: float, *, sliced: HeldBy | None, look: float, whole: bool
    ) -> ReadingSource:
        """Return the source as a reader: what it could read up to these ends if no rate limited it.

        `sliced` is why its part of a time slice is not larger. `look` is how long (seconds) it is left alone after it
        had nothing, `whole` asks for one batch of all it has.
        """
        if not self.is_counted:
            if self.exhausted and now < self.looks_again_at(look):
                return ReadingSource(name=self.name, hold=HeldBy.NOTHING_PENDING)
            takes_all = whole or self.read_limit in (ReadLimit.GATE, ReadLimit.OFFSETS)
            return ReadingSource(name=self.name, takes_all=takes_all)
        if self.pending is None:
            return ReadingSource(name=self.name, hold=HeldBy.UNKNOWN)
        return ReadingSource(
            name=self.name,
            pending=self.pending,
            reach=sum(self.rooms(*ends).values()),
            sliced=sliced,
            new_partitions=self.has_new_partitions,
        )

    def rated(self, reader: ReadingSource, rate: RateLimiter, now: float) -> ReadingSource:
        """Return the source as a reader under a rate limit.

        Of files nobody can tell where to stop, and of a gate neither: they may go ahead when there are the tokens for
        what is expected, and what they read beyond that is a debt that the next batches wait for.
        """
        if reader.hold is not None:
            return reader
        goes_blindly = not self.is_counted and self.read_limit is not ReadLimit.ROWS
        if goes_blindly and not rate.allows_blindly(self.expected_records, now):
            return ReadingSource(name=self.name, hold=HeldBy.RATE_LIMIT)
        return replace(reader, allowance=rate.allowance(now), tokens=rate.tokens(now))

    def take(
        self, count: int | None, ends: Collection[Position], *, grows_freely: bool, max_growth: float
    ) -> tuple[Take, int | None]:
        """Return `count` records (`None`: everything) in the unit of the read limit, and the records where that is
        exact.

        Partitions share by where the source is now, wherever it was when the round was planned, up to `ends`.
        `grows_freely`: it is not bounded by what the last batch was (a batch that spans a backlog).
        """
        if count is None:
            return TakeAll(), None
        if self.read_limit is ReadLimit.ROWS:
            most_rows = None if self.rate.has_cap else self._own_rows
            count = count if most_rows is None else min(count, most_rows)
            return TakeLimit(count), count
        if self.read_limit is ReadLimit.FILES:
            most = self.files.bytes_for(count, max_growth) if grows_freely else None
            if most is not None:
                return TakeBytes(most), None
            return TakeLimit(self.files.for_records(count, grows_freely=grows_freely)), None
        start = self.position or {}
        upto = ends_after(count, start, self.rooms(*ends), self.partitions_had_turn)
        return TakeUpTo(upto), sum(upto.values()) - sum(start.values())

    @property
    def progress(self) -> ReadSoFar:
        return ReadSoFar(self.position if self.is_counted else None, self.latest, self.exhausted)

    @property
    def is_restless(self) -> bool:
        """Whether it cannot be counted, and had more each time that all there was had been read."""
        return not self.is_counted and self._emptying_batches >= RESTLESS_BATCHES

    @property
    def expected_records(self) -> float | None:
        """Records in the smallest batch of a source that cannot count; `None`: not known."""
        return self.files.records_per_file if self.read_limit is ReadLimit.FILES else None

    # What happened

    def answered(self, answer: Answer, now: float) -> None:
        """Book an answer: for how long the source is held, and why."""
        reason = answer.reason if isinstance(answer, (Hold, Wait)) else None
        self.held.answered(reason, now)
        if reason is not None and reason.keeps_from_reading:
            self._active_at = now

    def found_nothing(self, now: float) -> None:
        """No batch followed although the source was allowed to read."""
        self.exhausted = True
        self._looked_at = now

    def brought(self, records: int, now: float, *, everything: bool) -> None:
        """A batch ended in which the source was allowed to read.

        `everything`: no limit kept it from bringing more.
        """
        self._emptying_batches = self._emptying_batches + 1 if records and everything else 0
        self._empty_batches = 0 if records else self._empty_batches + 1
        self.exhausted = not self.is_counted and self._empty_batches >= EMPTY_BATCHES
        if records:
            self._active_at = now

    # What is reported

    def idle_seconds(self, now: float, *, in_flight: bool) -> float | None:
        """Return for how long nothing was pending, in flight or new; `None`: not known."""
        held = self.held.reason
        if in_flight or self.pending or (held is not None and held.keeps_from_reading):
            return 0.0
        return None if self.pending is None else max(0.0, now - self._active_at)
