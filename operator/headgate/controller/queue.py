"""Which application is worked on next.

Everything that is heard of an application leads to the same reconcile, so an event is nothing but its key: ten of
them are one reconcile. Keys wait by the time since which they are due, so that a busy application never keeps a
quiet one waiting, and groups of them take turns (`lines.py`), so that ten thousand of one namespace do not keep the
one of another waiting. What fails waits longer each time, what succeeds again and again is slowed down to a pace,
and a key is never worked on twice at once.

Pure: time and chance come in as arguments, and nothing waits in here. `workers.py` does the waiting. Not thread-safe,
but for `depth`, `longest_wait` and `longest_run`, which a scrape may ask for from its own thread.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.controller.lines import Lines, Place
from headgate.decision.backoff import wait_seconds
from headgate.key import Key

BURST = 10
"""Reconciles at once: those of a start, in which the kubelet reports something every few hundred milliseconds."""
PACE_SECONDS = 1.0
"""Seconds between two reconciles afterwards."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
"""After failures in a row a key waits as a driver does (`decision.backoff`)."""


@dataclass(slots=True)
class KeyRateLimiter:
    """A token bucket for each key, which holds `burst` reconciles and gets one more every `seconds`.

    Kept is when the bucket will be full again (the generic cell rate algorithm, ITU-T I.371); of a full one nothing.

    A reconcile that succeeds is no reason to wait, so whoever changes a resource fifty times a second would have
    fifty reconciles, each with writes of ours, which no quota of his bounds. What is heard meanwhile is not lost: it
    is all seen by the reconcile that comes.

    Pure: time comes in as an argument.
    """

    burst: int = BURST
    seconds: float = PACE_SECONDS
    _full_at: OrderedDict[Key, float] = field(default_factory=OrderedDict)
    """The key that was worked on last is the last one."""

    def not_before(self, key: Key) -> float:
        """Return the time from which on the next reconcile may begin."""
        return self._full_at.get(key, float("-inf")) - (self.burst - 1) * self.seconds

    def spend(self, key: Key, now: float) -> None:
        self._full_at[key] = max(self._full_at.pop(key, now), now) + self.seconds
        while self._full_at and next(iter(self._full_at.values())) <= now:
            self._full_at.popitem(last=False)


@dataclass(slots=True)
class _Entry:
    due: float | None = None
    """When it may be taken; `None`: not before something is heard."""
    failures: int = 0
    not_before: float = 0.0
    """An event does not bring a key that fails forward beyond this."""
    ticket: int = 0
    """That of its place in line; an older one is void."""


@dataclass(slots=True)
class WorkQueue:
    """Keys, each with the time at which it is due. Times are seconds on one clock, that of the caller."""

    first_pause: float = FIRST_PAUSE_SECONDS
    pace: KeyRateLimiter = field(default_factory=KeyRateLimiter)
    group: Callable[[Key], str] = lambda _key: ""
    """The group of a key: groups take turns."""
    share: int | None = None
    """How many keys of one group may be worked on at once; `None`: all that are due."""
    _entries: dict[Key, _Entry] = field(default_factory=dict)
    _running: dict[Key, float] = field(default_factory=dict)
    """Since when."""
    _lines: Lines = field(init=False)
    _tickets: int = 0

    def __post_init__(self) -> None:
        self._lines = Lines(self._is_in_line, self.share)

    def add(self, key: Key, now: float) -> None:
        """Something was heard of `key`: it is due, or will be again once its present reconcile has ended.

        While it fails it is due after the first pause at the earliest; that is soon enough for a person who
        has mended something, and keeps a reconcile that causes events itself from spinning.
        """
        entry = self._entries.setdefault(key, _Entry())
        self._schedule(key, entry, max(now, entry.not_before))

    def take(self, now: float) -> Key | None:
        """Return the key that has been due longest of the group whose turn it is, and count it as running.

        `None` when none is due, but of groups of which as many run as may.
        """
        place = self._lines.take(now)
        if place is None:
            return None
        self._entries[place.key].due, self._running[place.key] = None, now
        self.pace.spend(place.key, now)
        return place.key

    def done(self, key: Key, now: float, *, again_in: float | None = None) -> None:
        """The reconcile of `key` has ended well; look at it again in so many seconds at the latest."""
        entry = self._ended(key)
        entry.failures, entry.not_before = 0, 0.0
        if again_in is not None:
            self._schedule(key, entry, now + max(0.0, again_in))
        elif entry.due is None:
            del self._entries[key]

    def failed(self, key: Key, now: float, *, jitter: float, at_least: float = 0.0) -> float:
        """The reconcile of `key` has failed; returns in how many seconds it is due again, `at_least` so many.

        What was heard during the reconcile brings it forward to the end of the first pause.
        """
        entry = self._ended(key)
        entry.failures += 1
        entry.not_before = now + max(at_least, self._pause(1, jitter))
        if entry.due is not None:
            entry.due = None
            self._schedule(key, entry, entry.not_before)
        else:
            self._schedule(key, entry, now + max(at_least, self._pause(entry.failures, jitter)))
        return (entry.due or now) - now

    def next_due(self) -> float | None:
        """Return when the next key is due that does not run and may, or a time that has passed if one is already."""
        return self._lines.next_due()

    def depth(self, now: float) -> int:
        """Return how many keys are due and wait for a worker."""
        return sum(1 for _ in self._lines.due(now))

    def longest_wait(self, now: float) -> float:
        """Return for how long the key that has been due longest waits for a worker; 0 when none does."""
        return max((now - place.due for place in self._lines.due(now)), default=0.0)

    def longest_run(self, now: float) -> float:
        """Return for how long the longest reconcile has been going on; 0 when none is."""
        return max((now - start for start in list(self._running.values())), default=0.0)

    @property
    def running(self) -> int:
        return len(self._running)

    def _pause(self, failures: int, jitter: float) -> float:
        return wait_seconds(self.first_pause, LONGEST_PAUSE_SECONDS, failures, jitter)

    def _is_in_line(self, place: Place) -> bool:
        entry = self._entries.get(place.key)
        return entry is not None and entry.ticket == place.ticket and place.key not in self._running

    def _ended(self, key: Key) -> _Entry:
        entry = self._entries[key]
        self._running.pop(key, None)
        self._lines.ended(self.group(key))
        if entry.due is not None:
            self._line_up(key, entry)  # it was not in line while it ran
        return entry

    def _schedule(self, key: Key, entry: _Entry, due: float) -> None:
        """Make it due at `due`, or as soon after as its pace allows, unless it is sooner."""
        due = max(due, self.pace.not_before(key))
        if entry.due is None or due < entry.due:
            entry.due = due
            if key not in self._running:
                self._line_up(key, entry)

    def _line_up(self, key: Key, entry: _Entry) -> None:
        if entry.due is not None:
            self._tickets += 1
            entry.ticket = self._tickets
            self._lines.add(self.group(key), Place(entry.due, entry.ticket, key))
