"""Views for what is not a terminal: lines for people, JSON for programs, a history for plots."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from headgate.adapters.local.atomic import replace_text
from headgate.adapters.local.driver_log import DriverLog
from headgate.api.duration import in_seconds
from headgate.api.status import QueryStatus
from headgate.cli.view import Moment, View
from headgate.cli.view.sample import event_line
from headgate.cli.view.words import UNKNOWN, amount, clock, duration, live, rate
from headgate.decision.driver import StepReason
from headgate.reconcile.readings import QueryMetrics
from headgate_contract.foreign import printable

SUMMARY_SECONDS = 10.0
"""How often a line of numbers is worth its place in a log while they move."""

MOST_SAMPLES = 50_000
"""A history longer than this loses every other sample, so that it may run for days."""

LAST_LINES = 20
"""Lines of the driver's log that are shown when it has failed."""


class PlainView(View):
    """One line for each change, and one of numbers now and then."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._summarised_at = 0.0
        self._summary: dict[str, str] = {}
        self._refused: dict[str, str | None] = {}
        """What keeps queries out of real-time mode, as it was told last."""

    def show(self, moment: Moment) -> None:
        for event in moment.events:
            mark = "warning: " if event.is_warning else ""
            self._line(event.at, f"{mark}{event.message} ({event.reason})")
        for query, _ in moment.queries:
            why, before = query.real_time_refused, self._refused.get(query.name)
            self._refused[query.name] = why
            if why is not None and why != before:
                self._line(moment.at, f"warning: query {query.name}: not in real-time mode: {why}")
        if moment.at - self._summarised_at >= SUMMARY_SECONDS and moment.is_measured:
            self._summarise(moment)

    def _summarise(self, moment: Moment) -> None:
        summary = {
            query.name: _numbers(query, reported) for query, reported in moment.queries if query.sources
        }
        for name, text in summary.items():
            if self._summary.get(name) != text:
                self._line(moment.at, f"query {name}: {text}")
                self._summarised_at = moment.at
        self._summary = summary

    def _line(self, at: float, text: str) -> None:
        self._out.write(f"{clock(at)} {printable(text)}\n")
        self._out.flush()


def _numbers(query: QueryStatus, reported: QueryMetrics) -> str:
    if query.failure is not None:
        return "failed"
    return (
        f"{f'backlog ({query.reason})' if query.backlog else live(query.real_time)}, "
        f"{amount(query.pending_records)} pending, "
        f"lag {duration(in_seconds(query.watermark_lag))}, "
        f"interval {duration(in_seconds(query.interval))}, grant {amount(query.grant)}, "
        f"{rate(query.throughput)}, eta {query.eta or UNKNOWN}, batches {amount(reported.data_batches)}"
    )


class JsonView(View):
    """One JSON object a line: `sample`, `status` and `event`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: Mapping[str, Any] | None = None

    def show(self, moment: Moment) -> None:
        """Write the events, the status if it was written, and a sample if anything in it has changed."""
        for event in moment.events:
            self._line(event_line(event))
        if moment.is_written:
            status = moment.status.model_dump(mode="json", exclude_none=True)
            self._line({"type": "status", "t": moment.at, "status": status})
        if has_changed(self._last, moment.sample):
            self._line(moment.sample)
            self._last = moment.sample

    def _line(self, document: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(document) + "\n")
        self._out.flush()


def has_changed(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Return whether anything but the time differs between two samples."""
    return before is None or {**before, "t": now["t"]} != now


class HistoryView(View):
    """Keeps everything and writes it as one JSON file at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._samples: list[Mapping[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._application = ""
        self._times: tuple[float, float] | None = None
        self._last: Mapping[str, Any] | None = None

    def show(self, moment: Moment) -> None:
        """Keep the events, and a sample if anything in it has changed."""
        self._application = moment.application
        self._times = (self._times[0] if self._times else moment.at, moment.at)
        self._events += [event_line(event) for event in moment.events]
        if has_changed(self._last, moment.sample):
            self._samples.append(moment.sample)
            self._last = moment.sample
        if len(self._samples) > MOST_SAMPLES:
            del self._samples[1::2]

    def close(self, exit_code: int | None) -> None:
        started_at, ended_at = self._times or (None, None)
        document = {
            "application": self._application,
            "startedAt": started_at,
            "endedAt": ended_at,
            "exitCode": exit_code,
            "samples": self._samples,
            "events": self._events,
        }
        with suppress(OSError):  # what keeps the folder away keeps the file away, and is told by that
            self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(self._path, json.dumps(document) + "\n")


class DriverOutputView(View):
    """Mirrors what the driver prints, as it prints it."""

    def __init__(self, log: DriverLog, out: TextIO) -> None:
        self._log = log
        self._out = out

    def show(self, moment: Moment) -> None:
        del moment
        if text := self._log.news():
            self._out.write(text)
            self._out.flush()


class LastWordsView(View):
    """Tells what a driver said last that has failed and is started again: that is given up minutes later, if ever."""

    def __init__(self, log: DriverLog, tell: Callable[[Iterable[str]], None]) -> None:
        self._log = log
        self._tell = tell

    def show(self, moment: Moment) -> None:
        """Write the end of the log where an attempt has failed."""
        if any(event.reason == StepReason.BACKING_OFF for event in moment.events):
            self._tell(last_words(self._log))


def last_words(log: DriverLog) -> Iterable[str]:
    """Return the last lines of a log, set off from what is said of them; as they are."""
    return [f"  | {line}" for line in log.tail(LAST_LINES)]
