"""The words by which a query goes into real-time mode: what the shim is told, and what it tells when it cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from headgate_contract import ControlDocument, LiveControl, QueryControl, SourceControl
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.resumption import Ends, Resumption
from support.asked import admit, plan
from support.engine import MadeUpCheckpoint, begins, described, services_with

LIVE = {"headgate.live.mode": "RealTime", "headgate.live.batch": "30s"}
START, LATEST = json.dumps({"orders": {"0": 7}}), json.dumps({"orders": {"0": 7}})


def governor_with(checkpoint: MadeUpCheckpoint | None = None) -> Governor:
    found = checkpoint or MadeUpCheckpoint()
    return Governor(services_with(open_checkpoint=lambda _: found))


def open_query(governor: Governor, **more: Any) -> str:
    begins(governor, **more)
    return governor.opened(1, described(1))


def planned(governor: Governor) -> str:
    """Ask in one trigger, for a source that has nothing."""
    answer = admit(governor, 1, START)
    return plan(governor, 1, json.dumps({"1": LATEST})) if answer.startswith("survey") else answer


def resumed() -> MadeUpCheckpoint:
    checkpoint = MadeUpCheckpoint()
    checkpoint.left = Resumption(batch=3, ends=Ends((START,)))
    return checkpoint


def run_until_live(governor: Governor) -> str:
    answers = [planned(governor) for _ in range(3)]
    return answers[-1]


@pytest.mark.parametrize("by", ["options", "properties", "document"])
def test_a_query_that_has_never_run_is_told_to_prepare_its_state(by: str) -> None:
    governor = governor_with()
    if by == "document":
        queries = {"copy": QueryControl(live=LiveControl(real_time=True))}
        governor.take_document(ControlDocument(generation=1, queries=queries))
        assert open_query(governor) == "prepare:realtime"
        return
    spelled = LIVE if by == "options" else {f"spark.{name}": text for name, text in LIVE.items()}
    assert open_query(governor, **{by: spelled}) == "prepare:realtime"


def test_one_that_has_run_or_is_not_to_be_live_so_is_not() -> None:
    assert open_query(governor_with()) == "ok"
    assert not open_query(governor_with(resumed()), options=LIVE).startswith("prepare")


def test_one_that_has_caught_up_goes_live_and_says_so() -> None:
    governor = governor_with(resumed())
    open_query(governor, options=LIVE)
    assert run_until_live(governor) == "realtime:30000"
    (run,) = governor.runs
    assert run.batches.in_flight
    figures = run.figures()
    assert figures is not None
    assert figures.real_time is True


def test_a_refusal_has_a_micro_batch_planned_in_the_same_trigger_and_is_told() -> None:
    governor = governor_with(resumed())
    open_query(governor, options=LIVE)
    run_until_live(governor)
    governor.refused("r1", "it needs 9 task slots all the time", passes=True)
    (run,) = governor.runs
    assert not run.batches.in_flight
    answer = planned(governor)
    assert answer == "hold" or answer.startswith("lease")
    figures = run.figures()
    assert figures is not None
    assert figures.real_time is False
    assert figures.real_time_refused == "it needs 9 task slots all the time"


def test_a_refusal_of_a_query_that_has_ended_is_nothing() -> None:
    governor_with().refused("gone", "too late", passes=False)


def test_what_keeps_it_from_it_is_in_the_log_once() -> None:
    governor = governor_with(resumed())
    sources = {"orders": SourceControl(paused=True)}
    queries = {"copy": QueryControl(live=LiveControl(real_time=True), sources=sources)}
    governor.take_document(ControlDocument(generation=1, queries=queries))
    open_query(governor)
    (run,) = governor.runs
    with capture_logs() as told:
        for now in range(0, 20, 4):
            run.batches._services = replace(run.batches._services, clock=lambda now=now: now)
            planned(governor)
    (line,) = [line for line in told if "stays in micro-batches" in line["event"]]
    assert "source orders is paused" in line["event"]
    assert line["query"] == "copy"


def test_a_stop_waits_for_the_batch_and_plans_no_other() -> None:
    governor = governor_with(resumed())
    open_query(governor, options=LIVE)
    run_until_live(governor)
    governor.stop()
    assert not governor.table.is_between_batches
    assert planned(governor).startswith("wait:")
    assert governor.table.is_between_batches


@pytest.mark.parametrize(
    ("setting", "text"), [("rateLimit.recordsPerSecond", "5"), ("alignment.group", "air")]
)
def test_what_cannot_hold_there_is_refused_when_the_source_is_opened(setting: str, text: str) -> None:
    said = {f"spark.headgate.{setting}": text, "spark.headgate.alignment.maxDrift": "1s"}
    if not setting.startswith("alignment"):
        said = {f"spark.headgate.{setting}": text}
    spelled = {f"spark.{name}": value for name, value in LIVE.items()}
    answer = open_query(governor_with(), properties=said | spelled)
    assert answer.startswith("refuse:")
    assert "cannot hold inside a batch of real-time mode" in answer
