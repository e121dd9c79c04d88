"""Whether the runs of one round have the same result; the benchmark fails where they have not.

A result is compared by the number of its rows and the sum of their hashes, which does not depend on their order.
In update mode a row counts once it is whole (workloads.py says when), and so once, whatever the batches were.
What was compared is kept in a file, by workload, so that it can be added up over several calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self


class DifferentOutputsError(Exception):
    """Two runs of the same query over the same records have different results."""


@dataclass(frozen=True)
class Output:
    """What one run wrote."""

    rows: int
    hash: int
    """Sum of 32 bits of the hash of each row."""


@dataclass
class Comparison:
    """The pairs that have been compared so far."""

    pairs: dict[str, list[bool]] = field(default_factory=dict)
    """Whether each pair was equal, by workload."""
    file: Path | None = None
    """Where they are kept; None: nowhere."""

    @classmethod
    def kept(cls, file: Path) -> Self:
        """Return what earlier calls compared, to go on with."""
        return cls(json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}, file)

    def begin(self, workload: str) -> None:
        """Forget what was compared of a workload, whose rounds begin anew."""
        self.pairs.pop(workload, None)
        self._keep()

    def compare(self, workload: str, outputs: Mapping[str, Output]) -> None:
        """Compare the result of every variant with the first one's. Raises `DifferentOutputsError`.

        A result without rows raises ValueError: that nothing equals nothing shows nothing.
        """
        (reference, expected), *others = outputs.items()
        if not expected.rows:
            raise ValueError(f"{workload}, {reference}: the result has no rows")
        equal = {name: found == expected for name, found in others}
        self.pairs.setdefault(workload, []).extend(equal.values())
        self._keep()
        if different := [name for name, is_equal in equal.items() if not is_equal]:
            found = ", ".join(f"{name} {outputs[name]}" for name in different)
            raise DifferentOutputsError(f"{workload}: {reference} wrote {expected}, but {found}")

    @property
    def all_equal(self) -> bool:
        """Whether every pair was equal, those of earlier calls included."""
        return all(is_equal for found in self.pairs.values() for is_equal in found)

    def _keep(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.pairs, indent=1) + "\n", encoding="utf-8")
