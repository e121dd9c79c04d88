"""One batch divided among the sources that may read: grant, rates and limits come together here.

Values in, values out. `planner.reading` describes each source as a `ReadingSource` and turns allotments into answers.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.shares import share_grant


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
    new_splits: bool = False
    """There are splits that have no position yet, which come along with any batch, whole."""
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
            Allotment(count=0) if reader.new_splits else Allotment(hold=HeldBy.NOTHING_PENDING, counted=True)
        )
    return None


def _shared(reader: ReadingSource, share: int) -> Allotment:
    counted = reader.pending is not None and not reader.new_splits
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
