"""Ends that a batch may not go past, whatever its grant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate_spark.planner.alignment_member import Part
from headgate_spark.planner.model import Position
from headgate_spark.planner.snapshots import Snapshots
from headgate_spark.planner.source import SourceState

Span = Mapping[str, Position]
"""The ends of a backlog that is read as one batch (`intervalDuringBacklog: 0s`), by source; empty outside of one."""


def fixed(
    span: Span, readers: Iterable[SourceState], sources: Iterable[SourceState], snapshots: Snapshots
) -> Span:
    """Return the span with the ends of `sources`, unless `readers` have not reached the ones in force yet.

    They are fixed when a backlog is first planned: at what the sources have, or where the snapshot of a change stream
    ends. Where `batch.maxRecords` cuts the batch, those that follow end at the same place; what arrived meanwhile is
    the next span. One in force follows a log that is another by now: a partition without an end would be read on and
    on, and so would one that was created anew, while all others stand at their ends.
    """
    latest = {s.name: s.latest for s in sources if s.is_counted and s.latest is not None}
    new = {name: _within(each, snapshots.ends(name) or {}) for name, each in latest.items()}
    span = {
        name: {p: min(end, ends.get(p, new[name][p])) for p, end in latest[name].items()}
        if name in latest
        else ends
        for name, ends in span.items()
    }
    return span if any(any(s.rooms(span[s.name]).values()) for s in readers if s.name in span) else new


def _within(latest: Position, ends: Position) -> Position:
    return {p: min(end, ends.get(p, end)) for p, end in latest.items()} if ends else latest


def limits_of(source: str, span: Span, parts: Mapping[str, Part]) -> tuple[Position, ...]:
    """Return the ends of a source that a batch may not go past; none, where nothing sets one.

    `parts` is what alignment lets sources read; one without a part is free.
    """
    part = parts.get(source)
    ends = (None if part is None else part.ends, span.get(source))
    return tuple(each for each in ends if each is not None)
