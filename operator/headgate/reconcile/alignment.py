"""Whether sources are read side by side as their groups declare, and who waits for whom.

The driver plans by alignment and reports how each member stands: the limit of its group, how far it is ahead of the
slowest one, and which one that is. What is left to do here is to compare that with what was declared, and to say what
a person has to know: a member beyond the limit, one that cannot be aligned and why, drifts that differ in a group.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from headgate.api.annotations import SourceId
from headgate.api.application import SparkApplication
from headgate.api.duration import format_duration
from headgate.api.source import Alignment, Source
from headgate.api.status import AlignmentStatus
from headgate.reconcile.answers import FALSE, TRUE, UNKNOWN, Untimed, not_known
from headgate.reconcile.observe import Seen
from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from headgate.reconcile.times import duration_text, measured, moment
from headgate.reconcile.track import Track
from headgate_contract.held import HeldBy

WITHIN_DRIFT: Final = "WithinDrift"
"""No member of a group has been read further ahead of the slowest one than `maxDrift`."""
DRIFT_OVER_LIMIT: Final = "DriftOverLimit"
"""A member was read further; nothing more is planned for it until the slowest has come near."""
CANNOT_JOIN: Final = "CannotJoin"
"""A source declares a group, and has no event time that its batches could end by; the others are aligned."""
MAX_DRIFT_DIFFERS: Final = "MaxDriftDiffers"
"""Members of one group declare different `maxDrift`; the smallest holds."""
WATERMARK_HELD_BY: Final = "WatermarkHeldBy"
"""A silent member is not waited for by its group, but by Spark's own watermark, so that state grows."""
EVENT_TIME_UNKNOWN: Final = "EventTimeUnknown"
"""A member waits for event times that its group needs, and that are not known yet."""
EVENT_TIME_TOO_FAR_AHEAD: Final = "EventTimeTooFarAhead"
"""A partition has a record that is dated further ahead than `eventTime.maxFuture`; it does not count."""
NO_LIMIT_HOLDS: Final = "NoLimitHolds"
"""Fewer than two members of a group have records to be read, or event times that are known."""

NO_EVENT_TIME_IN: Final[Mapping[str, str]] = {
    "rows": "its batches end after a number of rows, at no event time",
    "files": "its batches end with a file, at no event time",
    "gate": "it is read as a whole or not at all",
    "none": "nothing governs its batches",
    "offsets": "it has no event times; only Kafka sources have them",
}
"""Why a source takes no part, by the read limit with which it is planned."""
_ONLY_KAFKA: Final = "take alignment out of it, or read it from Kafka"
_BY_TIMESTAMP: Final = (
    "the driver's log says why; correct eventTime, have the job register a decoder, or leave out eventTime.column to "
    "align it by the timestamps of its records"
)
_GIVE_TIMESTAMPS: Final = (
    "give its records timestamps (message.timestamp.type of the topic) or set eventTime.column"
)


def stands(reported: SourceMetrics) -> bool:
    """Return whether the driver reports how a member stands, as it does from its first planning on."""
    known = (reported.alignment_limit, reported.alignment_floor, reported.alignment_held_by)
    return any(one is not None for one in known)


def takes_part(reported: SourceMetrics) -> bool:
    """Return whether the driver asks for its event times: then it reports how many partitions have none, or 0."""
    return stands(reported) or reported.unreadable_partitions is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One source of a group, and what is reported of it."""

    query: str
    source: Source
    alignment: Alignment
    reported: SourceMetrics
    held_by: str | None
    holds_watermark: bool
    """Whether it is the silent source on which the watermark of its query waits."""

    @property
    def name(self) -> str:
        return f"{self.query}/{self.source.name}"

    @property
    def slowest(self) -> str | None:
        """What its group waits for, as people write it: a member, and which of its partitions."""
        member, partition = self.reported.alignment_held_by, self.reported.alignment_held_by_partition
        return member if member is None or partition is None else f"{member} (partition {partition})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The members of one name, over all queries of the driver."""

    name: str
    members: tuple[Member, ...]
    strangers: tuple[Member, ...]
    """Those whom the driver leaves out."""

    @property
    def max_drifts(self) -> tuple[timedelta, ...]:
        """What the members declare, the smallest first; that one holds."""
        return tuple(sorted({member.alignment.max_drift for member in self.members}))


