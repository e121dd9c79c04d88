"""The view in a terminal, redrawn in place: what runs, each query and its sources, the last events.

`draw` is a function of values, so that it can be looked at in a test; the class below only keeps it on screen.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headgate.api.duration import in_seconds
from headgate.api.status import ConditionStatus, QueryStatus, SourceStatus, Votes
from headgate.cli.view import Moment, View
from headgate.cli.view.words import UNKNOWN, amount, clock, control, duration, rate, sparkline, verdict
from headgate.decision.driver import State
from headgate.decision.observation import SourceObservation
from headgate.reconcile.ports import Event
from headgate.reconcile.readings import QueryMetrics

KEPT = 40


class Batch(NamedTuple):
    """One batch, or the average of several between two moments."""

    records: float
    seconds: float | None


@dataclass(slots=True)
class BatchHistory:
    """The last batches of one query.

    The driver counts batches, their time and their records; two moments between which the count grew tell how
    large and how long the batches between them were, on the average.
    """

    batches: deque[Batch] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: QueryMetrics | None = None

    def watch(self, query: QueryMetrics) -> None:
        """Note what was committed since the moment before; a driver that starts over starts the count over."""
        before, self._before = self._before, query
        if before is None or before.data_batches is None or query.data_batches is None:
            return
        count = query.data_batches - before.data_batches
        if count < 0:
            self.batches.clear()
        records = _processed(query) - _processed(before)
        if count <= 0 or records < 0:
            return
        seconds = None
        if before.batch_seconds_sum is not None and query.batch_seconds_sum is not None:
            seconds = (query.batch_seconds_sum - before.batch_seconds_sum) / count
        self.batches.extend([Batch(records / count, seconds)] * min(int(count), KEPT))


def _processed(query: QueryMetrics) -> float:
    return sum(source.processed_records or 0.0 for source in query.sources.values())


EVENTS_SHOWN = 8
STATE_STYLES = {"Running": "bold green", "Failed": "bold red", "BackingOff": "bold yellow"}
HELP = "Ctrl-C stops at the end of the running batch; once more ends it at once"


class TerminalView(View):
    """Keeps the drawing of the last moment on screen."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._events: deque[Event] = deque(maxlen=EVENTS_SHOWN)
        self._batches: dict[str, BatchHistory] = {}
        self._live.start()

    def show(self, moment: Moment) -> None:
        self._events.extend(moment.events)
        for query, reported in moment.queries:
            self._batches.setdefault(query.name, BatchHistory()).watch(reported)
        batches = {name: tuple(history.batches) for name, history in self._batches.items()}
        self._live.update(draw(moment, tuple(self._events), batches), refresh=True)

    def close(self, exit_code: int | None) -> None:
        """Leave the last drawing where it is."""
        del exit_code
        self._live.stop()


def draw(moment: Moment, events: Iterable[Event], batches: Mapping[str, tuple[Batch, ...]]) -> RenderableType:
    """Return the drawing of a moment, with the last events and the last batches of each query."""
    queries = (
        _query(query, reported, batches.get(query.name, ()), moment) for query, reported in moment.queries
    )
    holding = [Text("whose word holds", style="dim"), *map(Text, moment.holding)] if moment.holding else []
    return Group(_header(moment), *queries, *holding, _events(events), Text(HELP, style="dim"))


def _header(moment: Moment) -> RenderableType:
    step = moment.step
    state = Text(step.state.value, style=STATE_STYLES.get(step.state.value, "bold"))
    facts = [f"attempt {step.history.attempt}"]
    if moment.pid is not None and moment.started_at is not None:
        facts += [f"pid {moment.pid}", f"up {duration(max(0.0, moment.at - moment.started_at))}"]
    facts.append(f"control {control(moment.published, moment.status.acknowledged_generation)}")
    line = Text.assemble((moment.application, "bold"), "  ", state, "  ", "  ".join(facts))
    notes = [] if step.state is State.RUNNING else [Text(step.message, style="italic")]
    if moment.outage is not None:
        style = "red" if moment.is_measured is False else "yellow"
        notes.append(Text(f"metrics: {moment.outage}", style=style))
    return Group(line, *notes)


