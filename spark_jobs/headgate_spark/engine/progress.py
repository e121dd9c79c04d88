"""What Spark says of a batch, read from the query's last progress.

It is polled as JSON (0.2 ms) and not listened for: a Python listener rebuilds every event over py4j and took a
third of a core at seven batches a second.
"""

from __future__ import annotations

import json
from typing import Any

from headgate_contract.newer import dataclass, moment_in


@dataclass(frozen=True, slots=True)
class Progress:
    """One executed batch. Times are Unix seconds; `None` is what Spark does not say."""

    batch_id: int
    duration_seconds: float
    source_rows: tuple[int, ...]
    """Rows read, in the order in which the sources were opened."""
    watermark: float | None
    max_event_time: float | None
    state_rows: int | None
    """Of all state operators; also `None` where the store of one does not count them."""


def parse(text: str) -> Progress | None:
    """Return the progress in `text`, or `None` if it tells of a trigger that ran no batch."""
    members = json.loads(text)
    durations = members.get("durationMs", {})
    if "addBatch" not in durations:
        return None
    event_time = members.get("eventTime", {})
    rows = [operator.get("numRowsTotal") for operator in members.get("stateOperators", [])]
    return Progress(
        batch_id=members["batchId"],
        duration_seconds=durations["triggerExecution"] / 1000,
        source_rows=tuple(max(0, source["numInputRows"]) for source in members["sources"]),
        watermark=_time(event_time.get("watermark")),
        max_event_time=_time(event_time.get("max")),
        state_rows=sum(rows) if rows and None not in rows else None,
    )


def _time(text: Any) -> float | None:
    """Return Unix seconds. Spark writes 1970 for a watermark that has not been set: unknown, not 56 years behind."""
    if text is None:
        return None
    seconds = moment_in(text).timestamp()
    return seconds if seconds > 0 else None
