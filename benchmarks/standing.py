"""What the attempts at a figure come to: its value over the latest days, how far apart they lie, and what that says.

One good day is luck, and so is the last of several attempts: the value that is shown is the median over the latest
three days on which the figure was measured, by the last attempt of each. A goal holds where the whole interval of
each of these days lies on its right side; where some of it does not, the runs do not tell, and it is open. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.local.results import REPORT, Goal
from benchmarks.local.statistics import median, median_interval
from benchmarks.result_file import Attempt, Attempts

DAYS: Final = 3
COUNTED: Final = frozenset(
    (
        "batches",
        "changes",
        "edits",
        "faults",
        "inputs",
        "lives",
        "machines",
        "methods",
        "races",
        "records",
        "restarts",
        "rows",
        "sources",
        "steps",
        "streams",
    )
)
"""Units of what is counted in one run, where chance has no part in the value."""
HOLDS: Final = "holds"
OPEN: Final = "open"
MISSED: Final = "missed"
NO_GOAL: Final = "-"


def shown(attempts: Attempts) -> list[dict[str, Any]]:
    """Return what documents show of each figure: its last attempt with the `value` of the latest days.

    Beside it are its `id`, the number of `days`, `lowest` and `highest` of all their runs, `interval` (the lower end
    of the lowest and the upper end of the highest) and `verdict`. A figure whose last attempt failed has no value.
    """
    return [{"id": name, **over_days(made)} for name, made in attempts.items()]


def over_days(made: Sequence[Attempt]) -> dict[str, Any]:
    """Return the last attempt with what all of the latest days come to."""
    last = made[-1]
    if last["value"] is None:
        return {**last, "days": 0, "verdict": MISSED}
    days = [last] if last.get("unit") in COUNTED else latest_days(made)
    value = last["value"] if len(days) == 1 else median([day["value"] for day in days])
    runs = [run for day in days for run in day["runs"]]
    ends = [interval(day) for day in days]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return {
        **last,
        "value": value,
        "days": len(days),
        "lowest": min(runs),
        "highest": max(runs),
        "interval": (low, high),
        "verdict": verdict(last["goal"], value, (low, high)),
    }


def latest_days(made: Sequence[Attempt]) -> list[Attempt]:
    """Return the last attempt with a value of each of the latest days, the oldest first, that measured the same."""
    since = made[-1].get("since")
    same = (attempt for attempt in made if attempt.get("since") == since)
    by_day = {attempt["date"]: attempt for attempt in same if attempt["value"] is not None}
    return list(by_day.values())[-DAYS:]


def interval(attempt: Mapping[str, Any]) -> tuple[float, float]:
    """Return where the true median of an attempt lies: what it says itself, or by the ranks of its runs."""
    details = attempt.get("details", {})
    if "interval_low" in details:
        return details["interval_low"], details["interval_high"]
    return median_interval(attempt["runs"])


def verdict(goal: str, value: float, ends: tuple[float, float]) -> str:
    """Return what a value and its interval say of a goal."""
    if goal == REPORT:
        return NO_GOAL
    wanted = Goal.read(goal)
    if not wanted.holds(value):
        return MISSED
    return HOLDS if all(wanted.holds(end) for end in ends) else OPEN
