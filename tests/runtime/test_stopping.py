"""A stop ends every script: one whose threads go on after it, and one that will not hear of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from headgate_spark.runtime.driver import Runtime, await_boundaries
from headgate_spark.runtime.settings import ProcessSettings
from support.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.processes

HEAD = """import concurrent.futures.thread, threading, time
from pathlib import Path
ready = Path("ready")
"""

THREADS = {
    "its main thread at work": """
        threading.Thread(target=time.sleep, args=(3600,)).start()
        ready.touch()
        time.sleep(3600)
    """,
    "its main thread at its end": """
        def outlive():
            threading.main_thread().join()
            ready.touch()
            time.sleep(3600)

        threading.Thread(target=outlive).start()
    """,
    "a pool that Python waits for": """
        def outlive():
            while not concurrent.futures.thread._shutdown:
                time.sleep(0.01)
            ready.touch()
            time.sleep(3600)

        concurrent.futures.ThreadPoolExecutor().submit(outlive)
    """,
}
"""Scripts with a thread that goes on for an hour, and what else they have."""

DEAF = """
    while True:
        try:
            ready.touch()
            time.sleep(3600)
        except BaseException:
            Path("asked").touch()
"""


FORKS = {
    "its main thread": "end_one()",
    "another thread": "started = threading.Thread(target=end_one); started.start(); started.join()",
}
ENDED_ONE = """
    import multiprocessing

    def end_one():
        worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))
        worker.start()
        worker.terminate()
        worker.join({seconds})
        print("ended with", worker.exitcode, flush=True)
        worker.kill()

    ready.touch()
    {fork}
    time.sleep(0.5)
    print("the job's own end", flush=True)
"""


@contextmanager
def launched(folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script under `headgate-run`, and wait until it says that it is ready."""
    (folder / "job.py").write_text(HEAD + textwrap.dedent(script))
    command = [sys.executable, "-m", "headgate_spark", "--metrics-port", "0", "job.py"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_until((folder / "ready").exists, "the script")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("script", THREADS.values(), ids=THREADS)
def test_a_stop_ends_a_script_whose_threads_would_go_on(tmp_path: Path, script: str) -> None:
    with launched(tmp_path, script) as process:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, output
    assert "stopping at the next batch boundary" in output
    assert "Traceback" not in output
    assert "ignored" not in output


def test_a_second_signal_ends_a_script_that_will_not_be_ended(tmp_path: Path) -> None:
    with launched(tmp_path, DEAF) as process:
        process.send_signal(signal.SIGTERM)
        wait_until((tmp_path / "asked").exists, "the script to be told")

        def insist() -> bool:
            process.send_signal(signal.SIGTERM)
            return process.poll() is not None

        wait_until(insist, "a signal to be taken for a second one")
        assert process.returncode == 128 + signal.SIGTERM


DELIVERED_AGAIN = """
import signal, threading, time
from headgate_contract.signals import StopSignals
from headgate_spark.launch.stopping import Stopper
from headgate_spark.runtime.answers import Stopping, written

came = threading.Semaphore(0)

def stands_still():
    came.release()
    return 0.0

def step(name):
    if name == "stop_planning":
        for _ in range(3):
            came.acquire()
        return written(Stopping())

stopper = Stopper(step, signals=StopSignals(clock=stands_still))
stopper.install()
stopper.start()
with stopper.script():
    while True:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.001)
"""


def test_a_signal_that_is_delivered_again_is_no_second_one() -> None:
    command = [sys.executable, "-c", DELIVERED_AGAIN]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("fork", FORKS.values(), ids=FORKS)
def test_a_signal_to_a_process_that_the_script_has_forked_is_not_one_to_the_driver(
    tmp_path: Path, fork: str
) -> None:
    with launched(tmp_path, ENDED_ONE.format(fork=fork, seconds=DEADLINE_SECONDS)) as process:
        output, _ = process.communicate(timeout=2 * DEADLINE_SECONDS)
    assert "ended with -15" in output
    assert "the job's own end" in output
    assert "stopping" not in output
    assert process.returncode == 0


class Running:
    """A run of a query that is stopped."""

    is_cut = ends_by_itself = False

    def __init__(self, name: str, at_boundary: object, told: Callable[[str], None]) -> None:
        self.name, self.at_boundary = name, at_boundary
        self.run_id = f"run of {name}"
        self.started = SimpleNamespace(governed=True, stop=lambda: told(f"{name} is stopped"))


def test_no_query_is_stopped_while_another_is_in_its_batch() -> None:
    told: list[str] = []
    first_stop, no_batch = threading.Event(), threading.Event()
    no_batch.set()

    def stopped(what: str) -> None:
        told.append(what)
        first_stop.set()

    def batch_ends(timeout: float) -> bool:
        first_stop.wait(min(1.0, timeout))
        told.append("the batch has ended")
        return True

    runs = [
        Running("idle", no_batch, stopped),
        Running("busy", SimpleNamespace(wait=batch_ends), stopped),
    ]
    runtime = Runtime(ProcessSettings(token="t", pid=1, application="flights"))
    stop = runtime.verbs()["stop"]
    runtime.governor = SimpleNamespace(  # type: ignore[assignment]
        stop=lambda: runs,
        runs=runs,
        endings=SimpleNamespace(runs=[]),
        documents=SimpleNamespace(newest=None),
        cut=lambda: None,
    )
    stop()
    assert told[0] == "the batch has ended"
    assert sorted(told[1:]) == ["busy is stopped", "idle is stopped"]


def test_a_query_that_another_planner_has_planned_is_waited_for_until_it_is_told_and_at_a_boundary() -> None:
    at_boundary = threading.Event()
    at_boundary.set()
    late = Running("late", at_boundary, print)
    runs: list[Running] = []
    asked = 0

    def running() -> set[str]:
        nonlocal asked
        asked += 1
        if asked == 3:
            runs.append(late)
        return {late.run_id}

    runtime = Runtime(ProcessSettings(token="t", pid=1, application="flights"))
    runtime._jvm = SimpleNamespace(running=running)  # type: ignore[assignment]
    runtime.governor = SimpleNamespace(runs=runs, documents=SimpleNamespace(newest=None))  # type: ignore[assignment]
    runtime._await_boundaries()
    assert asked == 3


def test_a_batch_that_outlasts_the_grace_period_is_said_to_repeat() -> None:
    runs = [Running(name, threading.Event(), print) for name in ("copy", "totals")]
    runs[1].at_boundary.set()  # type: ignore[attr-defined]
    with capture_logs() as logged:
        await_boundaries(runs, time.monotonic())  # type: ignore[arg-type]
    assert [(line["query"], line["event"]) for line in logged] == [
        ("copy", "the grace period has passed; stopped in mid-batch, that batch repeats")
    ]
