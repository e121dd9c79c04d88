"""A planning is timed where it is done: in the planner's process, with both of its calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kafka import timed_run
from headgate_contract import BatchControl, ControlDocument, QueryControl
from headgate_contract.receiving import write
from support.driver import CONF, ENVIRONMENT, JOBS, ROOT, recording
from support.waiting import DEADLINE_SECONDS


@pytest.mark.spark
def test_each_planning_that_leads_to_a_batch_is_noted_with_its_two_calls(tmp_path: Path) -> None:
    source, notes = recording(tmp_path / "source", 100), tmp_path / "plannings.jsonl"
    control = tmp_path / "control.json"
    queries = {"now": QueryControl(batch=BatchControl(initial_records=50, max_records=50))}
    control.write_text(write(ControlDocument(generation=1, queries=queries)))
    command = [sys.executable, "-m", timed_run.__name__, str(notes), "--metrics-port", "0"]
    command += ["--control", str(control)]
    command += [word for pair in CONF.items() for word in ("--conf", "=".join(pair))]
    command += [str(JOBS / "available_now.py"), str(source), str(tmp_path / "out"), str(tmp_path / "ck")]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    plannings = timed_run.read(notes)
    assert len(plannings) >= 2, "a batch each; one whose answer came too late is planned again"
    assert all(0 < planning.first_seconds < planning.seconds for planning in plannings)