def _query(
    query: QueryStatus, reported: QueryMetrics, batches: tuple[Batch, ...], moment: Moment
) -> RenderableType:
    numbers = {
        "interval": duration(in_seconds(query.interval)),
        "grant": f"{amount(query.grant)}{'' if query.grant_reason is None else f' ({query.grant_reason})'}",
        "throughput": rate(query.throughput),
        "arriving": rate(moment.observed[query.name].arrival_rate),
        "eta": query.eta or UNKNOWN,
        "state rows": amount(reported.state_rows),
    }
    return Panel(
        Group(
            *([] if query.failure is None else [Text(query.failure, style="red")]),
            Text("   ").join(Text.assemble((f"{name} ", "dim"), value) for name, value in numbers.items()),
            _batches(reported, batches),
            _sources(query, moment),
            *_remarks(query),
        ),
        title=Text.assemble((query.name, "bold"), "  ", verdict(query, moment.at)),
        title_align="left",
    )


def _batches(reported: QueryMetrics, batches: tuple[Batch, ...]) -> Text:
    count = Text.assemble(("batches ", "dim"), amount(reported.data_batches))
    if not batches:
        return count
    last = batches[-1]
    sizes = sparkline(tuple(batch.records for batch in batches))
    return Text.assemble(
        count,
        ("   last ", "dim"),
        f"{amount(last.records)} in {duration(last.seconds)}",
        "   ",
        (sizes, "cyan"),
    )


def _sources(query: QueryStatus, moment: Moment) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("source", "lag", "pending", "rate limit", "held by", "votes"):
        table.add_column(heading, justify="right" if heading in {"lag", "pending", "rate limit"} else "left")
    for source in query.sources:
        table.add_row(
            escape(source.name),
            duration(in_seconds(source.watermark_lag)),
            amount(source.pending_records),
            rate(source.rate_limit),
            _held(source, moment.observed[query.name].source(source.name)),
            _votes(source.votes),
        )
    return table


def _remarks(query: QueryStatus) -> Iterator[Text]:
    for source in query.sources:
        if source.out_of_reach is not None:
            yield Text(source.out_of_reach, style="red")
        if source.snapshot_problem is not None:
            yield Text(source.snapshot_problem, style="yellow")
    if query.trigger_problem is not None:
        yield Text(query.trigger_problem, style="yellow")
    if query.real_time_refused is not None:
        yield Text(f"not in real-time mode: {query.real_time_refused}", style="yellow")
    if query.watermark_held_by is not None:
        yield Text(f"watermark held back by {query.watermark_held_by}, so that state grows", style="yellow")


def _held(source: SourceStatus, observed: SourceObservation) -> str:
    states = [
        word for word, holds in (("historical", observed.phase), ("idle", observed.idle)) if holds is True
    ]
    waits_for = None if source.alignment is None else source.alignment.held_by
    held = source.held if source.held is None or waits_for is None else f"{source.held}({waits_for})"
    return escape(", ".join([held, *states] if held else states) or UNKNOWN)


def _votes(votes: Votes) -> str:
    words = {
        ConditionStatus.TRUE: "[yellow]yes[/]",
        ConditionStatus.FALSE: "no",
        ConditionStatus.UNKNOWN: "[dim]unknown[/]",
    }
    return "  ".join(f"{voter} {words[vote]}" for voter, vote in votes.given.items())


def _events(events: Iterable[Event]) -> RenderableType:
    lines = [
        Text.assemble((clock(event.at), "dim"), " ", (event.message, "yellow" if event.is_warning else ""))
        for event in events
    ]
    return Group(Text("events", style="dim"), *(lines or [Text("none yet", style="dim")]))
