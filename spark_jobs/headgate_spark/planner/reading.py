"""How a source looks to one planning: what it could read, in the terms of its read limit.

    offsets   reads up to any position; what is pending is known
    rows      reads up to so many rows; what is pending is not known
    files     reads so many files; what is in them is known when they have been read
    gate      reads everything or nothing

Nobody can tell the last two where to stop, so they may go ahead when their rate limit has the tokens for what is
expected, and what they read beyond that is a debt that the next batches wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Union

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.alignment_member import Part
from headgate_spark.planner.bucket import RateLimiter
from headgate_spark.planner.model import Position, ReadLimit, TakeAll, TakeBytes, TakeLimit, TakeUpTo
from headgate_spark.planner.shares import ReadingSource, ends_after
from headgate_spark.planner.snapshots import Snapshots
from headgate_spark.planner.source import SourceState

Take = Union[TakeAll, TakeUpTo, TakeLimit, TakeBytes]
Span = Mapping[str, Position]
"""The ends of a backlog that is read as one batch (`intervalDuringBacklog: 0s`), by source; empty outside of one."""


def fixed(
    span: Span, readers: Iterable[SourceState], sources: Iterable[SourceState], snapshots: Snapshots
) -> Span:
    """Return the span with the ends of `sources`, unless `readers` have not reached the ones in force yet.

    They are fixed when a backlog is first planned: at what the sources have, or where the snapshot of a change stream
    ends. Where `batch.maxRecords` cuts the batch, those that follow end at the same place; what arrived meanwhile is
    the next span. One in force follows a log that is another by now: a split without an end would be read on and on,
    and so would one that was created anew, while all others stand at their ends.
    """
    latest = {s.name: s.latest for s in sources if s.is_counted and s.latest is not None}
    new = {name: _within(each, snapshots.ends(name) or {}) for name, each in latest.items()}
    span = {
        name: {split: min(end, ends.get(split, new[name][split])) for split, end in latest[name].items()}
        if name in latest
        else ends
        for name, ends in span.items()
    }
    return span if any(any(s.rooms(span[s.name]).values()) for s in readers if s.name in span) else new


def _within(latest: Position, ends: Position) -> Position:
    return {split: min(end, ends.get(split, end)) for split, end in latest.items()} if ends else latest


@dataclass(frozen=True, slots=True)
class Limits:
    """Ends that a batch may not go past, whatever its grant."""

    span: Span
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What alignment lets sources read; one without a part is free."""

    def rooms(self, state: SourceState) -> dict[str, int]:
        """Return for each split the records between its position and the nearest of its ends."""
        part = self.parts.get(state.name)
        bounds = (None if part is None else part.ends, self.span.get(state.name))
        return state.rooms(*(b for b in bounds if b is not None))


def reach_of(state: SourceState, limits: Limits, now: float, *, look: float, whole: bool) -> ReadingSource:
    """Return the source as a reader: what it could read if no rate limited it.

    `look` is how long (seconds) it is left alone after it had nothing, `whole` asks for one batch of all it has.
    """
    if not state.is_counted:
        if state.exhausted and now < state.looks_again_at(look):
            return ReadingSource(name=state.name, hold=HeldBy.NOTHING_PENDING)
        takes_all = whole or state.read_limit in (ReadLimit.GATE, ReadLimit.OFFSETS)
        return ReadingSource(name=state.name, takes_all=takes_all)
    if state.pending is None:
        return ReadingSource(name=state.name, hold=HeldBy.UNKNOWN)
    part = limits.parts.get(state.name)
    return ReadingSource(
        name=state.name,
        pending=state.pending,
        reach=sum(limits.rooms(state).values()),
        sliced=None if part is None else part.left,
        new_splits=state.has_new_splits,
    )


def rated(reader: ReadingSource, state: SourceState, rate: RateLimiter, now: float) -> ReadingSource:
    """Return the reader of a source under its rate limit."""
    if reader.hold is not None:
        return reader
    goes_blindly = not state.is_counted and state.read_limit is not ReadLimit.ROWS
    if goes_blindly and not rate.allows_blindly(state.expected_records, now):
        return ReadingSource(name=state.name, hold=HeldBy.RATE_LIMIT)
    return replace(reader, allowance=rate.allowance(now), tokens=rate.tokens(now))


def take(
    state: SourceState, count: int | None, limits: Limits, *, grows_freely: bool, max_growth: float
) -> tuple[Take, int | None]:
    """Return `count` records (`None`: everything) in the unit of the read limit, and the records where that is exact.

    Splits share by where the source is now, whatever it was when the round was planned. `grows_freely`: it is not
    bounded by what the last batch was (a batch that spans a backlog).
    """
    if count is None:
        return TakeAll(), None
    if state.read_limit is ReadLimit.ROWS:
        count = count if state.most_rows is None else min(count, state.most_rows)
        return TakeLimit(count), count
    if state.read_limit is ReadLimit.FILES:
        most = state.files.bytes_for(count, max_growth) if grows_freely else None
        if most is not None:
            return TakeBytes(most), None
        return TakeLimit(state.files.for_records(count, grows_freely=grows_freely)), None
    start = state.position or {}
    ends = ends_after(count, start, limits.rooms(state), state.splits_had_turn)
    return TakeUpTo(ends), sum(ends.values()) - sum(start.values())
