"""Many applications, one line each: what `headgate top` and `headgate status` without a name show."""

from collections.abc import Sequence

from rich.text import Text

from headgate.api.status import QueryStatus, SparkApplicationStatus
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.view.columns import Cell, columns
from headgate.cli.view.words import UNKNOWN, age, amount, rate
from headgate.decision.driver import State

STATE_STYLES = {State.RUNNING: "green", State.FAILED: "bold red", State.BACKING_OFF: "bold yellow"}
HEADINGS = (
    *("NAME", "STATE", "READY", "EXECUTORS", "QUERY", "BACKLOG", "LAG", "PENDING", "RATE", "INTERVAL", "ETA"),
    *("HELD-BY", "AGE"),
)
NUMBERS = frozenset({"EXECUTORS", "LAG", "PENDING", "RATE", "INTERVAL", "ETA", "AGE"})


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
    ready = application.status.condition("Ready")
    worst = next((query for query in application.status.queries if query.name == summary.query), None)
    created = application.created_at
    return [
        *([application.namespace] if everywhere else []),
        application.name,
        state_cell(application),
        UNKNOWN if ready is None else ready.status.value,
        _executors(application.status),
        summary.query or UNKNOWN,
        _backlog(summary.backlog, worst),
        summary.lag or UNKNOWN,
        amount(summary.pending_records),
        rate(None if worst is None else worst.throughput),
        summary.interval or UNKNOWN,
        summary.eta or UNKNOWN,
        UNKNOWN if worst is None else _held_by(worst),
        UNKNOWN if created is None else age(now - created.timestamp()),
    ]


def _executors(status: SparkApplicationStatus) -> Cell:
    """Return how many run of those that were asked for: `3/8`."""
    if status.executor_instances is None:
        return UNKNOWN
    running = UNKNOWN if status.executors_running is None else status.executors_running
    return Text(
        f"{running}/{status.executor_instances}", style="yellow" if status.waits_for_executors else ""
    )


def _held_by(query: QueryStatus) -> str:
    """Return what keeps a source of the query, or its watermark, from going on, in one word: the first there is."""
    for source in query.sources:
        if source.held is not None:
            waits_for = None if source.alignment is None else source.alignment.held_by
            return source.held if waits_for is None else f"{source.held}({waits_for})"
    return UNKNOWN if query.watermark_held_by is None else f"Watermark({query.watermark_held_by})"


def _backlog(word: str | None, worst: QueryStatus | None) -> Cell:
    if word is None:
        return UNKNOWN
    if word == "No" and worst is not None and worst.real_time:
        return "No (real-time)"
    return word if word == "No" else Text(word, style="bold yellow")
