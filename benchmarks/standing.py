"""What the attempts at a figure come to: its value over the latest days, how far apart they lie, and what that says.

One good day is luck, and so is the last of several attempts: the value that is shown is the median over the latest
three days on which the figure was measured, by the last attempt of each. A goal holds where the whole interval of
each of these days lies on its right side, and they have enough runs; else the runs do not tell, and it is open. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from benchmarks.local.results import REPORT, Goal
from benchmarks.local.statistics import median, median_interval
from benchmarks.result_file import Attempt, Attempts

DAYS: Final = 3
ENOUGH: Final = 5
"""Runs, over all days, without which no goal holds. If the true median missed it, each run would hold it in at most
one of two cases, and so all of five in one of 32: 3 %. Of four it were 6 %, and chance would pass for a result."""
WITH_INTERVAL: Final = 6
"""Fewer runs do not enclose the median in 95 of 100 cases (`median_interval`): all of five on one side tell that it
lies there, and not between which numbers."""
COUNTED: Final = frozenset(
    (
        "%",
        "batches",
        "cells",
        "changes",
        "edits",
        "faults",
        "inputs",
        "keys",
        "lives",
        "machines",
        "methods",
        "races",
        "records",
        "restarts",
        "restarts of the API server",
        "rows",
        "sources",
        "share of pairs",
        "steps",
        "streams",
        "verbs by resources",
    )
)
"""Units of what is counted in one run, where chance has no part in the value: it needs no interval."""
SURELY: Final = " per 100 restarts"
"""How units of slopes end. Such a value has an interval behind it already: it is the end that is nearer to 0."""
HOLDS: Final = "holds"
OPEN: Final = "open"
MISSED: Final = "missed"
NO_GOAL: Final = "-"


def shown(attempts: Attempts) -> list[dict[str, Any]]:
    """Return what documents show of each figure: its last attempt with the `value` of the latest days.

    Beside it are its `id`, the number of `days` and of all their runs (`count`), the `lowest` and the `highest` of
    these, `interval` (from the lower end of the lowest to the upper end of the highest of a day; None: too few runs
    have none, and what is counted needs none) and `verdict`. A figure whose last attempt failed has no value.
    """
    return [{"id": name, **over_days(made)} for name, made in attempts.items()]


def over_days(made: Sequence[Attempt]) -> dict[str, Any]:
    """Return the last attempt with what all of the latest days come to."""
    last = made[-1]
    if last["value"] is None:
        return {**last, "days": 0, "verdict": MISSED}
    counted = is_counted(last)
    days = [last] if counted else latest_days(made)
    value = last["value"] if len(days) == 1 else median([day["value"] for day in days])
    runs = [run for day in days for run in day["runs"]]
    lows, highs = zip(*(median_interval(day["runs"]) for day in days), strict=True)
    ends = min(lows), max(highs)
    return {
        **last,
        "value": value,
        "days": len(days),
        "count": len(runs),
        "lowest": min(runs),
        "highest": max(runs),
        "interval": None if counted or len(runs) < WITH_INTERVAL else ends,
        "verdict": verdict(last["goal"], value, ends, is_enough=counted or len(runs) >= ENOUGH),
    }


def is_counted(attempt: Attempt) -> bool:
    """Tell whether the value is no estimate, so that one run is enough."""
    unit = attempt.get("unit", "")
    return unit in COUNTED or unit.endswith(SURELY)


def latest_days(made: Sequence[Attempt]) -> list[Attempt]:
    """Return the last attempt with a value of each of the latest days, the oldest first, that measured the same."""
    since = made[-1].get("since")
    same = (attempt for attempt in made if attempt.get("since") == since)
    by_day = {attempt["date"]: attempt for attempt in same if attempt["value"] is not None}
    return list(by_day.values())[-DAYS:]


def verdict(goal: str, value: float, ends: tuple[float, float], *, is_enough: bool) -> str:
    """Return what a value and its interval say of a goal, and whether there are enough runs to say so."""
    if goal == REPORT:
        return NO_GOAL
    wanted = Goal.read(goal)
    if not wanted.holds(value):
        return MISSED
    return HOLDS if is_enough and all(wanted.holds(end) for end in ends) else OPEN
