"""`headgate local` as a process, with a stand-in for the driver: no Spark, all else real."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.local_runs import FAKE_DRIVER, LocalRun, command, local_run
from support.waiting import wait_until

pytestmark = pytest.mark.processes

RESOURCE = """
apiVersion: headgate.dev/v1alpha1
kind: SparkApplication
metadata: {name: flights}
spec:
  main: {file: job.json}
  restart: {backoff: 300ms, maxBackoff: 300ms, maxRetries: 2}
  stop: {gracePeriod: 60s}
  metrics: {staleAfter: 500ms}
  queries:
    - name: delays
      checkpoint: {interval: 5s, intervalDuringBacklog: 2m}
      sources:
        - name: flights
          backlog: {watermarkLag: 5m}
"""
ANOTHER = """metadata: {name: flights}
spec: {main: {file: job.json}}
---
apiVersion: headgate.dev/v1alpha1
kind: SparkApplication
"""
OPTIONS = ("--tick", "0.05", "--launcher", FAKE_DRIVER)


def job(folder: Path, lag: float = 400.0, **behaviour: Any) -> None:
    """Write what the driver is to do; replaced whole, since the driver reads it at every scrape."""
    sources = {"flights": {"watermark_lag_seconds": lag, "pending_records": 10}}
    new = folder / "job.new"
    new.write_text(json.dumps({"sources": sources, **behaviour}))
    new.replace(folder / "job.json")


@contextmanager
def running(folder: Path, *options: str) -> Iterator[LocalRun]:
    with local_run(folder, "flights", *OPTIONS, *options) as run:
        yield run


def edit(folder: Path, before: str, after: str) -> None:
    text = (folder / "app.yaml").read_text()
    assert before in text
    new = folder / "app.new"
    new.write_text(text.replace(before, after))
    new.replace(folder / "app.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text(RESOURCE)
    job(tmp_path)
    return tmp_path


def in_backlog(sample: dict[str, Any]) -> bool:
    return bool(sample["queries"]["delays"]["backlog"])


def is_acknowledged(sample: dict[str, Any]) -> bool:
    return sample.get("acknowledgedGeneration") == sample["controlGeneration"]


def test_a_backlog_is_entered_and_left_and_ctrl_c_stops_cleanly(folder: Path) -> None:
    report = folder / "report.json"
    with running(folder, "--report", str(report)) as run:
        run.wait_for_sample(lambda s: in_backlog(s) and is_acknowledged(s), "a backlog in force")
        job(folder, lag=1.0)
        run.wait_for_event("BacklogLeft")
        run.interrupt()
        assert run.wait() == 0
        assert run.reasons[-2:] == ["Stopping", "Stopped"]
        assert "stopped at a batch boundary" in (run.state_dir / "driver.log").read_text()
    kept = json.loads(report.read_text())
    assert kept["exitCode"] == 0
    assert [event["reason"] for event in kept["events"]] == run.reasons
    assert {in_backlog(sample) for sample in kept["samples"]} == {True, False}


def test_a_job_that_ends_by_itself_ends_the_command(folder: Path) -> None:
    job(folder, runsSeconds=0.3)
    with running(folder) as run:
        assert run.wait() == 0
        assert "Completed" in run.reasons


def test_a_second_signal_kills(folder: Path) -> None:
    job(folder, ignoresStop=True)
    with running(folder) as run:
        run.wait_for_event("Running")
        run.interrupt()
        run.wait_for_event("Stopping")
        run.terminate()
        assert run.wait() == 137
        assert "the next run repeats that batch" in run.errors


def test_a_driver_that_fails_is_restarted_and_given_up_in_the_end(folder: Path) -> None:
    job(folder, exitCode=3, output="the reason is here")
    with running(folder) as run:
        assert run.wait() == 3
        assert max(sample["attempt"] for sample in run.samples) == 3
        assert "RetriesExhausted" in run.reasons
        assert "the reason is here" in run.errors
        assert str(run.state_dir / "driver.log") in run.errors


def test_a_driver_that_fails_once_goes_on(folder: Path) -> None:
    job(folder, exitCode=3, failures=1)
    with running(folder) as run:
        run.wait_for_sample(lambda s: s["state"] == "Running" and s["attempt"] == 2, "the second attempt")
        assert "BackingOff" in run.reasons


def test_a_driver_that_is_killed_is_restarted_with_a_verdict_of_its_own(folder: Path) -> None:
    with running(folder) as run:
        first = run.wait_for_sample(lambda s: in_backlog(s) and "pid" in s, "a backlog")
        os.kill(first["pid"], signal.SIGKILL)
        second = run.wait_for_sample(
            lambda s: s["attempt"] == 2 and in_backlog(s) and is_acknowledged(s), "the second attempt"
        )
        assert second["pid"] != first["pid"]
        assert second["controlGeneration"] > first["controlGeneration"]


def test_a_checkpoint_in_use_is_passed_on_and_not_retried(folder: Path) -> None:
    job(folder, exitCode=75, output="checkpoint /data/c is in use by pid 4711")
    with running(folder) as run:
        assert run.wait() == 75
        assert max(sample["attempt"] for sample in run.samples) == 1
        assert "pid 4711" in run.errors


def test_a_batch_that_does_not_fit_ends_the_run_with_what_helps_on_one_machine(folder: Path) -> None:
    job(folder, exitCode=76, output="query delays: batch 7 has failed twice for want of memory")
    with running(folder) as run:
        assert run.wait() == 76
        assert max(sample["attempt"] for sample in run.samples) == 1
        assert "BatchTooLarge" in run.reasons
        assert "a batch does not fit in memory" in run.errors
        assert "Raise driver.memory, or spark.sql.shuffle.partitions" in run.errors
        assert "executor.memory" not in run.errors
        assert "query delays: batch 7 has failed twice" in run.errors


def test_a_second_run_of_the_application_is_refused_with_the_holder(folder: Path) -> None:
    with running(folder) as run:
        run.wait_for_event("Running")
        second = subprocess.run(
            command(*OPTIONS), cwd=folder, capture_output=True, text=True, timeout=240, check=False
        )
        assert second.returncode == 75
        assert f"pid {run.process.pid}" in second.stderr


def test_a_run_that_was_killed_is_continued_by_the_next(folder: Path) -> None:
    with running(folder) as run:
        before = run.wait_for_sample(lambda s: in_backlog(s) and is_acknowledged(s), "a backlog in force")
        run.process.kill()
        run.wait()
        with running(folder) as again:
            after = again.wait_for_sample(lambda s: s["state"] == "Running", "the driver that was there")
            assert (after["pid"], after["attempt"]) == (before["pid"], 1)
            assert after["controlGeneration"] == before["controlGeneration"]
            again.interrupt()
            assert again.wait() == 0


def test_the_driver_of_another_application_is_not_stopped_for_its_state_folder(folder: Path) -> None:
    (folder / "other.yaml").write_text(
        RESOURCE.replace("metadata: {name: flights}", "metadata: {name: trains}")
    )
    with running(folder) as run:
        run.wait_for_event("Running")
        run.process.kill()
        run.wait()
        other = [word.replace("app.yaml", "other.yaml") for word in command(*OPTIONS)]
        refused = subprocess.run(
            [*other, "--state-dir", str(run.state_dir)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert refused.returncode == 75
        assert "the driver of application flights runs there; choose another folder" in refused.stderr
        assert json.loads((run.state_dir / "driver.json").read_text()).get("endedAt") is None


def test_a_new_run_after_a_failed_one_tries_again(folder: Path) -> None:
    job(folder, exitCode=75)
    with running(folder) as run:
        assert run.wait() == 75
    job(folder)
    with running(folder) as run:
        run.wait_for_event("Running")


def test_an_edit_is_applied_to_the_running_driver(folder: Path) -> None:
    with running(folder) as run:
        before = run.wait_for_sample(lambda s: in_backlog(s) and is_acknowledged(s), "a backlog in force")
        edit(folder, "watermarkLag: 5m", "watermarkLag: 5h")
        run.wait_for_event("BacklogLeft")
        edit(folder, "interval: 5s", "interval: 7s")
        run.wait_for_event("ControlPublished")
        control = run.state_dir / "control.json"
        wait_until(
            lambda: json.loads(control.read_text())["queries"]["delays"]["intervalSeconds"] == 7.0,
            "the interval in the control document",
        )
        assert run.samples[-1]["pid"] == before["pid"]


def test_whose_word_holds_is_told_where_the_job_says_something_itself_and_when_that_changes(
    folder: Path,
) -> None:
    def told(run: LocalRun) -> list[str]:
        return [line["message"] for line in run.lines if line.get("reason") == "SettingsOfTheJob"]

    job(folder, settings=[("", "interval", "option"), ("flights", "rateLimit.recordsPerSecond", "property")])
    said = (
        "query delays: interval: option; source flights of query delays: rateLimit.recordsPerSecond: property"
    )
    with running(folder) as run:
        wait_until(lambda: told(run) == [f"whose word holds: {said}"], "whose word holds", seen=run.__str__)
        job(folder, settings=[("", "interval", "document")])
        edit(folder, "interval: 5s", "interval: 7s")  # the driver takes another document
        wait_until(
            lambda: told(run)[1:] == ["whose word holds: query delays: interval: document"],
            "that another one's does",
            seen=run.__str__,
        )


def test_an_edit_that_is_refused_changes_nothing(folder: Path) -> None:
    with running(folder) as run:
        run.wait_for_event("Running")
        edit(folder, "watermarkLag: 5m", "watermarkLag: 5")
        run.wait_for_event("ResourceRefused")
        assert run.process.poll() is None
        (told,) = (line for line in run.lines if line.get("reason") == "ResourceRefused")
        assert "5 has no unit" in told["message"]


def test_a_resource_file_that_is_deleted_and_restored_is_told(folder: Path) -> None:
    with running(folder) as run:
        before = run.wait_for_sample(lambda s: s["state"] == "Running", "the driver")
        text = (folder / "app.yaml").read_text()
        (folder / "app.yaml").unlink()
        run.wait_for_event("ResourceMissing")
        (told,) = (line for line in run.lines if line.get("reason") == "ResourceMissing")
        assert "app.yaml: No such file or directory; the resource as it was read last" in told["message"]
        (folder / "app.yaml").write_text(text)
        run.wait_for_event("ResourceFound")
        assert run.samples[-1]["pid"] == before["pid"]


def test_an_edit_of_what_a_driver_starts_with_restarts_it_at_a_batch_boundary(folder: Path) -> None:
    with running(folder) as run:
        run.wait_for_event("Running")
        edit(folder, "main: {file: job.json}", "main: {file: job.json, arguments: [--more]}")
        run.wait_for_sample(lambda s: s["attempt"] == 2 and s["state"] == "Running", "the second attempt")
        log = (run.state_dir / "driver.log").read_text()
        assert "stopped at a batch boundary" in log
        assert '["--more"]' in log


def test_a_driver_that_hangs_is_an_outage_and_no_reason_to_restart(folder: Path) -> None:
    with running(folder) as run:
        before = run.wait_for_sample(in_backlog, "a backlog")
        job(folder, hangs=3600)
        out = run.wait_for_sample(
            lambda s: s["t"] > before["t"] and s.get("metricsAvailable") is False, "the outage"
        )
        assert in_backlog(out)
        assert "ScrapeTimeout" in run.reasons
        job(folder)
        run.wait_for_sample(
            lambda s: s["t"] > out["t"] and s.get("metricsAvailable") is True, "metrics are back"
        )
        assert run.samples[-1]["attempt"] == 1


def test_a_damaged_memory_is_told_and_no_reason_to_fail(folder: Path) -> None:
    state = folder / ".headgate" / "flights"
    state.mkdir(parents=True)
    for name in ("memory.json", "status.json", "driver.json", "control.json"):
        (state / name).write_text("{")
    with running(folder) as run:
        run.wait_for_event("Running")
        assert "StateFolder" in run.reasons


@pytest.mark.parametrize(
    ("before", "after", "code", "says"),
    [
        ("interval: 5s", "interval: 5", 1, "app.yaml:12: error: spec.queries[delays].checkpoint.interval"),
        ("interval: 5s", "intervall: 5s", 1, "intervall"),
        ("job.json", "none.json", 1, "there is no file"),
        ("job.json", "s3a://lake/job.py", 1, "is not on this machine"),
        ("job.json}", 'job.json, arguments: ["a\\0b"]}', 1, "holds a null byte, which no command line can"),
        ("job.json}", 'job.json}\n  sparkConf: {spark.x: "\\0"}', 1, "holds a null byte"),
        ("metadata:", f"{ANOTHER}metadata:", 1, "holds an application twice"),
    ],
)
def test_what_cannot_run_is_refused_in_a_sentence(
    folder: Path, before: str, after: str, code: int, says: str
) -> None:
    edit(folder, before, after)
    refused = subprocess.run(
        command(*OPTIONS), cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert refused.returncode == code
    assert says in refused.stderr
    assert "Traceback" not in refused.stderr


def test_plain_lines_are_written_where_there_is_no_terminal(folder: Path) -> None:
    job(folder, runsSeconds=0, runsScrapes=5)
    done = subprocess.run(
        command(*OPTIONS, "--driver-output"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0
    assert "(BacklogEntered)" in done.stdout
    assert "ended by itself" in done.stderr


def test_a_terminal_gets_a_drawing(folder: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    process = subprocess.Popen(
        command(*OPTIONS), cwd=folder, stdin=theirs, stdout=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    screen = bytearray()

    def shows(*facts: str) -> bool:
        if select.select([ours], [], [], 0.05)[0]:
            with suppress(OSError):  # EIO: the other end is closed
                screen.extend(os.read(ours, 65536))
        return all(fact in screen.decode(errors="replace") for fact in facts)

    try:
        wait_until(lambda: shows("flights", "BACKLOG", "in force", "Ctrl-C stops"), "the drawing")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: shows("Suspended") and process.poll() is not None, "the end")
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait(240)
        os.close(ours)


def test_a_state_folder_that_cannot_be_written_is_told_and_tried_again(folder: Path) -> None:
    with running(folder) as run:
        run.wait_for_event("Running")
        hidden = folder / "hidden"
        run.state_dir.rename(hidden)
        edit(folder, "interval: 5s", "interval: 7s")
        run.wait_for_event("StateFolder")
        hidden.rename(run.state_dir)
        wait_until(lambda: interval_told(run) == 7.0, "the edit is published")
        run.interrupt()
        assert run.wait() == 0


def interval_told(run: LocalRun) -> float:
    control = json.loads((run.state_dir / "control.json").read_text())
    return float(control["queries"]["delays"]["intervalSeconds"])
