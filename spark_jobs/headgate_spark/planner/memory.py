"""What the memory that batches took says of the size of the next ones.

    pressed          spilled > 0, or the fullest task used at least `NEARLY_FULL` of what a task may have
    spilled heavily  spilled >= working        working: peak execution memory, summed over the batch's tasks

The first pressed batch ends growth, one that spilled heavily is halved, and both hold for smaller batches with room:
they have room because they are smaller. A batch of half the size or less that spills nearly as much shows that size
is not to blame: then memory bounds this query no longer. The table is in `docs/planner.md`, "Memory".
"""

from __future__ import annotations

from dataclasses import replace

from headgate_contract.newer import dataclass

NEARLY_FULL = 0.8
"""Part of a task's execution memory from which on a batch counts as pressed: the rest is for skewed keys."""
SAME_SPILL = 0.75
"""Part of a spill that a batch of half the size may have at most, if the spill is to come from its size. Half is
expected; the rest is for what varies from batch to batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What the tasks of one batch took. Bytes."""

    spilled_bytes: int
    """Written to disk because there was no room."""
    working_bytes: int
    """Peak execution memory, summed over the tasks."""
    fullest_task: float | None = None
    """Largest peak of one task, as a part of what a task may have; `None` where that is not known."""

    @property
    def is_pressed(self) -> bool:
        """Whether a larger batch would not fit."""
        return self.spilled_bytes > 0 or (self.fullest_task or 0.0) >= NEARLY_FULL

    @property
    def spilled_heavily(self) -> bool:
        """Whether all that was worked on went to disk."""
        return 0 < self.spilled_bytes >= self.working_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBound:
    """How many records a query's batches may have by what memory has shown. `None`: nothing has been."""

    grown_to: int | None = None
    """The size at which growth stopped; holds for batches that grow."""
    halved_to: int | None = None
    """Half of a batch that was too large; holds for each batch, one that spans a backlog as well."""
    pressed_records: int | None = None
    """The last full batch that was pressed: its records,"""
    pressed_bytes: int = 0
    """and what it spilled."""
    size_is_to_blame: bool = True
    """False once a much smaller batch was pressed as much."""

    @property
    def records(self) -> int | None:
        """The largest batch that may be granted to a query whose batches grow."""
        bounds = [bound for bound in (self.grown_to, self.halved_to) if bound is not None]
        return min(bounds, default=None)

    def after(self, records: int, use: MemoryUse, *, full: bool) -> MemoryBound:
        """Return the bound after a batch with so many records; only a `full` one was made as large by its grant."""
        if not use.is_pressed or not self.size_is_to_blame or records <= 0:
            return self
        is_much_smaller = self.pressed_records is not None and 2 * records <= self.pressed_records
        if is_much_smaller and use.spilled_bytes >= SAME_SPILL * self.pressed_bytes:
            return MemoryBound(size_is_to_blame=False)
        if not full:
            return self
        pressed = replace(
            self,
            grown_to=_lower(self.grown_to, records),
            pressed_records=records,
            pressed_bytes=use.spilled_bytes,
        )
        return pressed.halved(records) if use.spilled_heavily else pressed

    def halved(self, records: int) -> MemoryBound:
        """Return the bound after a batch of so many records was too large: it spilled heavily, or died of it."""
        return replace(self, halved_to=_lower(self.halved_to, max(1, records // 2)))


def _lower(bound: int | None, records: int) -> int:
    return records if bound is None else min(bound, records)
