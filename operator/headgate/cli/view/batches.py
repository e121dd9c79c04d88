"""The last batches of a query, as far as a view has watched them.

The driver counts batches, their time and their records; two frames in between which the count grew tell how
large and how long the batches between them were, on the average.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.cli.view.frame import QueryFrame

KEPT = 40


class Batch(NamedTuple):
    """One batch, or the average of several between two frames."""

    records: float
    seconds: float | None


@dataclass(slots=True)
class BatchHistory:
    """The last batches of one query."""

    batches: deque[Batch] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: QueryFrame | None = None

    def watch(self, query: QueryFrame) -> None:
        """Note what was committed since the frame before; a driver that starts over starts the count over."""
        before, self._before = self._before, query
        if before is None or before.batches is None or query.batches is None:
            return
        count = query.batches - before.batches
        if count < 0:
            self.batches.clear()
        records = _processed(query) - _processed(before)
        if count <= 0 or records < 0:
            return
        self.batches.extend([Batch(records / count, _seconds(before, query, count))] * min(int(count), KEPT))


def _processed(query: QueryFrame) -> float:
    return sum(source.processed_records or 0.0 for source in query.sources.values())


def _seconds(before: QueryFrame, after: QueryFrame, count: float) -> float | None:
    if before.batch_seconds is None or after.batch_seconds is None:
        return None
    return (after.batch_seconds - before.batch_seconds) / count
