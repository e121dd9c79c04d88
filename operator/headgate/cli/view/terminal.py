"""The view in a terminal, redrawn in place: what runs, each query and its sources, the last events.

`draw` is a function of values, so that it can be looked at in a test; the class below only keeps it on screen.
"""

from __future__ import annotations

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

from headgate.cli.view import Moment
from headgate.cli.view.frame import Frame, QueryFrame, SourceFrame
from headgate.cli.view.words import UNKNOWN, amount, clock, duration, eta, live, rate, sparkline
from headgate.reconcile.ports import Event

KEPT = 40


class Batch(NamedTuple):
    """One batch, or the average of several between two frames."""

    records: float
    seconds: float | None


@dataclass(slots=True)
class BatchHistory:
    """The last batches of one query.

    The driver counts batches, their time and their records; two frames in between which the count grew tell how
    large and how long the batches between them were, on the average.
    """

    batches: deque[Batch] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: QueryFrame | None = None

    def watch(self, query: QueryFrame) -> None:
        """Note what was committed since the frame before; a driver that starts over starts the count over."""
        before, self._before = self._before, query
        if before is None or before.batches is None or query.batches is None:
            return
        count = query.batches - before.batches
        if count < 0:
            self.batches.clear()
        records = _processed(query) - _processed(before)
        if count <= 0 or records < 0:
            return
        self.batches.extend([Batch(records / count, _seconds(before, query, count))] * min(int(count), KEPT))


def _processed(query: QueryFrame) -> float:
    return sum(source.processed_records or 0.0 for source in query.sources.values())


def _seconds(before: QueryFrame, after: QueryFrame, count: float) -> float | None:
    if before.batch_seconds is None or after.batch_seconds is None:
        return None
    return (after.batch_seconds - before.batch_seconds) / count


EVENTS_SHOWN = 8
STATE_STYLES = {"Running": "bold green", "Failed": "bold red", "BackingOff": "bold yellow"}
HELP = "Ctrl-C stops at the end of the running batch; once more ends it at once"


