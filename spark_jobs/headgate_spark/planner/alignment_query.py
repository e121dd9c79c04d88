"""One query's side of alignment, as its planner sees it.

When the latest positions and the grant are known, `steps.aligned` has the batch cut, group by group (`cut`).
What cannot be found out in time holds the members of that group, and nobody else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Optional

from headgate_contract import AlignmentControl, EventTimeControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.alignment_member import Aligned, Membership, Part
from headgate_spark.planner.event_times import EventTimes, EventTimesUnknownError, Millis
from headgate_spark.planner.model import AlignmentFigures
from headgate_spark.planner.time_index import TimeIndex

Columns = Mapping[str, Optional[EventTimeControl]]
"""Where the members have their event times, by source; `None`: where the source itself can tell them."""


class QueryAlignment:
    """The memberships of one query."""

    def __init__(self, query: str, groups: Groups, times: EventTimes) -> None:
        self._query = query
        self._groups = groups
        self._times = times
        self._index = TimeIndex(times)
        self._memberships: dict[str, Membership] = {}
        self._group_of: dict[str, str] = {}
        self._columns: Columns = {}
        self._named: dict[str, Set[str]] = {}
        """The partitions of each source when it was last known which it has."""
        self.refused: Mapping[str, str] = {}
        """Sources that are declared as members and can never tell event times, and why."""

    # What it is told

    def control(self, sources: Mapping[str, SourceControl], now: float) -> None:
        controls = self._joining(sources)
        columns = {name: sources[name].event_time for members in controls.values() for name in members}
        before = self._columns
        elsewhere = {name for name in before.keys() & columns.keys() if before[name] != columns[name]}
        for source in self._group_of.keys() - columns.keys() | elsewhere:
            self._index.forget(source)
        self._columns = columns
        self._group_of = {name: group for group, members in controls.items() for name in members}
        self._groups.leave(self._query, stays_in=controls.keys())
        memberships, self._memberships = self._memberships, {}
        for group, members in controls.items():
            membership = memberships.get(group) or Membership(self._query, group, self._groups, self._index)
            self._memberships[group] = membership
            membership.join(members, [name for name in members if sources[name].paused], now)

    def forget(self, source: str) -> None:
        """Forget the event times of a source: its log is another."""
        self._index.forget(source)

    def leave(self) -> None:
        """The query has ended, or is not planned: nobody waits for it."""
        self._groups.leave(self._query)

    def commits_every(self, seconds: float | None, now: float) -> None:
        for membership in self._memberships.values():
            membership.commits_every(seconds, now)

    # What is asked of it

    @property
    def has_members(self) -> bool:
        return bool(self._group_of)

    def is_member(self, source: str) -> bool:
        return source in self._group_of

    def sharing_with(self, source: str) -> list[str]:
        """Return the sources that share with this one what they get; none where it is in no group."""
        group = self._group_of.get(source)
        return [name for name, other in self._group_of.items() if other == group]

    def rests(self, source: str, now: float) -> bool:
        """Tell whether the group of a source stands at its limit, and is not to be looked at again yet."""
        return source in self._group_of and self._memberships[self._group_of[source]].rests(now)

    def expect(self, sources: Sequence[str], now: float) -> None:
        """Take note that a planning of these sources is about to begin."""
        if members := [source for source in sources if source in self._group_of]:
            self._index.expect(members, now)

    @property
    def interval(self) -> float | None:
        """The smallest commit interval among the other queries of its groups; `None`: there is none."""
        return self._groups.interval_for(self._query, self._memberships)

    def cut(self, views: Sequence[Aligned], shares: Mapping[str, int], now: float) -> dict[str, Part]:
        """Return what alignment lets each source read; one that nothing limits is left out.

        `views` are all members of the query, `shares` what each would get of the grant. Members of one group share
        what they get together.
        """
        parts: dict[str, Part] = {}
        self._index.begin(now)
        self._forget_gone(views)
        for group, membership in self._memberships.items():
            members = [view for view in views if self._group_of.get(view.name) == group]
            if membership.rests(now):  # held even if another query lets it go on before this planning is over
                parts |= {view.name: Part(view.start or {}, HeldBy.ALIGNMENT) for view in members}
                continue
            budget = sum(shares.get(view.name, 0) for view in members)
            try:
                parts |= membership.cut(members, budget, now)
            except EventTimesUnknownError:
                parts |= {view.name: Part(view.start or {}, HeldBy.EVENT_TIME) for view in members}
        return parts

    def figures(self, source: str) -> AlignmentFigures | None:
        """Return how a source stands in its group; `None`: it is in none."""
        if source not in self._group_of:
            return None
        membership = self._memberships[self._group_of[source]]
        floor = membership.floor
        holder = floor.unknown or floor.holder
        sampled = self._times.sampled(source)
        return AlignmentFigures(
            limit=_seconds(membership.limit),
            floor=_seconds(floor.time),
            drift=_seconds(membership.drift(source)),
            held_by=None if holder is None else holder.name,
            held_by_partition=None if holder is None or holder.partition is None else holder.partition.name,
            out_of_orderness=None if sampled is None else _seconds(sampled.out_of_orderness),
            unreadable=None if sampled is None else sampled.unreadable,
            far_ahead={} if sampled is None else sampled.far_ahead,
        )

    def watermark_held_by(self, now: float) -> str | None:
        """Return the source on which Spark's watermark waits although no group does; `None`: there is none.

        A source that has been silent for `idleAfter` lets the others read on, but the watermark of the query is that
        of its slowest source, so the state of the others grows.
        """
        silent = {name: at for m in self._memberships.values() for name, at in m.silent(now).items()}
        return min(silent, key=lambda name: silent[name], default=None)

    # ------------------------------------------------------------------------------------------

    def _forget_gone(self, views: Sequence[Aligned]) -> None:
        """Forget the partitions that sources do not name any more."""
        for view in views:
            if view.latest is None:
                continue
            before, named = self._named.get(view.name, frozenset()), view.latest.keys()
            if before - named:
                self._index.keep(view.name, named)
            self._named[view.name] = named

    def _joining(self, sources: Mapping[str, SourceControl]) -> dict[str, dict[str, AlignmentControl]]:
        """Return the members by group; note why the other sources that should be cannot."""
        declared = {name: c.alignment for name, c in sources.items() if c.alignment is not None}
        told = {name: self._times.problem(name) for name in declared}
        self.refused = {name: problem for name, problem in told.items() if problem is not None}
        joining: defaultdict[str, dict[str, AlignmentControl]] = defaultdict(dict)
        for name, control in declared.items():
            if name not in self.refused:
                joining[control.group][name] = control
        return joining


def _seconds(time: Millis | None) -> float | None:
    return None if time is None else time / 1000
