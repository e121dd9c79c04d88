"""The steps of a planning, each with its question.

A step takes a draft, and returns one that is a step further. The query is left as it was, and is moved on only when
the draft is kept (`query`); but what alignment promises to the other queries of a group stands from its step on.
Which steps a query takes is in `pipelines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.alignment_member import Aligned, Part
from headgate_spark.planner.booking import Question
from headgate_spark.planner.ending import can_begin_empty
from headgate_spark.planner.hybrid import Hybrid
from headgate_spark.planner.limits import Span, fixed, limits_of
from headgate_spark.planner.model import TakeUpTo, TriggerKind
from headgate_spark.planner.shares import Allotment, ReadingSource, allot
from headgate_spark.planner.sizing import Grant, target_seconds, with_remainder
from headgate_spark.planner.source import SourceState
from headgate_spark.planner.state import InForce, QueryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A planning, as far as its steps have come."""

    asked: Question
    """In whose round it is: what was planned in this trigger before is there."""
    hybrid: Hybrid
    in_force: InForce
    span: Span
    parts: Mapping[str, Part]
    """What alignment lets sources read; one without a part is free."""
    held: HeldBy | None = None
    """Why nothing is planned after all."""
    reading: tuple[SourceState, ...] = ()
    """The sources that are planned now."""
    readers: tuple[ReadingSource, ...] = ()
    """What those sources could read, in the same order."""
    grant: Grant | None = None
    """`None`: nothing bounds the batch, or nothing is planned."""
    shares: Mapping[str, Allotment] = field(default_factory=dict)
    """What each of them gets."""

    @classmethod
    def of(cls, asked: Question) -> Draft:
        query, current = asked.query, asked.round
        parts = {name: part for name, part in current.parts.items() if name in current.plan}
        return cls(asked=asked, hybrid=query.hybrid, in_force=query.in_force, span=query.span, parts=parts)

    @property
    def query(self) -> QueryState:
        return self.asked.query

    @property
    def now(self) -> float:
        return self.asked.now

    @property
    def plan(self) -> dict[str, Allotment]:
        """All that is planned in this trigger."""
        return {**self.asked.round.plan, **self.shares}

    @property
    def handed_out(self) -> int:
        """Records planned in this trigger before."""
        return sum(allotment.count or 0 for allotment in self.asked.round.plan.values())


Step = Callable[[Draft], Draft]


# gate: in a run that ends by itself it is always open


def empty_batch_first(draft: Draft) -> Draft:
    """Hold everything where it is not known yet what all sources have, and where an empty batch can come first.

    What one source is given of a grant the others are not: the first one would read all of it, far ahead of them,
    and take the watermark with it. So it is with a batch that spans a backlog where `batch.maxRecords` cuts it.
    """
    query, current = draft.query, draft.asked.round
    if current.plan or not can_begin_empty(query, current):
        return draft
    reading = [state for state in query.sources.values() if state.may_read(draft.hybrid)]
    is_blind = len(reading) > 1 and not all(_is_known(state) for state in reading)
    return replace(draft, held=HeldBy.FIRST_LOOK) if is_blind else draft


# history: which sources wait behind another?


def history(draft: Draft) -> Draft:
    """Release what waits for a history that is at its end."""
    told = (s for s in _histories(draft) if s.seen or s.position is not None)
    return replace(draft, hybrid=draft.hybrid.advanced({state.name: state.progress for state in told}))


def _histories(draft: Draft) -> Iterator[SourceState]:
    return (state for state in draft.query.sources.values() if draft.hybrid.is_history(state.name))


def history_at_once(draft: Draft) -> Draft:
    """Release what waits for a history at its end; one that cannot be counted is there after one batch.

    There would be no further trigger to see that it has nothing more. So it is with one that is released now, too.
    """
    told = [s for s in _histories(draft) if s.seen or s.position is not None or not s.is_counted]

    def advanced(hybrid: Hybrid) -> Hybrid:
        return hybrid.advanced(
            {
                s.name: s.progress
                if s.is_counted or not s.may_read(hybrid)
                else replace(s.progress, exhausted=True)
                for s in told
            }
        )

    hybrid = advanced(draft.hybrid)
    while (further := advanced(hybrid)) != hybrid:
        hybrid = further
    return replace(draft, hybrid=hybrid)


