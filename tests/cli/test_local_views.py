"""What the views of `headgate local` show of a moment."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from headgate.cli.view import Moment
from headgate.cli.view.frame import Frame, QueryFrame, SourceFrame, frame_of
from headgate.cli.view.lines import HistoryView, JsonView, PlainView
from headgate.cli.view.terminal import Batch, BatchHistory, draw
from headgate.cli.view.words import amount, duration, sparkline
from headgate.reconcile.ports import Event
from support.looping import Loop

SOURCE = SourceFrame(
    pending_records=4_050_000,
    processed_records=1000,
    watermark_lag=3723.0,
    rate_limit=50_000,
    held_by="RateLimit",
    phase=False,
    idle=False,
    votes={"WatermarkLag": True, "PendingRecords": None, "Phase": False},
)
QUERY = QueryFrame(
    backlog=True,
    reason="WatermarkLag",
    since=900.0,
    interval_seconds=120.0,
    grant_records=3_200_000,
    grant_reason="51k/s x 1m3s",
    throughput=51_000,
    arrival_rate=1200,
    eta_seconds=81.0,
    batches=12,
    batch_seconds=240.0,
    sources={"flights": SOURCE},
)
FRAME = Frame(
    t=1000.0,
    application="air",
    state="Running",
    message="attempt 2 runs",
    attempt=2,
    pid=4711,
    started_at=808.0,
    control_generation=4,
    acknowledged_generation=4,
    metrics_available=True,
    queries={"delays": QUERY},
)
EVENT = Event(at=3661.0, reason="BacklogEntered", message="query delays: in backlog by WatermarkLag")


def drawn(frame: Frame, *events: Event, batches: tuple[Batch, ...] = (), width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(draw(frame, events, {"delays": batches}))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def with_query(**changes: Any) -> Frame:
    return replace(FRAME, queries={"delays": replace(QUERY, **changes)})


# The terminal -------------------------------------------------------------------------------------


def test_the_drawing_tells_what_runs() -> None:
    head = drawn(FRAME).splitlines()[0]
    for fact in ("air", "Running", "attempt 2", "pid 4711", "up 3m12s", "control 4 in force"):
        assert fact in head


def test_the_drawing_tells_a_query_and_its_sources() -> None:
    text = drawn(FRAME, batches=(Batch(100, 1.0), Batch(200_000, 4.25)))
    assert "delays  BACKLOG by WatermarkLag for 1m40s" in text
    for fact in (
        "interval 2m",
        "grant 3.2M (51k/s x 1m3s)",
        "throughput 51k/s",
        "arriving 1.2k/s",
        "eta 1m21s",
    ):
        assert fact in text
    assert "batches 12   last 200k in 4.2s   ▁█" in text
    (row,) = (line for line in text.splitlines() if "flights" in line)
    for fact in ("1h2m", "4.05M", "50k/s", "RateLimit", "WatermarkLag yes", "PendingRecords unknown"):
        assert fact in row


def test_the_drawing_tells_who_is_waited_for() -> None:
    waiting = replace(SOURCE, held_by="Alignment", waits_for="delays/weather")
    text = drawn(with_query(sources={"flights": waiting}, watermark_held_by="trams"), width=160)
    assert "Alignment(delays/weather)" in text
    assert "watermark held back by trams, so that state grows" in text


def test_the_drawing_tells_what_a_query_has_failed_of() -> None:
    text = drawn(with_query(failure="query delays: topic flights does not exist; create it"))
    assert "delays  FAILED" in text
    assert "query delays: topic flights does not exist; create it" in text


def test_the_drawing_tells_which_source_is_out_of_reach_and_why() -> None:
    cause = "query delays: source flights: broker:9092 has not answered yet"
    text = drawn(with_query(sources={"flights": replace(SOURCE, out_of_reach=cause)}), width=160)
    assert cause in text


def test_the_drawing_tells_a_live_query() -> None:
    text = drawn(with_query(backlog=False, reason=None, eta_seconds=0.0))
    assert "delays  live for 1m40s" in text
    assert "BACKLOG" not in text


def test_real_time_mode_is_told_where_a_query_is_live_in_it_and_what_keeps_it_out() -> None:
    live = with_query(backlog=False, reason=None, real_time=True)
    assert "delays  live in real-time mode for 1m40s" in drawn(live)
    out = io.StringIO()
    PlainView(out).show(Moment(replace(live, t=1010.0)))
    assert "query delays: live in real-time mode, " in out.getvalue()
    stays = with_query(backlog=False, real_time=False, real_time_refused="it needs 9 task slots")
    assert "not in real-time mode: it needs 9 task slots" in drawn(stays)


def test_the_drawing_tells_what_is_not_known_of_a_snapshot() -> None:
    problem = "partition flights/7 ends with a record of a snapshot"
    assert problem in drawn(with_query(sources={"flights": replace(SOURCE, snapshot_problem=problem)}))


def test_the_drawing_tells_why_nothing_runs_and_why_nothing_is_known() -> None:
    waiting = replace(FRAME, state="BackingOff", message="attempt 1 ended with exit code 1", pid=None)
    assert "attempt 1 ended with exit code 1" in drawn(waiting)
    hanging = replace(FRAME, metrics_available=False, outage="did not answer within 2 s")
    assert "metrics: did not answer within 2 s" in drawn(hanging)


def test_the_drawing_tells_a_document_that_is_not_in_force() -> None:
    assert "control 5 published, 4 in force" in drawn(replace(FRAME, control_generation=5))


def test_the_drawing_tells_the_last_events() -> None:
    assert "01:01:01 query delays: in backlog by WatermarkLag" in drawn(FRAME, EVENT)


def test_what_is_not_known_is_a_dash_and_never_a_zero() -> None:
    unknown = replace(
        FRAME, queries={"delays": QueryFrame(backlog=False, sources={"flights": SourceFrame()})}
    )
    text = drawn(unknown)
    for fact in ("interval -", "grant -", "throughput -", "eta -", "batches -"):
        assert fact in text


def test_a_name_cannot_disturb_the_drawing() -> None:
    odd = replace(FRAME, queries={"[red]x[/]": replace(QUERY, sources={"[/bold]": SOURCE})})
    text = drawn(odd)
    assert "[red]x[/]" in text
    assert "[/bold]" in text


# Lines --------------------------------------------------------------------------------------------


def test_plain_lines_tell_events_and_numbers_now_and_then() -> None:
    out = io.StringIO()
    view = PlainView(out)
    view.show(Moment(FRAME, (EVENT, replace(EVENT, is_warning=True, message="gone"))))
    view.show(Moment(replace(with_query(grant_records=1.0), t=1005.0)))
    view.show(Moment(replace(with_query(grant_records=2.0), t=1010.0)))
    view.show(Moment(replace(with_query(grant_records=2.0), t=1020.0)))
    assert out.getvalue().splitlines() == [
        "01:01:01 query delays: in backlog by WatermarkLag (BacklogEntered)",
        "01:01:01 warning: gone (BacklogEntered)",
        "00:16:40 query delays: backlog (WatermarkLag), 4.05M pending, lag 1h2m, interval 2m, "
        "grant 3.2M, 51k/s, eta 1m21s, batches 12",
        "00:16:50 query delays: backlog (WatermarkLag), 4.05M pending, lag 1h2m, interval 2m, "
        "grant 2, 51k/s, eta 1m21s, batches 12",
    ]


def test_json_lines_tell_each_change_once() -> None:
    out = io.StringIO()
    view = JsonView(out)
    view.show(Moment(FRAME, (EVENT,)))
    view.show(Moment(replace(FRAME, t=1001.0)))
    view.show(Moment(replace(with_query(eta_seconds="never"), t=1002.0)))
    event, first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert event == {
        "type": "event",
        "t": 3661.0,
        "reason": "BacklogEntered",
        "message": "query delays: in backlog by WatermarkLag",
        "warning": False,
    }
    assert (first["type"], first["t"], second["t"]) == ("sample", 1000.0, 1002.0)
    assert second["queries"]["delays"]["etaSeconds"] == "never"
    source = first["queries"]["delays"]["sources"]["flights"]
    assert source["pendingRecords"] == 4_050_000
    assert source["votes"] == {"WatermarkLag": True, "PendingRecords": None, "Phase": False}
    assert "eventTimeLag" not in source, "what is not known is left out"


def test_a_status_is_told_when_it_was_written() -> None:
    loop, out = Loop(), io.StringIO()
    outcome = loop.run_until_running()
    JsonView(out).show(Moment(frame_of("flights", outcome, pid=1), (), loop.memory.status_written))
    status = json.loads(out.getvalue().splitlines()[0])
    assert status["type"] == "status"
    assert status["status"]["state"] == "Running"


def test_a_report_holds_samples_events_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.json"
    view = HistoryView(path)
    view.show(Moment(FRAME, (EVENT,)))
    view.show(Moment(replace(FRAME, t=1001.0)))
    view.show(Moment(replace(with_query(batches=13), t=1002.0)))
    view.close(75)
    report = json.loads(path.read_text())
    assert (report["application"], report["exitCode"]) == ("air", 75)
    assert (report["startedAt"], report["endedAt"]) == (1000.0, 1002.0)
    assert [sample["t"] for sample in report["samples"]] == [1000.0, 1002.0]
    assert [event["reason"] for event in report["events"]] == ["BacklogEntered"]


# Batches and words --------------------------------------------------------------------------------


def test_batches_between_two_frames_are_averaged_and_a_restart_starts_over() -> None:
    history = BatchHistory()

    def watch(batches: float | None, seconds: float, processed: float) -> list[Batch]:
        source = replace(SOURCE, processed_records=processed)
        history.watch(replace(QUERY, batches=batches, batch_seconds=seconds, sources={"flights": source}))
        return list(history.batches)

    assert watch(None, 0, 0) == []
    assert watch(1, 10, 100) == []
    assert watch(2, 12, 300) == [Batch(200, 2.0)]
    assert watch(2, 12, 300) == [Batch(200, 2.0)]
    assert watch(4, 18, 500) == [Batch(200, 2.0), Batch(100, 3.0), Batch(100, 3.0)]
    assert watch(0, 0, 0) == []


def test_numbers_are_short_and_exact_enough() -> None:
    shown = [amount(v) for v in (None, 0, 0.25, 999, 1000, 12_345, 4_050_000, 2.5e9)]
    assert shown == ["-", "0", "0.25", "999", "1k", "12.3k", "4.05M", "2.5G"]
    durations = [duration(v) for v in (None, 0.0, 0.44, 9.96, 75.3, 4500.2)]
    assert durations == ["-", "0s", "440ms", "10s", "1m15s", "1h15m"]
    assert sparkline((0.0, 5.0, 10.0)) == "▁▅█"
    assert sparkline((0.0, 0.0)) == "▁▁"
    assert sparkline(()) == ""
