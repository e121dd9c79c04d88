"""What a scenario of the soak is given, and how it says that something has grown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.kafka import scenario as kafka
from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.local.statistics import slope_interval
from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here

PER_RESTARTS = 100
NOT_ABOVE_ZERO = Goal("<=", 0)

Look = Mapping[str, float]
"""What is held, by kind."""


@dataclass(frozen=True, kw_only=True)
class Bench(kafka.Bench):
    """What a scenario is given to measure with."""

    scale: float = 1.0
    """How much of everything."""
    grown: list[str] = field(default_factory=list)
    """What has grown and must not, each by its figure."""

    def judges(self, scenario: str, kinds: Iterable[str], found: Mapping[str, Measured]) -> None:
        """Note which of these kinds has grown, and say how to see it again: nothing is drawn, so without a seed."""
        for name, measured in found.items():
            if measured.runs[0] > 0 and name.endswith(tuple(f"_{kind}_slope" for kind in kinds)):
                self.grown.append(name)
                self.tell(f"GROWN: {name}: {measured.runs[0]:g} per {PER_RESTARTS} restarts")
                self.tell(f"  again: python -m benchmarks.soak --only {scenario} --scale {self.scale:g}")

    def scaled(self, whole: int, least: int = 1) -> int:
        """Return a part of a number of things."""
        return max(least, round(self.scale * whole))


def figures(
    prefix: str, units: Mapping[str, str], goal: Goal | Report = NOT_ABOVE_ZERO
) -> tuple[Figure, ...]:
    """Return the figure of each kind of thing, which must not grow unless another goal is said."""
    return tuple(
        Figure(f"{prefix}_{kind}_slope", f"{unit} per {PER_RESTARTS} restarts", goal)
        for kind, unit in units.items()
    )


def slopes(
    prefix: str, kinds: Iterable[str], restarts: Sequence[int], looks: Sequence[Look]
) -> dict[str, Measured]:
    """Return by how much each kind grows with every hundred restarts: what it surely grows by.

    That is the end of the interval (95 of 100) that is nearer to 0; 0 where the interval holds that.
    """
    found = {}
    for kind in kinds:
        values = [look[kind] for look in looks]
        low, middle, high = (PER_RESTARTS * end for end in slope_interval(restarts, values))
        surely = max(low, 0.0) if middle > 0 else min(high, 0.0)
        details = {"slope": middle, "low": low, "high": high, "restarts": list(restarts), "values": values}
        found[f"{prefix}_{kind}_slope"] = Measured([surely], details)
    return found
