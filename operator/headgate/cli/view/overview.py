"""Many applications, one line each: what `headgate top` and `headgate status` without a name show."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from headgate.api.status import ApplicationState, QueryStatus
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.view.columns import Cell, columns
from headgate.cli.view.words import UNKNOWN, age, amount, rate

STATE_STYLES = {
    ApplicationState.RUNNING: "green",
    ApplicationState.FAILED: "bold red",
    ApplicationState.BACKING_OFF: "bold yellow",
}
HEADINGS = ("NAME", "STATE", "READY", "QUERY", "BACKLOG", "LAG", "PENDING", "RATE", "INTERVAL", "ETA", "AGE")
NUMBERS = frozenset({"LAG", "PENDING", "RATE", "INTERVAL", "ETA", "AGE"})


def overview(applications: Sequence[ClusterApplication], now: float, *, everywhere: bool) -> list[Text]:
    """Return a heading and one line for each application, in the order given; `everywhere` adds the namespace.

    Of an application with several queries, the one that is furthest behind is shown.
    """
    headings = ("NAMESPACE", *HEADINGS) if everywhere else HEADINGS
    rows = [_row(application, now, everywhere=everywhere) for application in applications]
    right = frozenset(number for number, heading in enumerate(headings) if heading in NUMBERS)
    return list(columns([[Text(heading, style="dim") for heading in headings], *rows], right=right))


def state_cell(application: ClusterApplication) -> Text:
    """Return the state in a word: `Unknown` where no operator has told, `Unreadable` where it cannot be read."""
    if application.unreadable:
        return Text("Unreadable", style="bold yellow")
    if application.state is None:
        return Text("Unknown", style="bold yellow")
    return Text(application.state.value, style=STATE_STYLES.get(application.state, ""))


def _row(application: ClusterApplication, now: float, *, everywhere: bool) -> list[Cell]:
    summary = application.status.summary
    ready = application.condition("Ready")
    worst = _query(application, summary.query)
    created = application.created_at
    return [
        *([application.namespace] if everywhere else []),
        application.name,
        state_cell(application),
        UNKNOWN if ready is None else ready.status.value,
        summary.query or UNKNOWN,
        _backlog(summary.backlog),
        summary.lag or UNKNOWN,
        amount(summary.pending_records),
        rate(None if worst is None else worst.throughput),
        summary.interval or UNKNOWN,
        summary.eta or UNKNOWN,
        UNKNOWN if created is None else age(now - created.timestamp()),
    ]


def _query(application: ClusterApplication, name: str | None) -> QueryStatus | None:
    return next((query for query in application.status.queries if query.name == name), None)


def _backlog(word: str | None) -> Cell:
    if word is None:
        return UNKNOWN
    return word if word == "No" else Text(word, style="bold yellow")
