"""The search for where a snapshot ends in one partition, by looking at few of its records. Pure, as `searching` is.

In the log of one connector all records of its snapshot come before all changes: it streams only when the snapshot is
over, and sends to a partition in order. So the end is found by halving what lies between a record of the snapshot and
a change: a log of a billion records takes thirty looks at one record each. Offsets at which there is no record
(markers, what compaction has removed) are passed over.

A log may hold more than one snapshot: a connector that begins anew, an ad-hoc blocking snapshot, two connectors. What
is found is then the end of one of them, a record of a snapshot with a change behind it; behind that it is searched
again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate_spark.kafka.envelope import Mark
from headgate_spark.planner.snapshots import Over, SnapshotEnd

UNREADABLE = 4
"""Records in a row that do not tell: more of them count as changes."""


@dataclass
class SnapshotSearch:
    """The snapshot that begins at `begin`, if one does, ends behind it and not behind `until`."""

    topic: str
    begin: int
    until: int
    reads: int = 0
    """Records that were looked at."""
    _low: int | None = None
    """The last record of the snapshot that is known."""
    _high: int = field(init=False)
    """From here on there is none of the snapshot."""
    _place: int = field(init=False)
    """Where it is looked at now."""
    _at: int = field(init=False)
    """As `_place`, or behind records there that do not tell."""
    _unreadable: int = 0
    _sees_change: bool = False
    is_unreadable: bool = False
    """Whether the records that it would begin with do not tell what they are."""
    _connector: str | None = None
    _over: set[Over] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._high = self.until
        self._place = self._at = self.begin

    @property
    def is_open(self) -> bool:
        return self._high > (self.begin if self._low is None else self._low + 1)

    @property
    def next_place(self) -> int:
        return self._at

    @property
    def found(self) -> SnapshotEnd:
        """What was found, once the search is over."""
        end = self.begin if self._low is None else self._low + 1
        return SnapshotEnd(
            begin=self.begin,
            end=end if self._sees_change or self._low is None else self.until,
            until=self.until,
            is_open=not self._sees_change,
            connector=self._connector,
            over=frozenset(self._over),
        )

    def narrow(self, offset: int | None, mark: Mark | None) -> None:
        """Take in the first record from `next_place` on: its offset, and what it says of itself (`None`: nothing).

        No offset: there is no record up to the end. Nor is there one where the record is of before that place: the
        log has become shorter, and the client began anew.
        """
        if offset is not None and offset < self.next_place:
            offset = None
        self.reads += offset is not None
        if offset is None or offset >= self._high:
            self._ends_at(self._place)
        elif mark is None:
            self._cannot_tell(offset)
        elif mark.is_snapshot:
            self._low, self._connector = offset, mark.connector
            self._note_over(mark)
            self._go_on()
        else:
            self._sees_change = True
            self._note_over(mark)
            self._ends_at(self._place)

    def _cannot_tell(self, offset: int) -> None:
        self._unreadable += 1
        if self._unreadable < UNREADABLE and offset + 1 < self._high:
            self._at = offset + 1
            return
        self.is_unreadable = self.is_unreadable or self._low is None
        self._sees_change = True
        self._ends_at(self._place)

    def _ends_at(self, place: int) -> None:
        self._high = place
        self._go_on()

    def _go_on(self) -> None:
        """Look at the last record once, since a snapshot that goes on ends there, and then half-way."""
        self._unreadable = 0
        if not self.is_open or self._low is None:
            return
        is_second = self._place == self.begin and self._high == self.until
        middle = self._low + 1 + (self._high - self._low - 1) // 2
        self._place = self._at = max(self._low + 1, self.until - 1) if is_second else middle

    def _note_over(self, mark: Mark) -> None:
        if mark.connector is None:
            return
        if not mark.is_snapshot or mark.ends_snapshot:
            self._over.add((mark.connector, None))
        elif mark.ends_table:
            self._over.add((mark.connector, self.topic))