def groups(application: SparkApplication, seen: Seen, tracks: Mapping[str, Track]) -> tuple[Group, ...]:
    """Return the groups that the resource declares, in its order."""
    found: dict[str, list[Member]] = {}
    strangers: set[str] = set()
    for query in application.spec.queries:
        reported = seen.query(query.name) or QueryMetrics(sources={})
        held_by = tracks.get(query.name, Track()).held_by
        members = [
            Member(
                query=query.name,
                source=source,
                alignment=source.alignment,
                reported=reported.sources.get(source.name, SourceMetrics()),
                held_by=held_by.get(source.name),
                holds_watermark=reported.watermark_held_by == source.name,
            )
            for source in query.sources
            if source.alignment is not None
        ]
        planned = {member.name for member in members if _is_planned(member, seen)}
        strangers |= {member.name for member in members if _is_left_out(member, members, planned)}
        for member in members:
            found.setdefault(member.alignment.group, []).append(member)
    return tuple(
        Group(
            name=name,
            members=tuple(members),
            strangers=tuple(member for member in members if member.name in strangers),
        )
        for name, members in found.items()
    )


def _is_planned(member: Member, seen: Seen) -> bool:
    """Whether something of it was planned, by a driver that knows of its alignment."""
    published, metrics = seen.published, seen.metrics
    if published is None or metrics is None or metrics.control_generation != published.generation:
        return False
    query = published.queries.get(member.query)
    control = None if query is None else query.sources.get(member.source.name)
    return control is not None and control.alignment is not None and bool(member.reported.planned_records)


def _is_left_out(member: Member, of_query: Sequence[Member], planned: Collection[str]) -> bool:
    """Whether the driver takes no notice of its alignment: it has `planned` it, or others of the query by theirs.

    What ends with a file or a row never takes part, so that this is known before.
    """
    if takes_part(member.reported) or member.reported.read_limit is None:
        return False
    has_been_asked = member.name in planned or any(stands(other.reported) for other in of_query)
    return member.reported.read_limit != "offsets" or has_been_asked


def alignment_statuses(found: tuple[Group, ...]) -> Mapping[SourceId, AlignmentStatus]:
    return {
        (member.query, member.source.name): _status(group, member)
        for group in found
        for member in group.members
    }


def _status(group: Group, member: Member) -> AlignmentStatus:
    reported = member.reported
    waits = member.held_by == HeldBy.ALIGNMENT
    return AlignmentStatus(
        group=group.name,
        limit=None if reported.alignment_limit is None else moment(reported.alignment_limit),
        drift=measured(reported.alignment_drift_seconds),
        held_by=reported.alignment_held_by if waits else None,
        held_by_partition=reported.alignment_held_by_partition if waits else None,
    )


def aligned(found: tuple[Group, ...], seen: Seen) -> Untimed | None:
    """Return the condition; `None` where no group is declared.

    Records that are too far ahead are named whatever else there is to say: they stay until they are removed.
    """
    if not found:
        return None
    if not seen.knows_all:
        return not_known("Aligned")
    for status, reason, find in CHECKS:
        if sentences := [sentence for group in found for sentence in find(group)]:
            also = [] if find is _far_ahead else [told for group in found for told in _far_ahead(group)]
            return Untimed("Aligned", status, reason, "; ".join([*sentences, *also]))
    return Untimed("Aligned", TRUE, WITHIN_DRIFT, "; ".join(map(_within, found)))


