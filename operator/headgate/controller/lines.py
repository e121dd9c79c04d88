"""Lines of several groups that take turns: within a group whoever is due longest is next, whatever the others have.

Of the groups that have something due the one whose last turn began longest ago is next. So between the moment at
which a group has something due and its turn, each other group gets one turn at most, however long its line is. A
group may also be kept to a share of what goes on at once, or turns that take long would leave the others none.

A group that has nothing left is forgotten. When it comes again it goes before the group that was served last, and
behind all others that wait: whoever comes and goes gets no more than who stays.

A call takes O(log n), but where it skips places which have become void; each of these is skipped once. A busy key
leaves one with each turn, and it may not be due for half an hour: a line that has doubled is swept of them.

Pure: time comes in as an argument.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.key import Key

SHORT = 64
"""A line of no more places is not swept."""


class Place(NamedTuple):
    """Somebody's place in a line."""

    due: float
    ticket: int
    """Orders those that are due at the same time; no two places have the same one."""
    key: Key


@dataclass(slots=True)
class _Group:
    served: int
    """Twice the number of the turn of any group that this one had last."""
    line: list[Place] = field(default_factory=list)
    """A heap."""
    swept_at: int = SHORT
    """The length at which void places are taken out of it."""
    running: int = 0
    is_ready: bool = False
    """Whether it stands among those that take turns."""
    wakes_at: float | None = None
    """When it will, if it sleeps."""


@dataclass(slots=True)
class Lines:
    """Places by group. Of places that are void nobody is told."""

    is_valid: Callable[[Place], bool]
    share: int | None = None
    """How many of one group may have been taken and not ended; `None`: any number."""
    _groups: dict[str, _Group] = field(default_factory=dict)
    _ready: list[tuple[int, int, str]] = field(default_factory=list)
    """A heap of `served`, order of arrival, and name of a group."""
    _asleep: list[tuple[float, str]] = field(default_factory=list)
    """A heap of when a group has something due, and its name; void where the group wakes at another time."""
    _turns: int = 0
    _arrivals: int = 0

    def add(self, name: str, place: Place) -> None:
        """Line up in the group called `name`."""
        group = self._groups.setdefault(name, _Group(2 * self._turns - 1))
        if len(group.line) >= group.swept_at:
            group.line = [one for one in group.line if self.is_valid(one)]
            heapq.heapify(group.line)
            group.swept_at = max(SHORT, 2 * len(group.line))
        heapq.heappush(group.line, place)
        if group.line[0] is place:
            self._settle(name, group)

    def take(self, now: float) -> Place | None:
        """Return who is next and is due, and count it as one that goes on; `None`: nobody is."""
        self._wake(now)
        while self._ready:
            name = heapq.heappop(self._ready)[2]
            group = self._groups[name]
            group.is_ready = False
            head = self._head(group)
            if head is not None and head.due <= now:
                heapq.heappop(group.line)
                self._turns += 1
                group.served = 2 * self._turns
                group.running += 1
                self._settle(name, group)
                return head
            self._settle(name, group)
        return None

    def ended(self, name: str) -> None:
        """One that was taken of this group has ended."""
        group = self._groups[name]
        group.running -= 1
        self._settle(name, group)

    def next_due(self) -> float | None:
        """Return when the next one that may be taken is due; `None`: none will be until something changes."""
        while self._ready:
            name = self._ready[0][2]
            head = self._head(group := self._groups[name])
            if head is not None:
                return head.due
            heapq.heappop(self._ready)
            group.is_ready = False
            self._settle(name, group)
        while self._asleep:
            due, name = self._asleep[0]
            sleeper = self._groups.get(name)
            if sleeper is not None and sleeper.wakes_at == due:
                head = self._head(sleeper)
                if head is not None and head.due == due:
                    return due
                self._settle(name, sleeper)
            else:
                heapq.heappop(self._asleep)
        return None

    def due(self, now: float) -> Iterator[Place]:
        """Yield all that are due, in no order; those that are not are not looked at, but for a few.

        A line is a heap: nobody below one that is not due is due. May be asked for from another thread.
        """
        for group in list(self._groups.values()):
            line, indices = list(group.line), [0]
            while indices:
                index = indices.pop()
                if index < len(line) and line[index].due <= now:
                    indices += (2 * index + 1, 2 * index + 2)
                    if self.is_valid(line[index]):
                        yield line[index]

    def _wake(self, now: float) -> None:
        while self._asleep and self._asleep[0][0] <= now:
            due, name = heapq.heappop(self._asleep)
            group = self._groups.get(name)
            if group is not None and group.wakes_at == due:
                group.wakes_at = None
                group.is_ready = True
                self._arrivals += 1
                heapq.heappush(self._ready, (group.served, self._arrivals, name))

    def _settle(self, name: str, group: _Group) -> None:
        """Let it sleep until its head is due, unless it is ready, or has to wait for one of its own to end."""
        if group.is_ready:
            return
        head = self._head(group)
        may = self.share is None or group.running < self.share
        if head is None and not group.running:
            del self._groups[name]
        wakes_at = head.due if head is not None and may else None
        if wakes_at != group.wakes_at:
            group.wakes_at = wakes_at
            if wakes_at is not None:
                heapq.heappush(self._asleep, (wakes_at, name))
            if len(self._asleep) > 2 * len(self._groups) + SHORT:
                at = ((one.wakes_at, known) for known, one in self._groups.items())
                self._asleep = [(due, known) for due, known in at if due is not None]
                heapq.heapify(self._asleep)

    def _head(self, group: _Group) -> Place | None:
        while group.line and not self.is_valid(group.line[0]):
            heapq.heappop(group.line)
        return group.line[0] if group.line else None
