"""How `headgate local` ends when the world does not play along: full disks, readers that go, drivers that are killed.

Real processes and a stand-in for the driver. A full disk is a small file system of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.local_runs import FAKE_DRIVER, LocalRun, command, kill_driver, local_run
from support.requirements import missing
from support.waiting import wait_until

pytestmark = pytest.mark.processes

RESOURCE = """
apiVersion: headgate.dev/v1alpha1
kind: SparkApplication
metadata: {name: flights}
spec:
  main: {file: job.json}
  restart: {backoff: 100ms, maxBackoff: 100ms, maxRetries: 1}
  stop: {gracePeriod: 60s}
  queries:
    - name: delays
      checkpoint: {interval: 5s, intervalDuringBacklog: 2m}
      sources:
        - name: flights
          backlog: {watermarkLag: 5m}
"""
OPTIONS = ("--tick", "0.05", "--launcher", FAKE_DRIVER)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text(RESOURCE)
    job(tmp_path)
    return tmp_path


def job(folder: Path, **behaviour: Any) -> None:
    (folder / "job.json").write_text(json.dumps(behaviour))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder with room for 256 KiB; needs the right to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        missing(f"no file system can be mounted ({mounted.stderr.strip()}); run the tests as root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Take what is left of the room."""
    with (disk / "filler").open("wb", buffering=0) as file:
        size = 65536
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2


# A full disk --------------------------------------------------------------------------------------


def test_a_full_disk_is_told_once_and_does_not_keep_ctrl_c_from_stopping(
    folder: Path, small_disk: Path
) -> None:
    state = small_disk / "state"
    with local_run(folder, "flights", *OPTIONS, "--state-dir", str(state)) as run:
        run.wait_for_event("Running")
        fill(small_disk)
        edited = RESOURCE.replace("interval: 5s", "interval: 7s")
        (folder / "app.yaml").write_text(edited)
        run.wait_for_event("StateFolder")
        asked = len(run.samples)
        run.interrupt()
        assert run.wait() == 0
        assert run.reasons[-1] == "Stopped"
        complaints = [line["message"] for line in run.lines if line.get("reason") == "StateFolder"]
        assert len(complaints) == len(set(complaints))
        assert all("No space left on device" in complaint for complaint in complaints)
        assert asked
        assert not alive(json.loads((state / "driver.json").read_text())["pid"])


def test_a_full_disk_does_not_keep_a_second_signal_from_killing(folder: Path, small_disk: Path) -> None:
    job(folder, ignoresStop=True)
    with local_run(folder, "flights", *OPTIONS, "--state-dir", str(small_disk / "state")) as run:
        run.wait_for_event("Running")
        fill(small_disk)
        run.interrupt()
        run.wait_for_event("Stopping")
        run.terminate()
        assert run.wait() == 137
        assert "the next run repeats that batch" in run.errors


def test_a_driver_that_dies_on_a_full_disk_comes_back_when_there_is_room(
    folder: Path, small_disk: Path
) -> None:
    state = small_disk / "state"
    with local_run(folder, "flights", *OPTIONS, "--state-dir", str(state)) as run:
        before = run.wait_for_sample(lambda s: s["state"] == "Running", "the driver")
        fill(small_disk)
        os.kill(before["pid"], signal.SIGKILL)
        run.wait_for_event("StateFolder")
        assert run.process.poll() is None
        (small_disk / "filler").unlink()
        after = run.wait_for_sample(
            lambda s: s["state"] == "Running" and s["attempt"] == 2, "the next attempt"
        )
        assert after["pid"] != before["pid"]
        run.interrupt()
        assert run.wait() == 0


