"""What a scenario of the operator is: figures that are measured together, and how."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.local import scenario as local
from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here

TRIED_SECONDS = 20.0
"""How long is waited where it is only tried out."""


@dataclass(frozen=True, kw_only=True)
class Bench(local.Bench):
    """What a scenario is given to measure with."""

    share: float
    """Of the applications that are asked for; less than 1 only tries a scenario out."""
    ready: Callable[[str], None]
    """Called when all is prepared and measuring begins, which the machine should be quiet for; told what."""

    def folder(self, name: str) -> Path:
        """Return an empty folder."""
        folder = self.root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def seconds(self, wanted: float) -> float:
        """Return how long to wait or to watch."""
        return wanted if self.share == 1 else min(wanted, TRIED_SECONDS)

    def count(self, applications: int) -> int:
        """Return how many applications to measure with instead of so many."""
        return max(1, round(applications * self.share))
