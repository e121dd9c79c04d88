"""Whether sources are read side by side as their groups declare, and who waits for whom.

The driver plans by alignment and reports, for each member, the limit of its group and its drift: its event time minus
that of the slowest member that counts. All that is left to do here is to compare, and to name: a member that waits,
the one that it waits for, a source that has no event time to be aligned by, and one whose silence holds back Spark's
own watermark although the group does not wait for it any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from headgate.api.application import SparkApplication
from headgate.api.duration import format_duration
from headgate.api.query import Query
from headgate.api.source import Alignment, Source
from headgate.api.status import AlignmentStatus
from headgate.reconcile.answers import FALSE, TRUE, UNKNOWN, Answer
from headgate.reconcile.observe import Seen
from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from headgate.reconcile.times import duration_text, moment, seconds
from headgate.reconcile.track import HELD_BY_ALIGNMENT, Track

WITHIN_DRIFT: Final = "WithinDrift"
"""No member of a group has been read further ahead of the slowest one than `maxDrift`."""
DRIFT_OVER_LIMIT: Final = "DriftOverLimit"
"""A member was read further; nothing more is planned for it until the slowest has come near."""
CANNOT_JOIN: Final = "CannotJoin"
"""A source declares a group, and has no event time that its batches could end by; the others are aligned."""
MAX_DRIFT_DIFFERS: Final = "MaxDriftDiffers"
"""Members of one group declare different `maxDrift`; the smallest holds."""
NO_LIMIT_HOLDS: Final = "NoLimitHolds"
"""Fewer than two members of a group have records to be read, or event times that are known."""
NOTHING_KNOWN: Final = "MetricsUnavailable"

SHORTEST_IDLE: Final = timedelta(seconds=1)
"""`alignment.idleAfter` where it is not set is `maxDrift`, and at least this."""

LANES_WITHOUT_EVENT_TIME: Final[Mapping[str, str]] = {
    "rows": "its batches end after a number of rows",
    "files": "its batches end with a file",
    "gate": "it is read as a whole or not at all",
    "none": "nothing governs its batches",
}
"""Why a source that is planned in this way has no event time at which a batch could end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One source of a group, and what is reported of it."""

    query: str
    source: Source
    alignment: Alignment
    reported: SourceMetrics | None
    held_by: str | None

    @property
    def name(self) -> str:
        """Query and source, as people write it."""
        return f"{self.query}/{self.source.name}"

    @property
    def drift(self) -> float | None:
        """Seconds ahead of the slowest member that counts; negative for one that counts no more."""
        return None if self.reported is None else self.reported.alignment_drift_seconds

    @property
    def limit(self) -> float | None:
        """Event time (Unix time) beyond which nothing is planned."""
        return None if self.reported is None else self.reported.alignment_limit

    @property
    def is_silent(self) -> bool:
        """Whether the group does not wait for it, since nothing comes from it."""
        if self.reported is None:
            return False
        idle_after = self.alignment.idle_after or max(self.alignment.max_drift, SHORTEST_IDLE)
        idle = self.reported.idle_seconds
        is_idle = idle is not None and idle >= idle_after.total_seconds()
        return is_idle or self.reported.finished is True or self.reported.paused is True

    @property
    def why_it_cannot_join(self) -> str | None:
        """Return what it lacks, where it takes no part and will not."""
        if self.reported is None or self.drift is not None or self.limit is not None:
            return None
        return LANES_WITHOUT_EVENT_TIME.get(self.reported.lane or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The members of one name, over all queries of the driver."""

    name: str
    members: tuple[Member, ...]

    @property
    def max_drifts(self) -> tuple[timedelta, ...]:
        """What the members declare, the smallest first; that one holds."""
        return tuple(sorted({member.alignment.max_drift for member in self.members}))

    @property
    def slowest(self) -> Member | None:
        """The member that the others wait for: of those that count, the one without drift."""
        known = [(member.drift, member) for member in self.members if member.drift is not None]
        counting = [(drift, member) for drift, member in known if drift >= 0 and not member.is_silent]
        return min(counting or known, key=lambda one: one[0], default=(0.0, None))[1]