def test_no_room_for_a_start_is_told_in_a_sentence(folder: Path, small_disk: Path) -> None:
    fill(small_disk)
    ended = subprocess.run(
        command(*OPTIONS, "--state-dir", str(small_disk)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 1
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def alive(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Nobody reads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["lines", "json"])
def test_a_reader_that_goes_stops_the_driver_in_order(folder: Path, options: tuple[str, ...]) -> None:
    line = (
        f"{shlex.join(command(*OPTIONS, *options))} | grep -m1 '[(\"]Running[)\"]'; exit ${{PIPESTATUS[0]}}"
    )
    ended = subprocess.run(
        ["/bin/bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 141
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == ""
    assert "stopped at a batch boundary" in (folder / ".headgate" / "flights" / "driver.log").read_text()


def test_a_mirror_of_the_driver_that_nobody_reads_stops_it_too(folder: Path) -> None:
    mirrored = shlex.join(command(*OPTIONS, "--driver-output"))
    line = f"{{ {mirrored} 2>&1 >&3 | head -1; exit ${{PIPESTATUS[0]}}; }} 3>/dev/null"
    ended = subprocess.run(
        ["/bin/bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 141


def test_an_output_on_a_full_disk_is_told_and_no_reason_to_stop(folder: Path) -> None:
    job(folder, runsSeconds=1.0)
    line = f"exec {shlex.join(command(*OPTIONS))} > /dev/full"
    ended = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 0
    assert ended.stderr.count("No space left on device") == 1
    assert "ended by itself" in (folder / ".headgate" / "flights" / "driver.log").read_text()


def test_a_terminal_that_is_closed_stops_the_driver_in_order(folder: Path) -> None:
    job(folder, stopsAfter=str(folder / "may-stop"))
    with local_run(folder, "flights", *OPTIONS) as run:
        run.wait_for_event("Running")
        run.process.send_signal(signal.SIGHUP)
        run.wait_for_event("Stopping")
        run.process.send_signal(signal.SIGHUP)  # as a shell passes it on
        (folder / "may-stop").touch()
        assert run.wait() == 0
        assert run.reasons[-1] == "Stopped"


def test_nohup_keeps_it_running(folder: Path) -> None:
    line = f"trap '' HUP; exec {shlex.join(command(*OPTIONS, '--json'))} > out.jsonl 2> err.txt"
    process = subprocess.Popen(["/bin/sh", "-c", line], cwd=folder)
    run = LocalRun(process, folder, "flights")
    try:
        wait_until((folder / "out.jsonl").exists, "the output")
        run.wait_for_event("Running")
        process.send_signal(signal.SIGHUP)
        told = len(run.samples)
        job(folder, sources={"flights": {"watermark_lag_seconds": 400.0}})
        run.wait_for_event("BacklogEntered")
        wait_until(lambda: len(run.samples) > told, "a sample after that")
        process.send_signal(signal.SIGTERM)
        assert run.wait() == 0
    finally:
        process.kill()
        process.wait(240)
        kill_driver(run.state_dir)


def test_a_name_that_the_output_cannot_write_is_written_by_number(folder: Path) -> None:
    (folder / "app.yaml").write_text(RESOURCE.replace("delays", "\u00fcber"), encoding="utf-8")
    job(
        folder,
        name="\u00fcber",
        sources={"flights": {"watermark_lag_seconds": 400.0}},
        runsSeconds=0,
        runsScrapes=5,
    )
    ended = subprocess.run(
        command(*OPTIONS),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "query \\xfcber: in backlog by WatermarkLag" in ended.stdout


# What is said of an end ---------------------------------------------------------------------------


def test_a_driver_that_is_started_again_has_its_failure_told_before(folder: Path) -> None:
    job(folder, exitCode=3, output="the last words\x1b[2J")
    with local_run(folder, "flights", *OPTIONS) as run:
        assert run.wait() == 3
        assert run.errors.count("  | the last words") == 2
        assert "\x1b" not in run.errors, "they do nothing to a terminal"
    with local_run(folder, "flights", *OPTIONS, "--driver-output") as run:
        assert run.wait() == 3
        assert run.errors.count("  | the last words") == 1, "it is mirrored as it comes"


def test_a_driver_that_somebody_else_killed_is_not_told_as_a_stop(folder: Path) -> None:
    job(folder, exitCode=137, output="the last words")
    with local_run(folder, "flights", *OPTIONS) as run:
        assert run.wait() == 137
        assert "restart.maxRetries (1) is used up; run headgate local again" in run.errors
        assert "to try again" not in run.errors
        assert "killed (signal 9), often for want of memory" in run.errors
        assert "the last words" in run.errors
        assert "repeats that batch" not in run.errors


def test_a_driver_that_fails_while_it_stops_is_told_as_failed(folder: Path) -> None:
    job(folder, stopCode=9)
    with local_run(folder, "flights", *OPTIONS) as run:
        run.wait_for_event("Running")
        run.interrupt()
        assert run.wait() == 9
        assert (
            "attempt 1 ended with exit code 9 (stopped at a batch boundary) when it was to stop" in run.errors
        )


CAUSE = "query reader: source orders: topic orders does not exist at broker:9092; create it"


def test_what_a_driver_has_failed_of_is_in_the_status_and_in_what_is_printed(folder: Path) -> None:
    job(
        folder, exitCode=1, output=f"StreamingQueryException: [STREAM_FAILED] x\nheadgate-run: error: {CAUSE}"
    )
    with local_run(folder, "flights", *OPTIONS) as run:
        assert run.wait() == 1
        status = json.loads((run.state_dir / "status.json").read_text())
        told = [line["message"] for line in run.lines if line["type"] == "event"]
        assert (
            f"attempt 2 ended with exit code 1 ({CAUSE}), and restart.maxRetries (1) is used up" in run.errors
        )
    said = {condition["type"]: condition["message"] for condition in status["conditions"]}
    assert f"attempt 2 ended with exit code 1 ({CAUSE})" in said["Stalled"]
    assert any(f"attempt 1 ended with exit code 1 ({CAUSE})" in message for message in told)


def test_a_query_that_fails_beside_its_siblings_is_told_by_its_name_with_the_cause(folder: Path) -> None:
    (folder / "app.yaml").write_text(f"{RESOURCE}    - name: reader\n")
    job(folder, failed={"reader": CAUSE})
    with local_run(folder, "flights", *OPTIONS) as run:
        run.wait_for_event("StreamingQueryFailed")
        run.wait_for_sample(lambda s: s["queries"]["reader"].get("failure") == CAUSE, "the failure")
        run.interrupt()
        assert run.wait() == 0
        statuses = [line["status"] for line in run.lines if line["type"] == "status"]
        assert CAUSE in [line["message"] for line in run.lines if line["type"] == "event"]
        assert "UnknownName" not in run.reasons
    told = next(status for status in statuses if "failure" in status["queries"][1])
    conditions = {one["type"]: (one["status"], one["reason"], one["message"]) for one in told["conditions"]}
    assert told["state"] == "Running"
    assert told["queries"][1]["failure"] == CAUSE
    assert conditions["Stalled"] == ("True", "StreamingQueryFailed", CAUSE)


def test_ctrl_c_while_the_driver_starts_is_a_stop(folder: Path) -> None:
    job(folder, announcesAfter=600)
    with local_run(folder, "flights", *OPTIONS) as run:
        run.wait_for_sample(lambda s: s["state"] == "Starting", "the start")
        run.interrupt()
        assert run.wait() == 0
        assert run.errors == ""


def test_what_is_said_after_ctrl_c_is_true_of_one_machine(folder: Path) -> None:
    with local_run(folder, "flights", *OPTIONS) as run:
        run.wait_for_event("Running")
        run.interrupt()
        assert run.wait() == 0
        status = json.loads((run.state_dir / "status.json").read_text())
        told = json.dumps([line for line in run.lines if line["type"] in {"status", "event"}])
    for text in (json.dumps(status), told):
        assert "stopped; headgate local goes on from here" in text
        assert "spec.suspend" not in text


@pytest.mark.parametrize("code", [0, 3])
def test_a_job_without_a_streaming_query_is_told_as_one(folder: Path, code: int) -> None:
    (folder / "job.py").write_text(f"print('no query here')\nraise SystemExit({code})\n")
    (folder / "app.yaml").write_text(RESOURCE.replace("job.json", "job.py"))
    with local_run(folder, "flights", "--tick", "0.05") as run:
        assert run.wait() == code
        told = "started no streaming query"
        assert any(told in line.get("message", "") for line in run.lines)
        assert (told in run.errors) is (code != 0)


def test_a_report_that_cannot_be_written_is_refused_before_the_start(folder: Path) -> None:
    for report in (folder, folder / "app.yaml" / "report.json", folder / (300 * "x"), Path("/dev/null")):
        ended = subprocess.run(
            command(*OPTIONS, "--report", str(report)),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode == 2
        assert f"--report {report}" in ended.stderr
        assert "Traceback" not in ended.stderr
    assert not (folder / ".headgate").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--launcher", "'"), "--launcher ': No closing quotation"),
        (
            ("--launcher", "nope --x"),
            "--launcher nope --x: there is no command nope; give the path of headgate-run",
        ),
        (("--tick", "inf"), "--tick"),
    ],
)
def test_an_option_that_cannot_be_is_refused(folder: Path, options: tuple[str, ...], says: str) -> None:
    ended = subprocess.run(
        command(*options), cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_working_directory_that_is_gone_is_a_usage_error(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    line = f"cd gone && rmdir {gone} && exec {shlex.join(command(*OPTIONS))}"
    ended = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 2
    assert "app.yaml: No such file or directory" in ended.stderr
    assert "Traceback" not in ended.stderr


# Signals ------------------------------------------------------------------------------------------

INTERRUPTED_ANYWHERE = """
import os, signal, threading, time
from headgate.cli.local.session import StopSignalsHeard

requests = StopSignalsHeard()
with requests.by_signals():
    began = time.monotonic()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    requests.sleep(240)
    os.kill(os.getpid(), signal.SIGTERM)
    requests.sleep(240)
    print(requests.count, time.monotonic() - began < 200)
"""


def test_a_signal_ends_a_sleep_and_one_before_a_sleep_is_not_lost() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_ANYWHERE], capture_output=True, text=True, timeout=240, check=False
    )
    assert (ended.stdout, ended.stderr) == ("2 True\n", "")


DELIVERED_AGAIN = """
import signal
from headgate.cli.local.session import StopSignalsHeard
from headgate_contract.signals import StopSignals

now = 0.0
requests = StopSignalsHeard(StopSignals(clock=lambda: now))
with requests.by_signals():
    for now in (0.0, 0.1, 5.0, 5.1):
        signal.raise_signal(signal.SIGTERM)
        print(requests.count)
"""


def test_a_signal_that_is_delivered_again_is_no_second_wish() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DELIVERED_AGAIN], capture_output=True, text=True, timeout=240, check=False
    )
    assert (ended.stdout.split(), ended.stderr) == (["1", "1", "2", "2"], "")