# verdict: which interval and which rates hold? The end of a history can be the end of a backlog.


def verdict(draft: Draft) -> Draft:
    """Put in force what the document says, and what the histories make of it."""
    in_force = draft.query.to_be_in_force(draft.hybrid, draft.now)
    return replace(draft, in_force=in_force, span=draft.span if in_force.spans else {})


# reading: whose position is known, and who may read?


def seen(draft: Draft) -> Draft:
    """Plan for the sources that Spark has asked, and that neither a person nor a history holds."""
    return _reading(draft, lambda state: state.seen)


def known(draft: Draft) -> Draft:
    """Plan for all sources of which it is known what they have, whether Spark has asked them or not."""
    return _reading(draft, _is_known)


def _is_known(state: SourceState) -> bool:
    """Tell whether it is known what a source has. One that cannot be counted need not be asked.

    In a run that ends by itself Spark asks a source only once the one before it has its answer, and that is a part of
    what all of them have.
    """
    return state.seen or state.latest is not None or not state.is_counted


def _reading(draft: Draft, is_known: Callable[[SourceState], bool]) -> Draft:
    asked = draft.asked  # the others have their answer, or their plan, in this trigger
    answered = (asked.round.asked - {asked.source.name}) | asked.round.plan.keys()
    open_for = (s for s in draft.query.sources.values() if is_known(s) and s.name not in answered)
    return replace(draft, reading=tuple(state for state in open_for if state.may_read(draft.hybrid)))


def everything(draft: Draft) -> Draft:
    """Let all of them read whatever they have."""
    return replace(draft, shares={state.name: Allotment() for state in draft.reading})


# reach: which ends may not be passed, whatever the grant?


def span(draft: Draft) -> Draft:
    """Fix the ends of a backlog that is read in one batch."""
    if not draft.in_force.spans or not draft.reading:
        return draft
    query = draft.query
    return replace(draft, span=fixed(draft.span, draft.reading, query.sources.values(), query.snapshots))


def reach(draft: Draft) -> Draft:
    """Find out what each source could read."""
    return _reach(draft, draft.in_force.look_seconds)


def reach_of_all(draft: Draft) -> Draft:
    """Find out what each source could read; a history that cannot be counted is read whole, whatever its size."""
    return _reach(draft, 0.0, is_whole=draft.hybrid.is_history)


def _reach(draft: Draft, look: float, is_whole: Callable[[str], bool] = lambda _: False) -> Draft:
    def reader(state: SourceState) -> ReadingSource:
        name, part = state.name, draft.parts.get(state.name)
        if draft.query.alignment.rests(name, draft.now):
            return ReadingSource(name=name, hold=HeldBy.ALIGNMENT)
        if draft.query.snapshots.waits(name):
            return ReadingSource(name=name, hold=HeldBy.SNAPSHOT)
        sliced = None if part is None else part.left
        ends = limits_of(name, draft.span, draft.parts)
        return state.reach(ends, draft.now, sliced=sliced, look=look, whole=is_whole(name))

    return replace(draft, readers=tuple(map(reader, draft.reading)))


# rate: what do the rate limits allow?


def rate(draft: Draft) -> Draft:
    """Put each source under its limit."""
    rates = draft.in_force.rates
    both = zip(draft.readers, draft.reading)
    return replace(draft, readers=tuple(s.rated(r, rates[s.name], draft.now) for r, s in both))


# grant: how many records may the batch have?


def grant(draft: Draft) -> Draft:
    """Size the batch by what batches have taken."""
    batch, in_force = draft.query.settings.batch, draft.in_force
    return _granted(draft, target_seconds(in_force.intervals, in_force.backlog, batch))


