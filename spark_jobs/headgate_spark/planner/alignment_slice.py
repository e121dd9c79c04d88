"""The time slice: what of several partitions lies before one event time, and fits a budget.

    slice = the largest event time T <= limit such that the records not later than T fit the budget

Each partition ends at its first record later than T, so whatever is read is aligned by construction. T is searched
for with few questions, since each costs a request to the broker: from the pace of the last slice, then on the line
between what is known below and above, until these two are near by the measure of the drift. What remains of the
budget is filled from the cut above, in proportion; so one millisecond that holds more than the budget is read too.

An answer that does not come in time ends the search: what was found until then is the slice. If that is nothing, the
search of the next planning begins with what was asked in vain.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate_contract.newer import dataclass
from headgate_spark.planner.event_times import EventTimesUnknownError, Millis, Partition
from headgate_spark.planner.shares import divide
from headgate_spark.planner.time_index import Rooms, TimeIndex

MAX_ROUNDS = 12
"""Questions for one slice. What they leave open is filled in proportion."""
FULL_PART = 0.9
"""Part of the budget at which a slice is good enough to end the search."""
AIM_PART = 0.97
"""Part of the budget that guesses aim at: one that is a little too high costs another question."""
NEAR_PART = 0.1
"""Part of the drift to which the end of a slice is searched for: what lies within it is filled in proportion."""
WIDEN = 8
"""How much further the next guess goes when one has found nothing."""

Ends = Sequence[int]
"""Of partitions, in the order of their rooms."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Where the partitions end."""

    ends: Ends
    count: int
    limited: bool
    """The limit alone kept it from being larger."""
    millis_per_record: float | None = None
    """How much event time a record took: where the next search begins."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """The ends at one event time."""

    time: Millis
    ends: Ends
    count: int
    next_time: Millis
    """The earliest record that it leaves; its own time where none is known."""


def slice_of(  # noqa: PLR0913 - a search, by keyword
    rooms: Rooms,
    *,
    budget: int,
    limit: Millis,
    drift: Millis,
    index: TimeIndex,
    pace: float | None = None,
    fill: bool = False,
) -> Slice:
    """Return the largest slice of at most `budget` records up to `limit`, and within `drift` of where it ends.

    `pace` is the event time (ms) that a record took in the last one. `fill` uses all of the budget, for another
    question: the search by itself ends at nine tenths of it. The event times of the starts must be known. Raises
    `EventTimesUnknownError` where nothing was found in time.
    """
    whole = rooms.size
    begin = _beginning(rooms, limit)
    if begin is None or begin.time >= limit or budget <= 0:
        return Slice(rooms.starts, 0, limited=whole > 0 and budget > 0)
    task = _Task(rooms, budget, limit, drift, index, whole)
    low, high = _search(task, begin, pace)
    if fill and high is None:
        low, high = _topped_up(task, begin, low)
    if high is not None and (partition := _unlocated(rooms)) is not None:
        if low.count == 0:
            raise EventTimesUnknownError(
                f"source {partition.source}: how late its next record is was not told in time"
            )
        high = None
    ends = low.ends if high is None else _filled(low, high, budget)
    count = sum(ends) - sum(rooms.starts)
    limited = low.time >= limit and count < whole
    return Slice(ends, count, limited, (low.time - begin.time) / low.count if low.count else pace)


@dataclass(frozen=True, slots=True)
class _Task:
    """What is searched for."""

    rooms: Rooms
    budget: int
    limit: Millis
    drift: Millis
    index: TimeIndex
    whole: int
    """Records that there are, as far as offsets tell."""

    def first_pace(self, begin: _Cut) -> float:
        """Return the event time that a record takes on average: all there is, over all the time it spans."""
        reached = [each.reached(end) for each, end in zip(self.rooms.partitions, self.rooms.ends)]
        last = max((time for time in reached if time is not None), default=begin.time)
        return max(1, last - begin.time) / max(1, self.whole)

    def first_guess(self, begin: _Cut, pace: float) -> Millis:
        """Return the event time to ask for first: if one was asked in vain, it is answered by now."""
        asked = [t for t in self.index.asked_in_vain(self.rooms.partitions) if begin.time < t <= self.limit]
        if asked:
            return min(asked)
        return self.limit if self.whole <= self.budget else _forward(begin, self.budget, pace)


def _search(task: _Task, begin: _Cut, pace: float | None) -> tuple[_Cut, _Cut | None]:
    """Return the best cut within the budget and the best one beyond it, if one was met."""
    pace = pace or task.first_pace(begin)
    low, high = begin, None
    guess = task.first_guess(begin, pace)
    for n in range(MAX_ROUNDS):
        try:
            cut = _cut(task.rooms, task.index, min(guess, task.limit))
        except EventTimesUnknownError:
            if low.count == 0 and high is None:
                raise
            break
        if cut.count > task.budget:
            high = cut
        else:
            found_nothing = cut.count == low.count
            pace = pace * WIDEN if found_nothing else (cut.time - begin.time) / cut.count
            low = cut
        full = low.time >= task.limit or low.count >= FULL_PART * task.budget
        if full or (high is not None and high.time <= low.next_time + NEAR_PART * task.drift):
            break
        guess = (
            _forward(low, task.budget, pace)
            if high is None
            else _between(low, high, task.budget, halve=n % 3 == 2)
        )
    return _near(task, low, high)


def _topped_up(task: _Task, begin: _Cut, low: _Cut) -> tuple[_Cut, _Cut | None]:
    """Return the best cut within the budget, and one beyond it towards which the rest may be filled.

    It is looked for at twice what is left by the pace of the slice, and on from there where that is not enough.
    """
    for _ in range(MAX_ROUNDS):
        if low.count in (0, task.budget, task.whole) or low.time >= task.limit:
            break
        pace = (low.time - begin.time) / low.count
        guess = max(low.next_time, low.time + max(1, round(2 * (task.budget - low.count) * pace)))
        try:
            cut = _cut(task.rooms, task.index, min(guess, low.next_time + task.drift, task.limit))
        except EventTimesUnknownError:
            break
        if cut.count > task.budget:
            return low, cut
        low = cut
    return low, None


def _near(task: _Task, low: _Cut, high: _Cut | None) -> tuple[_Cut, _Cut | None]:
    """Return both, with a `high` towards which the rest may be filled: the floor may end up where `low` ends."""
    if high is None or high.time <= low.next_time + task.drift:
        return low, high
    try:
        nearer = _cut(task.rooms, task.index, low.next_time + task.drift)
    except EventTimesUnknownError:
        if low.count == 0:
            raise
        return low, None
    return (low, nearer) if nearer.count > task.budget else (nearer, None)


def _beginning(rooms: Rooms, limit: Millis) -> _Cut | None:
    """Return the cut just before the earliest record that is to be read; `None`: nothing is.

    A partition of which no event time is known has no record that the limit could keep.
    """
    reached = [each.reached(start) for each, start, end in zip(*rooms) if end > start]
    if not reached:
        return None
    earliest = min(limit if time is None else time for time in reached)
    return _Cut(earliest - 1, rooms.starts, 0, earliest)


def _unlocated(rooms: Rooms) -> Partition | None:
    """Return a partition that may begin earlier than is known: what is filled in proportion could pass it."""
    unknown = ((each, end) for each, start, end in zip(*rooms) if end > start and each.reached(start) is None)
    return next((each.partition for each, end in unknown if not each.has_no_times(end)), None)


def _forward(low: _Cut, budget: int, pace: float) -> Millis:
    return max(low.next_time, low.time + max(1, round((AIM_PART * budget - low.count) * pace)))


def _between(low: _Cut, high: _Cut, budget: int, *, halve: bool) -> Millis:
    part = 0.5 if halve else (AIM_PART * budget - low.count) / (high.count - low.count)
    guess = low.time + round((high.time - low.time) * part)
    return min(max(guess, low.next_time), high.time - 1)


def _cut(rooms: Rooms, index: TimeIndex, time: Millis) -> _Cut:
    """Cut all partitions at one event time. One that is beyond it already, or known not to reach it, is not asked."""
    partitions, starts, most = rooms
    ends = [end if each.has_none_later(end, time) else start for each, start, end in zip(*rooms)]
    open_ones = [n for n, end in enumerate(ends) if end < most[n]]
    asked = [n for n in open_ones if (partitions[n].reached(starts[n]) or 0) <= time]
    found = index.first_later({partitions[n].partition: time for n in asked})
    for n in asked:
        later = found[partitions[n].partition]
        ends[n] = most[n] if later is None else min(max(later.offset, starts[n]), most[n])
    left = (partitions[n].reached(ends[n]) for n in open_ones if ends[n] < most[n])
    next_time = min((t for t in left if t is not None and t > time), default=time)
    return _Cut(time, ends, sum(ends) - sum(starts), next_time)


def _filled(low: _Cut, high: _Cut, budget: int) -> Ends:
    """Return the ends of `low`, moved towards those of `high` until the budget is used up."""
    rooms = {n: max(0, to - end) for n, (end, to) in enumerate(zip(low.ends, high.ends))}
    more = divide(budget - low.count, rooms, rooms, sum(low.ends))
    return [end + more[n] for n, end in enumerate(low.ends)]
