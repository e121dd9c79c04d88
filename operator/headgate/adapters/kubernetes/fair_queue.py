"""A bounded line in which several parties take turns."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

import structlog

T = TypeVar("T")

log = structlog.get_logger("headgate")


class FairQueue(Generic[T]):
    """What waits, by the party that it is of: each in its order, the parties in turn.

    Where too many wait, what the party with the longest line has put in last is lost.
    """

    def __init__(self, most: int, kind: str) -> None:
        """`most` wait at once; `kind` is what they are called in the log."""
        self._most = most
        self._kind = kind
        self._is_full = False
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()
        """The party whose turn it is comes first; none is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, party: str, item: T) -> None:
        """Line `item` up behind what the party has waiting."""
        self._lines.setdefault(party, deque()).append(item)
        self._count += 1
        if self._count > self._most:
            self._lose_one()

    def take(self) -> T:
        """Return what is next; there has to be something."""
        party, line = self._lines.popitem(last=False)
        taken = line.popleft()
        if line:
            self._lines[party] = line
        self._count -= 1
        self._is_full = self._is_full and bool(self._count)
        return taken

    def _lose_one(self) -> None:
        party, line = max(self._lines.items(), key=lambda one: len(one[1]))
        line.pop()
        if not line:
            del self._lines[party]
        self._count -= 1
        if not self._is_full:
            self._is_full = True
            log.warning(f"{self._most:,} {self._kind} wait to be recorded; those that come now are lost")