def grant_without_gate(draft: Draft) -> Draft:
    """Size a batch where no record waits for a gate: outside of a backlog, `targetDuration` is the target.

    Where a source cannot be counted none is left for its turn, whatever bounds the batch: should those before it have
    nothing, the run would end with it unread.
    """
    target = draft.query.settings.batch.target_seconds
    sized = grant(draft) if draft.in_force.backlog else _granted(draft, target)
    is_blind = any(r.hold is None and r.reach is None and not r.takes_all for r in draft.readers)
    was_blind = any(a.hold is None and not a.counted for a in draft.asked.round.plan.values())
    if sized.grant is None or not (is_blind or was_blind):
        return sized
    return replace(sized, grant=replace(sized.grant, records=max(sized.grant.records, _one_each(draft))))


def _granted(draft: Draft, target: float) -> Draft:
    if not draft.reading:
        return draft
    batch, sizer = draft.query.settings.batch, draft.query.sizer
    reaches = [r.reach for r in draft.readers if r.hold is None and not r.takes_all]
    counts = [records for records in reaches if records is not None]
    pending = sum(counts) + draft.handed_out if len(counts) == len(reaches) else None
    if draft.in_force.spans:
        most = min(batch.max_records, sizer.memory.halved_to or batch.max_records)
        return replace(draft, grant=Grant(max(1, min(most if pending is None else pending, most)), None))
    granted = sizer.grant(target, batch, _one_each(draft))
    if pending is not None and draft.in_force.backlog:
        granted = with_remainder(granted, pending, batch, sizer.memory)
    return replace(draft, grant=granted)


def _one_each(draft: Draft) -> int:
    """Return the records of a batch that has one of each source that may read."""
    return draft.handed_out + sum(r.hold is None and r.reach != 0 for r in draft.readers)


# shares: who gets what?


def shares(draft: Draft) -> Draft:
    """Divide what is left of the grant."""
    if draft.grant is None:
        return draft
    left = draft.grant.records - draft.handed_out
    readers: Sequence[ReadingSource] = draft.readers
    if left < len(readers):
        readers = sorted(readers, key=lambda reader: draft.query.turn_of(reader.name))
    return replace(draft, shares=allot(readers, left))


# alignment: how much of that lies in one slice of event time?


def aligned(*again: Step) -> Step:
    """Return the step that cuts a batch for the alignment groups, and takes some steps `again` with what is left."""

    def alignment(draft: Draft) -> Draft:
        if not draft.reading:
            if not any(state.may_read(draft.hybrid) for state in draft.query.sources.values()):
                _cut(draft)  # what waits behind a history that is paused holds nobody
            return draft
        if not draft.query.alignment.has_members:
            return draft
        draft = replace(draft, parts={**draft.parts, **_cut(draft)})
        for step in again:
            draft = step(draft)
        if any(allotment.hold is None for allotment in draft.plan.values()):
            return draft
        # a member at its end holds those before theirs: what has arrived there lets all go on
        return replace(draft, span={})

    return alignment


def _cut(draft: Draft) -> dict[str, Part]:
    """Return what alignment lets each member read of what the grant would give it."""
    query = draft.query
    views = [_view(draft, state) for state in query.sources.values() if query.alignment.is_member(state.name)]
    counts = {name: allotment.count or 0 for name, allotment in draft.shares.items()}
    return query.alignment.cut(views, counts, draft.now)


def _view(draft: Draft, state: SourceState) -> Aligned:
    """Return a source for its alignment group: at its planned position."""
    batch = draft.asked.booking.batch
    take = None if batch is None else batch.takes.get(state.name)
    return Aligned(
        name=state.name,
        start=take.ends if isinstance(take, TakeUpTo) else state.position,
        latest=state.latest,
        rooms=state.rooms(*limits_of(state.name, draft.span, draft.parts))
        if state.name in draft.shares
        else {},
        allowance=draft.in_force.rates[state.name].allowance(draft.now),
        released=not state.may_read(draft.hybrid),
        ends_at_latest=draft.query.settings.trigger.kind is TriggerKind.AVAILABLE_NOW,
    )
