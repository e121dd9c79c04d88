"""What a scenario of backlogs is given: recordings of the size that is asked for, and a place to compare results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.backlog.comparison import Comparison
from benchmarks.local import scenario as local
from benchmarks.local.recording import Recording, prepare
from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here

WARM_UP = 0.05
"""Of the records, read once before anything counts: a JVM compiles what it runs."""


@dataclass(frozen=True, kw_only=True)
class Bench(local.Bench):
    """What a scenario is given to measure with."""

    scale: float
    """Of the records; less than 1 only tries a scenario out."""
    comparison: Comparison = field(default_factory=Comparison)
    results: Path | None = None
    """The file with earlier attempts; None: nothing is written, and nothing is read."""

    def recording(self, whole: Recording, share: float = 1.0) -> Path:
        """Return the directory of a recording at this scale, or of a `share` of it; written unless it is there."""
        scaled = of_scale(whole, self.scale * share)
        return prepare(scaled, self.data / f"{scaled.backlog_rows}")


def of_scale(whole: Recording, scale: float) -> Recording:
    """Return a recording with fewer records of fewer keys in the same time: each key still comes as often."""
    return replace(
        whole,
        backlog_rows=round(whole.backlog_rows * scale),
        live_rows_per_second=max(1, round(whole.live_rows_per_second * scale)),
        keys=round((whole.keys or 0) * scale) or None,
    )
