"""Numbers and verdicts as people read them; a dash for what is not known."""

from datetime import UTC, datetime

from rich.text import Text

from headgate.api.status import QueryStatus
from headgate.reconcile.times import amount_text, duration_text, rate_text

UNKNOWN = "-"
_BARS = "▁▂▃▄▅▆▇█"


def amount(value: float | None) -> str:
    """Write a number of records: `950`, `12.3k`, `4.05M`."""
    return UNKNOWN if value is None else amount_text(value)


def rate(value: float | None) -> str:
    return UNKNOWN if value is None else rate_text(value)


def duration(value: float | None) -> str:
    """Write seconds: `4.2s`, `3m20s`."""
    return UNKNOWN if value is None else duration_text(value)


def clock(unix_time: float) -> str:
    """Write a time of day, in UTC as everywhere else in logs and status."""
    return datetime.fromtimestamp(unix_time, UTC).strftime("%H:%M:%S")


def sparkline(values: tuple[float, ...]) -> str:
    """Draw values as bars, the largest as the highest."""
    top = max(values, default=0)
    if top <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[round(max(0.0, value) / top * (len(_BARS) - 1))] for value in values)


def age(seconds: float) -> str:
    """Write how long something has been so, in one unit or two: `12s`, `3m20s`, `5h`, `3d`."""
    whole = max(0, int(seconds))
    if whole < 600:
        return duration_text(whole)
    for size, unit in ((86_400, "d"), (3_600, "h")):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole // 60}m"


def control(published: int, in_force: int | None) -> str:
    if in_force == published:
        return f"{published} in force"
    return f"{published} published, {UNKNOWN if in_force is None else in_force} in force"


def whose(query: str, owner: str | None) -> str:
    """Return the name of a query with the user of Spark Connect who started it, whom to ask about it."""
    return query if owner is None else f"{query} (owner {owner}, Spark Connect)"


def live(real_time: bool | None) -> str:
    """Return what a query is that is in no backlog."""
    return "live in real-time mode" if real_time else "live"


def verdict(query: QueryStatus, now: float) -> Text:
    since = "" if query.since is None else f" for {age(now - query.since.timestamp())}"
    changes = f", {query.changes} changes in this attempt" if query.changes > 1 else ""
    if query.failure is not None:
        return Text("FAILED", style="bold red")
    if query.backlog:
        return Text.assemble(("BACKLOG", "bold yellow"), f" by {query.reason or 'Unknown'}{since}{changes}")
    return Text.assemble((live(query.real_time), "green"), f"{since}{changes}")