def _cannot_join(group: Group) -> Iterator[str]:
    for member in group.strangers:
        if (column := member.source.event_time.column) is not None:
            why, remedy = f"the driver cannot read its event time, {_place(member, column)}", _BY_TIMESTAMP
        else:
            why = NO_EVENT_TIME_IN.get(member.reported.read_limit or "", "its read limit is unknown")
            remedy = _ONLY_KAFKA
        others = len(group.members) > len(group.strangers)
        yield f"source {member.name} cannot join group {group.name}: {why}; {remedy}" + (
            ". The others of the group are aligned without it" if others else ""
        )
    for member in group.members:
        if count := member.reported.unreadable_partitions:
            column = member.source.event_time.column
            lack = (
                f"no record of theirs has a timestamp; {_GIVE_TIMESTAMPS}, or take alignment out of it"
                if column is None
                else f"no record of theirs that was looked at has an event time, {_place(member, column)}; "
                f"{_BY_TIMESTAMP}"
            )
            yield (
                f"{count:.0f} of the partitions of source {member.name}{_named(member.reported.unreadable)} cannot "
                f"join group {group.name}: {lack}. The others of the group are aligned without them"
            )


def _named(records: Mapping[str, float]) -> str:
    told = ", ".join(f"{partition} at offset {offset:.0f}" for partition, offset in sorted(records.items()))
    return f" ({told})" if told else ""


def _place(member: Member, column: str) -> str:
    return f"{column} of a payload in {member.source.event_time.format.value}"


def _ahead(group: Group) -> Iterator[str]:
    limit = group.max_drifts[0]
    for member in group.members:
        drift, slowest = member.reported.alignment_drift_seconds, member.slowest
        if drift is not None and drift > limit.total_seconds():
            yield (
                f"source {member.name} is {duration_text(drift)} ahead in group {group.name}, which allows "
                f"{format_duration(limit)}" + ("" if slowest is None else f"; it waits for {slowest}")
            )


def _unknown(group: Group) -> Iterator[str]:
    for member in group.members:
        if member.held_by == HeldBy.EVENT_TIME:
            by_timestamp = member.source.event_time.column is None
            yield (
                f"source {member.name} waits for event times that group {group.name} needs and that are not known "
                "yet; the driver's log says why: see that its brokers answer, "
                + (_GIVE_TIMESTAMPS if by_timestamp else "correct eventTime.column or eventTime.format")
                + ", or take alignment out of it"
            )


def _far_ahead(group: Group) -> Iterator[str]:
    for member in group.members:
        if records := member.reported.far_ahead:
            yield (
                f"source {member.name} has records dated further ahead than eventTime.maxFuture{_named(records)}, "
                f"which do not count in group {group.name}; correct the clock of their producer and have retention "
                "or kafka-delete-records remove them, or raise maxFuture if they are right"
            )


def _watermark(group: Group) -> Iterator[str]:
    for member in group.members:
        if member.holds_watermark:
            yield (
                f"source {member.name} is silent: group {group.name} goes on without it, and the watermark of query "
                f"{member.query} waits for it, so that state grows"
            )


def _unlimited(group: Group) -> Iterator[str]:
    if all(member.reported.alignment_limit is None for member in group.members):
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
    (UNKNOWN, EVENT_TIME_UNKNOWN, _unknown),
    (TRUE, WATERMARK_HELD_BY, _watermark),
    (UNKNOWN, NO_LIMIT_HOLDS, _unlimited),
    (TRUE, EVENT_TIME_TOO_FAR_AHEAD, _far_ahead),
    (TRUE, MAX_DRIFT_DIFFERS, _differing),
)


def _within(group: Group) -> str:
    limit = format_duration(group.max_drifts[0])
    slowest = next((member.slowest for member in group.members if member.slowest), None)
    return f"the {len(group.members)} sources of group {group.name} are within {limit} of each other" + (
        "" if slowest is None else f"; {slowest} is the slowest"
    )