class TerminalView:
    """Keeps the drawing of the last moment on screen."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._events: deque[Event] = deque(maxlen=EVENTS_SHOWN)
        self._batches: dict[str, BatchHistory] = {}
        self._live.start()

    def show(self, moment: Moment) -> None:
        """Draw the moment."""
        self._events.extend(moment.events)
        for name, query in moment.frame.queries.items():
            self._batches.setdefault(name, BatchHistory()).watch(query)
        batches = {name: tuple(history.batches) for name, history in self._batches.items()}
        self._live.update(draw(moment.frame, tuple(self._events), batches), refresh=True)

    def close(self, exit_code: int | None) -> None:
        """Leave the last drawing where it is."""
        del exit_code
        self._live.stop()


def draw(frame: Frame, events: Iterable[Event], batches: Mapping[str, tuple[Batch, ...]]) -> RenderableType:
    """Return the drawing of a frame, with the last events and the last batches of each query."""
    queries = (
        _query(name, query, batches.get(name, ()), now=frame.t) for name, query in frame.queries.items()
    )
    return Group(_header(frame), *queries, _events(events), Text(HELP, style="dim"))


def _header(frame: Frame) -> RenderableType:
    state = Text(frame.state, style=STATE_STYLES.get(frame.state, "bold"))
    facts = [f"attempt {frame.attempt}"]
    if frame.pid is not None and frame.started_at is not None:
        facts += [f"pid {frame.pid}", f"up {duration(max(0.0, frame.t - frame.started_at))}"]
    facts.append(_control(frame))
    line = Text.assemble((frame.application, "bold"), "  ", state, "  ", "  ".join(facts))
    notes = [] if frame.state == "Running" else [Text(frame.message, style="italic")]
    if frame.outage is not None:
        style = "red" if frame.metrics_available is False else "yellow"
        notes.append(Text(f"metrics: {frame.outage}", style=style))
    return Group(line, *notes)


def _control(frame: Frame) -> str:
    if frame.acknowledged_generation == frame.control_generation:
        return f"control {frame.control_generation} in force"
    in_force = UNKNOWN if frame.acknowledged_generation is None else str(frame.acknowledged_generation)
    return f"control {frame.control_generation} published, {in_force} in force"


def _query(name: str, query: QueryFrame, batches: tuple[Batch, ...], *, now: float) -> RenderableType:
    return Panel(
        Group(
            *_failure(query),
            _numbers(query),
            _batches(query, batches),
            _sources(query.sources),
            *_remarks(query),
        ),
        title=_title(name, query, now),
        title_align="left",
    )


def _title(name: str, query: QueryFrame, now: float) -> str:
    since = "" if query.since is None else f" for {duration(max(0.0, now - query.since))}"
    if query.failure is not None:
        return f"[bold]{escape(name)}[/]  [bold red]FAILED[/]"
    if query.backlog:
        return f"[bold]{escape(name)}[/]  [bold yellow]BACKLOG[/] by {query.reason}{since}"
    return f"[bold]{escape(name)}[/]  [bold green]{live(query.real_time)}[/]{since}"


def _failure(query: QueryFrame) -> Iterator[Text]:
    if query.failure is not None:
        yield Text(query.failure, style="red")


def _numbers(query: QueryFrame) -> Text:
    facts = {
        "interval": duration(query.interval_seconds),
        "grant": _grant(query),
        "throughput": rate(query.throughput),
        "arriving": rate(query.arrival_rate),
        "eta": eta(query.eta_seconds),
        "state rows": amount(query.state_rows),
    }
    return Text("   ").join(Text.assemble((f"{name} ", "dim"), value) for name, value in facts.items())


def _grant(query: QueryFrame) -> str:
    why = "" if query.grant_reason is None else f" ({query.grant_reason})"
    return f"{amount(query.grant_records)}{why}"


def _batches(query: QueryFrame, batches: tuple[Batch, ...]) -> Text:
    count = Text.assemble(("batches ", "dim"), amount(query.batches))
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


def _sources(sources: Mapping[str, SourceFrame]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("source", "lag", "pending", "rate limit", "held by", "votes"):
        table.add_column(heading, justify="right" if heading in {"lag", "pending", "rate limit"} else "left")
    for name, source in sources.items():
        table.add_row(
            escape(name),
            duration(source.watermark_lag),
            amount(source.pending_records),
            rate(source.rate_limit),
            _held(source),
            _votes(source.votes),
        )
    return table


def _remarks(query: QueryFrame) -> Iterator[Text]:
    for source in query.sources.values():
        if source.out_of_reach is not None:
            yield Text(source.out_of_reach, style="red")
        if source.snapshot_problem is not None:
            yield Text(source.snapshot_problem, style="yellow")
    if query.real_time_refused is not None:
        yield Text(f"not in real-time mode: {query.real_time_refused}", style="yellow")
    if query.watermark_held_by is not None:
        yield Text(f"watermark held back by {query.watermark_held_by}, so that state grows", style="yellow")


def _held(source: SourceFrame) -> str:
    states = [word for word, holds in (("historical", source.phase), ("idle", source.idle)) if holds is True]
    held_by = source.held_by
    if held_by is not None and source.waits_for is not None:
        held_by = f"{held_by}({source.waits_for})"
    return escape(", ".join([held_by, *states] if held_by else states) or UNKNOWN)


def _votes(votes: Mapping[str, bool | None]) -> str:
    words = {True: "[yellow]yes[/]", False: "no", None: "[dim]unknown[/]"}
    return "  ".join(f"{voter} {words[vote]}" for voter, vote in votes.items())


def _events(events: Iterable[Event]) -> RenderableType:
    lines = [
        Text.assemble((clock(event.at), "dim"), " ", (event.message, "yellow" if event.is_warning else ""))
        for event in events
    ]
    return Group(Text("events", style="dim"), *(lines or [Text("none yet", style="dim")]))