def groups(application: SparkApplication, seen: Seen, tracks: Mapping[str, Track]) -> tuple[Group, ...]:
    """Return the groups that the resource declares, in its order."""
    members: dict[str, list[Member]] = {}
    for query in application.spec.queries:
        for member in _members(query, seen.query(query.name), tracks.get(query.name, Track())):
            members.setdefault(member.alignment.group, []).append(member)
    return tuple(Group(name=name, members=tuple(found)) for name, found in members.items())


def _members(query: Query, reported: QueryMetrics | None, track: Track) -> Iterator[Member]:
    for source in query.sources:
        if source.alignment is not None:
            yield Member(
                query=query.name,
                source=source,
                alignment=source.alignment,
                reported=None if reported is None else reported.sources.get(source.name),
                held_by=track.held_by.get(source.name),
            )


def alignment_statuses(found: tuple[Group, ...]) -> Mapping[tuple[str, str], AlignmentStatus]:
    """Return where each member stands, by query and source."""
    return {
        (member.query, member.source.name): AlignmentStatus(
            group=group.name,
            limit=None if member.limit is None else moment(member.limit),
            drift=seconds(member.drift),
            held_by=_waits_for(member, group),
        )
        for group in found
        for member in group.members
    }


def _waits_for(member: Member, group: Group) -> str | None:
    slowest = group.slowest
    if member.held_by != HELD_BY_ALIGNMENT or slowest is None or slowest.name == member.name:
        return None
    return slowest.name


def watermark_holder(query: str, found: tuple[Group, ...]) -> str | None:
    """Return the source of a query that is silent while others of its group go on.

    The group does not wait for it; Spark's watermark, which is that of the slowest source, does. One that is known to
    be ahead of the others holds nothing back yet.
    """
    for group in found:
        of_query = [member for member in group.members if member.query == query]
        behind = [member for member in of_query if member.is_silent and not _is_ahead(member)]
        if behind and not all(member.is_silent for member in of_query):
            return min(behind, key=lambda member: member.drift or 0.0).source.name
    return None


def _is_ahead(member: Member) -> bool:
    return member.drift is not None and member.drift >= 0


def aligned(found: tuple[Group, ...], seen: Seen) -> Answer | None:
    """Return the condition; `None` where no group is declared."""
    if not found:
        return None
    if seen.metrics is None:
        return Answer("Aligned", UNKNOWN, NOTHING_KNOWN, "nothing is known that could tell")
    for status, reason, find in CHECKS:
        if sentences := [sentence for group in found for sentence in find(group)]:
            return Answer("Aligned", status, reason, "; ".join(sentences))
    return Answer("Aligned", TRUE, WITHIN_DRIFT, "; ".join(map(_within, found)))


def _cannot_join(group: Group) -> Iterator[str]:
    for member in group.members:
        if (why := member.why_it_cannot_join) is not None:
            yield (
                f"source {member.name} cannot join group {group.name}: {why}, at no event time; take alignment out "
                "of it, or read it from Kafka. The others of the group are aligned without it"
            )


def _ahead(group: Group) -> Iterator[str]:
    limit = group.max_drifts[0].total_seconds()
    for member in group.members:
        if member.drift is not None and member.drift > limit:
            slowest = "" if group.slowest is None else f"; it waits for {group.slowest.name}"
            yield (
                f"source {member.name} is {duration_text(member.drift)} ahead in group {group.name}, which allows "
                f"{duration_text(limit)}{slowest}"
            )


def _unlimited(group: Group) -> Iterator[str]:
    if all(member.limit is None for member in group.members):
        yield (
            f"no limit holds in group {group.name}: fewer than two of its members have records to read and event "
            "times that are known"
        )


def _differing(group: Group) -> Iterator[str]:
    smallest, *others = map(format_duration, group.max_drifts)
    if others:
        yield (
            f"the members of group {group.name} declare different maxDrift: {smallest} holds, the smallest, and not "
            f"{' or '.join(others)}; declare the same for all"
        )


CHECKS: Final = (  # the first that finds something is the condition
    (FALSE, CANNOT_JOIN, _cannot_join),
    (FALSE, DRIFT_OVER_LIMIT, _ahead),
    (UNKNOWN, NO_LIMIT_HOLDS, _unlimited),
    (TRUE, MAX_DRIFT_DIFFERS, _differing),
)


def _within(group: Group) -> str:
    limit = format_duration(group.max_drifts[0])
    return f"the {len(group.members)} sources of group {group.name} are within {limit} of each other"
