"""Who gets what of a grant: sources first, then the partitions of each; grant, rates and limits come together here.

Shares go by what is pending, so that everything ends at the same time, and what one cannot use goes to the others.
Sums are exact (largest remainder). As long as there is a record for each, each gets one, and where there is not,
turns are taken: else ten records beside ten million would hold the watermark back for ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.model import Position

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSource:
    """A source that may read, as it is at a planning. Sizes are records."""

    name: str
    hold: HeldBy | None = None
    """It cannot be planned for now, for this reason."""
    takes_all: bool = False
    """It can only be let go, not bounded."""
    pending: int | None = None
    """Between its position and its latest; `None`: cannot be counted."""
    reach: int | None = None
    """What of that lies before the ends that alignment, or the span of a backlog, sets."""
    sliced: HeldBy | None = None
    """`reach` is its share already, a part of one time slice for all its group; this is why it is not larger."""
    new_partitions: bool = False
    """There are partitions that have no position yet, which come along with any batch, whole."""
    allowance: int | None = None
    """What its rate limit allows in one batch; `None`: any number."""
    tokens: int | None = None
    """What is in its bucket; `None`: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """What one source may read in one batch."""

    count: int | None = None
    """Records; `None`: everything."""
    hold: HeldBy | None = None
    """Nothing at all, for this reason."""
    left: HeldBy | None = None
    """Why records remain that were there at the planning; `None`: none do, or it cannot be known."""
    counted: bool = False
    """Whether `left` is certain."""
    capped: bool = False
    """`recordsPerCheckpoint` kept it from being larger."""

    @property
    def drains(self) -> bool:
        """Whether it surely reads up to the latest offset."""
        return self.counted and self.left is None


def allot(readers: Iterable[ReadingSource], grant: int) -> dict[str, Allotment]:
    """Divide `grant` records; the first readers are served where it is smaller than the crowd."""
    free = {r.name: r for r in readers}
    settled = {name: a for name, r in free.items() if (a := _settled(r)) is not None}
    sharing = {name: r for name, r in free.items() if name not in settled}
    grant -= sum(allotment.count or 0 for allotment in settled.values())
    reach = {name: r.reach for name, r in sharing.items()}
    shares = share_grant(grant, reach, {name: r.allowance for name, r in sharing.items()})
    return settled | {name: _shared(r, shares[name]) for name, r in sharing.items()}


def _settled(reader: ReadingSource) -> Allotment | None:
    """Return the allotment of a reader that takes no share of the grant."""
    if reader.hold is not None:
        left = None if reader.hold is HeldBy.NOTHING_PENDING else reader.hold
        return Allotment(hold=reader.hold, left=left, counted=True)
    if reader.takes_all:
        return Allotment()
    if reader.sliced is not None and reader.pending:
        return _shared(reader, reader.reach or 0)
    if reader.pending == 0 and reader.allowance != 0:
        return (
            Allotment(count=0)
            if reader.new_partitions
            else Allotment(hold=HeldBy.NOTHING_PENDING, counted=True)
        )
    return None


def _shared(reader: ReadingSource, share: int) -> Allotment:
    counted = reader.pending is not None and not reader.new_partitions
    left = None if share == reader.pending else _binding(reader, share)
    if share == 0:
        return Allotment(hold=left or HeldBy.NOTHING_PENDING, left=left, counted=counted)
    capped = left is HeldBy.RATE_LIMIT and (reader.tokens is None or share < reader.tokens)
    return Allotment(count=share, left=left if counted else None, counted=counted, capped=capped)


def _binding(reader: ReadingSource, share: int) -> HeldBy:
    """Return what kept the share from being larger."""
    if reader.sliced is not None:
        return reader.sliced
    if reader.allowance is not None and share >= reader.allowance:
        return HeldBy.RATE_LIMIT
    if reader.reach is not None and share >= reader.reach:
        return HeldBy.ALIGNMENT
    return HeldBy.GRANT


