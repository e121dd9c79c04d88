"""What the batches of a checkpoint's earlier runs taught, and a later run must know.

A run that is killed can report nothing. What it left in the checkpoint tells the next one, which counts it here: a
counter of the process would start over with each.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from headgate_spark.engine.resumption import Resumption


@dataclass(frozen=True, slots=True)
class BatchMemory:
    """Kept beside the checkpoint, member by member, as JSON."""

    repeated: int = 0
    """Batches that ran again, since a run ended in the middle of them."""

    @classmethod
    def of(cls, value: Any | None) -> BatchMemory:
        """Return what was kept as `value`; members of a later version are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: kept for name, kept in (value or {}).items() if name in known})

    @property
    def value(self) -> dict[str, Any]:
        """What is kept."""
        return asdict(self)

    def resumed(self, resumption: Resumption) -> BatchMemory:
        """Return the memory of a run that begins where an earlier one ended."""
        return replace(self, repeated=self.repeated + 1) if resumption.repeats else self
