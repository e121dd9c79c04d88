"""What the views of `headgate local` show of a moment."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from headgate.api.status import (
    AlignmentStatus,
    Condition,
    ConditionStatus,
    QueryStatus,
    SourceStatus,
    SparkApplicationStatus,
    Votes,
)
from headgate.cli.view import Moment
from headgate.cli.view.lines import HistoryView, JsonView, PlainView
from headgate.cli.view.sample import moment_of
from headgate.cli.view.terminal import Batch, BatchHistory, draw
from headgate.cli.view.words import amount, duration, sparkline
from headgate.decision.driver import History, State, Step, StepReason, Wait
from headgate.decision.observation import Observation
from headgate.reconcile.ports import Event
from headgate.reconcile.readings import DriverMetrics, QueryMetrics, SourceMetrics
from support.looping import Loop

SOURCE = SourceStatus(
    name="flights",
    pending_records=4_050_000,
    watermark_lag=timedelta(seconds=3720),
    rate_limit=50_000,
    held="RateLimit",
    votes=Votes(
        watermark_lag=ConditionStatus.TRUE,
        pending_records=ConditionStatus.UNKNOWN,
        phase=ConditionStatus.FALSE,
    ),
)
QUERY = QueryStatus(
    name="delays",
    backlog=True,
    reason="WatermarkLag",
    since=datetime.fromtimestamp(900, UTC),
    interval=timedelta(minutes=2),
    grant=3_200_000,
    grant_reason="51k/s x 1m3s",
    throughput=51_000,
    pending_records=4_050_000,
    watermark_lag=timedelta(seconds=3720),
    eta="1m21s",
    sources=(SOURCE,),
)
REPORTED = QueryMetrics(
    data_batches=12,
    batch_seconds_sum=240.0,
    sources={"flights": SourceMetrics(pending_records=4_050_000, processed_records=1000)},
)
EVENT = Event(at=3661.0, reason="BacklogEntered", message="query delays: in backlog by WatermarkLag")


def moment(query: QueryStatus = QUERY, reported: QueryMetrics = REPORTED, **members: Any) -> Moment:
    """A reconcile that came to this status, of a driver that reports this; keywords replace members of it."""
    condition = "True" if members.get("outage") is None else "False"
    measured = Condition(
        type="MetricsAvailable",
        status=ConditionStatus(condition),
        reason="So",
        last_transition_time=datetime.fromtimestamp(900, UTC),
    )
    step = Step(
        state=State.RUNNING,
        action=Wait(),
        reason=StepReason.RUNNING,
        message="attempt 2 runs",
        history=History(attempt=2),
    )
    shown = Moment(
        application="air",
        at=1000.0,
        step=step,
        published=4,
        status=SparkApplicationStatus(acknowledged_generation=4, conditions=(measured,), queries=(query,)),
        reported={query.name: reported},
        observed={query.name: Observation(t=1000.0, query=query.name, arrival_rate=1200.0)},
        pid=4711,
        started_at=808.0,
    )
    return replace(shown, **members)


def drawn(shown: Moment, *events: Event, batches: tuple[Batch, ...] = (), width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(draw(shown, events, {"delays": batches}))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def of_query(**changes: Any) -> Moment:
    return moment(QUERY.model_copy(update=changes))


def of_source(**changes: Any) -> Moment:
    return of_query(sources=(SOURCE.model_copy(update=changes),))


# The terminal -------------------------------------------------------------------------------------


def test_the_drawing_tells_what_runs() -> None:
    head = drawn(moment()).splitlines()[0]
    for fact in ("air", "Running", "attempt 2", "pid 4711", "up 3m12s", "control 4 in force"):
        assert fact in head


def test_the_drawing_tells_a_query_and_its_sources() -> None:
    text = drawn(moment(), batches=(Batch(100, 1.0), Batch(200_000, 4.25)))
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
    waiting = SOURCE.model_copy(
        update={"held": "Alignment", "alignment": AlignmentStatus(group="g", held_by="delays/weather")}
    )
    text = drawn(of_query(sources=(waiting,), watermark_held_by="trams"), width=160)
    assert "Alignment(delays/weather)" in text
    assert "watermark held back by trams, so that state grows" in text


def test_the_drawing_tells_what_a_query_has_failed_of() -> None:
    text = drawn(of_query(failure="query delays: topic flights does not exist; create it"))
    assert "delays  FAILED" in text
    assert "query delays: topic flights does not exist; create it" in text


def test_the_drawing_tells_which_source_is_out_of_reach_and_why() -> None:
    cause = "query delays: source flights: broker:9092 has not answered yet"
    text = drawn(of_source(out_of_reach=cause), width=160)
    assert cause in text


def test_the_drawing_tells_a_live_query() -> None:
    text = drawn(of_query(backlog=False, reason=None, eta="0s"))
    assert "delays  live for 1m40s" in text
    assert "BACKLOG" not in text


def test_real_time_mode_is_told_where_a_query_is_live_in_it_and_what_keeps_it_out() -> None:
    live = of_query(backlog=False, reason=None, real_time=True)
    assert "delays  live in real-time mode for 1m40s" in drawn(live)
    out = io.StringIO()
    PlainView(out).show(live)
    assert "query delays: live in real-time mode, " in out.getvalue()
    stays = of_query(backlog=False, real_time=False, real_time_refused="it needs 9 task slots")
    assert "not in real-time mode: it needs 9 task slots" in drawn(stays)
    plain = PlainView(again := io.StringIO())
    for each in (stays, stays, live, stays):
        plain.show(each)
    assert again.getvalue().count("warning: query delays: not in real-time mode: it needs 9 task slots") == 2


def test_the_drawing_tells_why_a_query_keeps_its_own_trigger() -> None:
    assert "it is governed at its own" in drawn(of_query(trigger_problem="it is governed at its own"))


def test_the_drawing_tells_what_is_not_known_of_a_snapshot() -> None:
    problem = "partition flights/7 ends with a record of a snapshot"
    assert problem in drawn(of_source(snapshot_problem=problem))


def test_the_drawing_tells_why_nothing_runs_and_why_nothing_is_known() -> None:
    message = "attempt 1 ended with exit code 1"
    waiting = moment(step=replace(moment().step, state=State.BACKING_OFF, message=message))
    assert "attempt 1 ended with exit code 1" in drawn(waiting)
    hanging = moment(outage="did not answer within 2 s")
    assert "metrics: did not answer within 2 s" in drawn(hanging)


def test_the_drawing_tells_a_document_that_is_not_in_force() -> None:
    assert "control 5 published, 4 in force" in drawn(moment(published=5))


def test_the_drawing_tells_the_last_events() -> None:
    assert "01:01:01 query delays: in backlog by WatermarkLag" in drawn(moment(), EVENT)


def test_the_drawing_keeps_whose_word_holds_in_sight_when_the_events_have_scrolled_on() -> None:
    assert "whose word holds" not in drawn(moment()), "of a job that says nothing by itself"
    lines = drawn(moment(holding=("query delays: interval: document; minPause: option",))).splitlines()
    assert lines[lines.index("whose word holds") + 1] == "query delays: interval: document; minPause: option"


def test_what_is_not_known_is_a_dash_and_never_a_zero() -> None:
    text = drawn(moment(QueryStatus(name="delays", sources=(SourceStatus(name="flights"),)), QueryMetrics()))
    for fact in ("interval -", "grant -", "throughput -", "eta -", "batches -"):
        assert fact in text


def test_a_name_cannot_disturb_the_drawing() -> None:
    text = drawn(of_query(name="[red]x[/]", sources=(SOURCE.model_copy(update={"name": "[/bold]"}),)))
    assert "[red]x[/]" in text
    assert "[/bold]" in text


# Lines --------------------------------------------------------------------------------------------


def test_plain_lines_tell_events_and_numbers_now_and_then() -> None:
    out = io.StringIO()
    view = PlainView(out)
    view.show(moment(events=(EVENT, replace(EVENT, is_warning=True, message="gone"))))
    for at, grant in ((1005.0, 1), (1010.0, 2), (1020.0, 2)):
        view.show(moment(QUERY.model_copy(update={"grant": grant}), at=at))
    assert out.getvalue().splitlines() == [
        "01:01:01 query delays: in backlog by WatermarkLag (BacklogEntered)",
        "01:01:01 warning: gone (BacklogEntered)",
        "00:16:40 query delays: backlog (WatermarkLag), 4.05M pending, lag 1h2m, interval 2m, "
        "grant 3.2M, 51k/s, eta 1m21s, batches 12",
        "00:16:50 query delays: backlog (WatermarkLag), 4.05M pending, lag 1h2m, interval 2m, "
        "grant 2, 51k/s, eta 1m21s, batches 12",
    ]


def test_what_a_driver_has_said_forges_no_line_and_does_nothing_to_a_terminal() -> None:
    out = io.StringIO()
    PlainView(out).show(moment(events=(replace(EVENT, message="ended: \x1b[2J\n00:00:00 all is well"),)))
    assert "\x1b" not in out.getvalue()
    assert not any(line.startswith("00:00:00") for line in out.getvalue().splitlines())


def test_json_lines_tell_each_change_once() -> None:
    out, loop = io.StringIO(), Loop()
    view, outcome = JsonView(out), loop.run_until_running()

    def shown(at: float, eta: float | str | None, *events: Event) -> Moment:
        seen = replace(outcome.seen, now=at)
        verdict = replace(outcome.plan.verdicts["delays"], eta_seconds=eta)
        plan = replace(outcome.plan, verdicts={"delays": verdict})
        return moment_of("air", replace(outcome, seen=seen, plan=plan), pid=4711, events=events)

    view.show(shown(1000.0, None, EVENT))
    view.show(shown(1001.0, None))
    view.show(shown(1002.0, "never"))
    event, first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert event == {
        "type": "event",
        "t": 3661.0,
        "reason": "BacklogEntered",
        "message": "query delays: in backlog by WatermarkLag",
        "warning": False,
    }
    assert (first["type"], first["t"], second["t"]) == ("sample", 1000.0, 1002.0)
    assert (first["application"], first["pid"], first["attempt"]) == ("air", 4711, 1)
    assert "etaSeconds" not in first["queries"]["delays"], "what is not known is left out"
    assert second["queries"]["delays"]["etaSeconds"] == "never"
    source = first["queries"]["delays"]["sources"]["flights"]
    assert source["votes"] == {"Phase": None, "WatermarkLag": None, "PendingRecords": None}


def test_a_sample_has_what_a_driver_reports() -> None:
    loop = Loop()
    loop.run_until_running()
    reported = SourceMetrics(
        pending_records=4_050_000, processed_records=1000, watermark_lag_seconds=400.0, phase=False
    )
    driver = DriverMetrics(
        at=loop.now, queries={"delays": QueryMetrics(data_batches=12, sources={"flights": reported})}
    )
    outcome = loop.reconcile()
    seen = replace(outcome.seen, metrics=driver)
    sample = moment_of("air", replace(outcome, seen=seen), pid=1, events=()).sample
    query = sample["queries"]["delays"]
    assert query["batches"] == 12
    assert query["sources"]["flights"] | {"votes": {}} == {
        "pendingRecords": 4_050_000,
        "processedRecords": 1000,
        "watermarkLag": 400.0,
        "phase": False,
        "votes": {},
    }


def test_a_status_is_told_when_it_was_written() -> None:
    out = io.StringIO()
    for is_written in (True, False):
        JsonView(out).show(moment(is_written=is_written, sample={"type": "sample", "t": 1000.0}))
    status, *samples = (json.loads(line) for line in out.getvalue().splitlines())
    assert (status["type"], status["t"], status["status"]["acknowledgedGeneration"]) == ("status", 1000.0, 4)
    assert [sample["type"] for sample in samples] == ["sample", "sample"]


def test_a_report_holds_samples_events_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.json"
    view = HistoryView(path)
    for at, batches in ((1000.0, 12), (1001.0, 12), (1002.0, 13)):
        view.show(
            moment(at=at, events=(EVENT,) if at == 1000.0 else (), sample={"t": at, "batches": batches})
        )
    view.close(75)
    report = json.loads(path.read_text())
    assert (report["application"], report["exitCode"]) == ("air", 75)
    assert (report["startedAt"], report["endedAt"]) == (1000.0, 1002.0)
    assert [sample["t"] for sample in report["samples"]] == [1000.0, 1002.0]
    assert [event["reason"] for event in report["events"]] == ["BacklogEntered"]


# Batches and words --------------------------------------------------------------------------------


def test_batches_between_two_moments_are_averaged_and_a_restart_starts_over() -> None:
    history = BatchHistory()

    def watch(batches: float | None, seconds: float, processed: float) -> list[Batch]:
        source = SourceMetrics(processed_records=processed)
        reported = QueryMetrics(data_batches=batches, batch_seconds_sum=seconds, sources={"flights": source})
        history.watch(reported)
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