def share_grant(grant: int, pending: Mapping[K, int | None], most: Mapping[K, int | None]) -> dict[K, int]:
    """Divide `grant` records over sources.

    `pending` are their records within reach, `None`: not known, could be any number. `most` is what their rate limits
    allow, `None`: everything. A source that cannot tell what is pending has an equal share set aside, and what the
    others leave. One that may read nothing now makes the shares of the others no smaller.
    """
    caps = {
        name: min((n for n in (records, most[name]) if n is not None), default=grant)
        for name, records in pending.items()
    }
    open_for = [name for name, cap in caps.items() if cap > 0]
    if grant <= len(open_for):
        return divide(grant, dict.fromkeys(pending, 1), caps)
    known = {name: records for name in open_for if (records := pending[name]) is not None}
    unknown = {name: 1 for name in open_for if name not in known}
    equal_shares = grant * len(unknown) // max(1, len(open_for))
    set_aside = sum(divide(equal_shares, unknown, caps).values())
    of_known = divide(grant - set_aside, known, caps)
    of_unknown = divide(grant - sum(of_known.values()), unknown, caps)
    return {name: of_known.get(name, 0) + of_unknown.get(name, 0) for name in pending}


def room(start: Position, latest: Position, *bounds: Position) -> dict[str, int]:
    """Return for each partition how many records lie between `start` and the nearest of `latest` and `bounds`.

    A partition that `latest` does not name is gone, and one that ends before it starts was created anew: neither
    has anything to read. One without a start is not ours to begin: its source tells the start first.
    """
    ends = latest
    for bound in bounds:
        ends = {p: end if (to := bound.get(p, end)) > end else to for p, end in ends.items()}
    return {p: end - begin if (end := ends.get(p, begin)) > begin else 0 for p, begin in start.items()}


def ends_after(
    count: int, start: Position, rooms: Mapping[str, int], had_turn: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the end of each partition after `count` records more, divided by `rooms`; never before its start."""
    is_all = count == sum(rooms.values())
    shares = rooms if is_all else divide(count, rooms, rooms, sum(start.values()), had_turn)
    return {partition: begin + shares.get(partition, 0) for partition, begin in start.items()}


def divide(
    total: int,
    weights: Mapping[K, int],
    caps: Mapping[K, int],
    turn: int = 0,
    had_turn: Mapping[K, int] | None = None,
) -> dict[K, int]:
    """Divide `total` by `weights`; nobody gets more than its cap.

    The sum is `min(total, sum of caps)` exactly (over those with a weight). Where there is less than one record for
    each, those come first whose last turn, by `had_turn`, is the longest ago. Of equals `turn` says with which of all
    keys it begins, whether that one has something or not: pass how many records they had before, and nobody waits for
    ever, whoever comes and goes, and after a restart. Alone it is uneven: who comes behind idle ones has their turns.
    """
    open_for = [key for key, weight in weights.items() if weight > 0 and caps[key] > 0]
    total = max(0, total)
    shares = dict.fromkeys(weights, 0)
    if total < len(open_for):
        places = {key: (place - turn) % len(weights) for place, key in enumerate(weights)}
        had = had_turn or {}
        open_for.sort(key=lambda key: (had.get(key, 0), places[key]))
    shares |= dict.fromkeys(open_for[:total], 1)
    if total <= len(open_for):
        return shares
    left = {key: caps[key] - 1 for key in open_for}
    weights_left = {key: max(1, weights[key] - 1) for key in open_for}
    for key, more in _proportional(total - len(open_for), weights_left, left).items():
        shares[key] += more
    return shares


def _proportional(total: int, weights: Mapping[K, int], caps: Mapping[K, int]) -> dict[K, int]:
    """Fill up to the caps those whose part by weight reaches them; the others share the rest by weight."""
    shares: dict[K, int] = {}
    active = dict(caps)
    while active:
        weight = sum(weights[key] for key in active)
        full = {key: cap for key, cap in active.items() if cap * weight <= total * weights[key]}
        if not full:
            return shares | _largest_remainder(total, {key: weights[key] for key in active})
        shares |= full
        total -= sum(full.values())
        active = {key: cap for key, cap in active.items() if key not in full}
    return shares


def _largest_remainder(total: int, weights: Mapping[K, int]) -> dict[K, int]:
    whole = sum(weights.values())
    parts = {key: divmod(total * weight, whole) for key, weight in weights.items()}
    shares = {key: quotient for key, (quotient, _) in parts.items()}
    by_remainder = sorted(parts, key=lambda key: parts[key][1], reverse=True)
    for key in by_remainder[: total - sum(shares.values())]:
        shares[key] += 1
    return shares
