"""The watermarks of a query, read from its plan.

Spark reports one watermark per query, already less the delay. A source has been read up to the watermark plus the
delay, so the delay has to be known to say how far behind the source is.
"""

from __future__ import annotations

import re

from headgate_contract.newer import dataclass

_NODE = re.compile(
    r"EventTimeWatermark (?:(?P<id>[0-9a-f-]+), )?[^\n]*, (?P<delay>(?:-?[\d.]+ [a-z]+ ?)+)\s*$", re.MULTILINE
)
_PART = re.compile(r"(-?[\d.]+) ([a-z]+?)s?(?: |$)")
_SECONDS = {
    "microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0,
    "day": 86400.0, "week": 604800.0, "month": 31 * 86400.0, "year": 372 * 86400.0,
}  # fmt: skip
"""Months count 31 days, as in Spark's own `EventTimeWatermark.getDelayMs`."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The watermarks of a plan, of which Spark takes one."""

    delays: tuple[float, ...] = ()
    """Of each, in seconds."""
    count: int = 0
    """One that the plan reads twice is one."""
    below_union: int = 0
    """Those of branches of a union."""
    takes_least: bool = True
    """False under the policy `max`. A checkpoint keeps the one that the query began with."""

    @property
    def delay(self) -> float | None:
        """How far, in seconds, that watermark is behind what was read; `None`: there is none.

        Of several Spark takes the least: of sources that are read in step that with the largest delay. A source that
        is behind the others may be so by more than is told, at most by as much as delays differ. By the smallest one
        a query with delays of two and three hours would be an hour behind for as long as it runs.
        """
        return (max if self.takes_least else min)(self.delays, default=None)

    @property
    def of_branches(self) -> int:
        """Those below a union that hold back the watermark behind it; none under the policy `max`."""
        return self.below_union if self.takes_least else 0


def watermarks_of(plan: str) -> Watermarks:
    """Return the watermarks in the text of a plan."""
    delays = (
        sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(node["delay"].strip()))
        for node in _NODE.finditer(plan)
    )
    return Watermarks(tuple(delays), watermarks(plan), watermarks_below_union(plan))


def watermarks(plan: str) -> int:
    """Return how many watermarks the text of a plan has; one that it reads twice is one to Spark, too, by its id."""
    return len({node["id"] or node.start() for node in _NODE.finditer(plan)})


def watermarks_below_union(plan: str) -> int:
    """Return how many watermarks in the text of a plan stand below a union, one per branch or more.

    A plan is printed as a tree, three columns for each level; `~` marks what streams.
    """
    union: int | None = None
    found: list[str] = []
    for line in plan.splitlines():
        depth = len(line) - len(line.lstrip(" :+-"))
        if union is not None and depth <= union:
            union = None
        node = line[depth:].removeprefix("~")
        if union is None and node.startswith("Union"):
            union = depth
        elif union is not None and node.startswith("EventTimeWatermark"):
            found.append(line)
    return watermarks("\n".join(found))
