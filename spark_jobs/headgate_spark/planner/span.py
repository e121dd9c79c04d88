"""The ends of a backlog that is read as one batch (`intervalDuringBacklog: 0s`).

They are fixed when the backlog is first planned: at what the sources have, or where the snapshot of a change stream
ends. Where `batch.maxRecords` cuts the batch, those that follow end at the same place; what arrived meanwhile is the
next span.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate_spark.planner.model import Position
from headgate_spark.planner.snapshots import Snapshots
from headgate_spark.planner.source import SourceState

Span = Mapping[str, Position]
"""The ends in force, by source; empty outside of such a backlog."""


def fixed(
    span: Span, readers: Iterable[SourceState], sources: Iterable[SourceState], snapshots: Snapshots
) -> Span:
    """Return the span with the ends of `sources`, unless `readers` have not reached the ones in force yet."""
    if any(any(s.rooms(span[s.name]).values()) for s in readers if s.name in span):
        return span
    counted = {s.name: s.latest for s in sources if s.is_counted and s.latest is not None}
    return {
        name: latest
        if (ends := snapshots.ends(name)) is None
        else {split: min(end, ends.get(split, end)) for split, end in latest.items()}
        for name, latest in counted.items()
    }
