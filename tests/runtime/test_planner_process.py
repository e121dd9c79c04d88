"""The planner's process beside a script: found at one address however often it dies, and gone with its parent."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.engine.protocol import PROTOCOL
from headgate_spark.engine.questions import ask, receive, send
from headgate_spark.launch import planner as module
from headgate_spark.launch.planner import PlannerError, PlannerProcess
from support.driver import Driver, driver, ids_in, recording, wait_for
from support.waiting import DEADLINE_SECONDS, wait_until

NOTHING_TO_STOP = {"queries": [], "end_by_themselves": False, "some_are_cut": False}
OF_ANY_PORT = {"spark.headgate.metrics.port": "0", "spark.headgate.metrics.address": "127.0.0.1"}
Started = Callable[..., PlannerProcess]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.0)
    made: list[PlannerProcess] = []

    def start(**properties: str) -> PlannerProcess:
        planner = PlannerProcess("flights", OF_ANY_PORT | properties)
        made.append(planner)
        planner.start()
        return planner

    yield start
    for planner in made:
        planner.end()
        if planner._process is not None:
            assert planner._process.wait(DEADLINE_SECONDS) == 0


def running(planner: PlannerProcess) -> subprocess.Popen[str]:
    assert planner._process is not None
    return planner._process


def stops(planner: PlannerProcess) -> object:
    """What it answers to the one question that it knows an answer to without a driver."""
    return json.loads(planner.ask("stop_planning") or "")


def test_one_that_was_killed_is_followed_by_another_at_the_same_address(started: Started) -> None:
    planner = started()
    address, metrics = planner.address(), planner.metrics_port
    before = address.read_text()
    for _ in range(2):
        killed = running(planner)
        assert stops(planner) == NOTHING_TO_STOP
        killed.kill()
        killed.wait(DEADLINE_SECONDS)
        assert stops(planner) == NOTHING_TO_STOP, "whoever asks meanwhile waits for the next one"
        wait_until(lambda before=killed: running(planner) is not before, "the next one")
        assert planner.metrics_port == metrics
    found = json.loads(address.read_text())
    assert address.read_text() == before
    with socket.create_connection(("127.0.0.1", found["port"]), timeout=DEADLINE_SECONDS) as connection:
        send(connection, [found["token"]])
        assert json.loads(ask(connection, "stop_planning") or "") == NOTHING_TO_STOP


def test_one_that_hangs_is_ended_and_whoever_has_asked_it_asks_the_next_one(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(module, "HANGS_SECONDS", 0.2)
    planner = started()
    hanging = running(planner)
    hanging.send_signal(signal.SIGSTOP)
    try:
        with suppress(OSError, EOFError):  # else it has waited for the next one
            planner.ask("stop_planning", timeout=DEADLINE_SECONDS)
        assert hanging.wait(DEADLINE_SECONDS) == -signal.SIGKILL
    finally:
        hanging.kill()
    assert stops(planner) == NOTHING_TO_STOP
    wait_until(lambda: running(planner) is not hanging, "the next one")


def test_one_that_stands_still_for_a_moment_is_not_ended(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(module, "HANGS_SECONDS", DEADLINE_SECONDS)
    planner = started()
    process = running(planner)
    process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError):
            planner.ask("stop_planning", timeout=1)
    finally:
        process.send_signal(signal.SIGCONT)
    assert stops(planner) == NOTHING_TO_STOP
    assert running(planner) is process


def test_where_it_is_only_this_user_can_read(started: Started) -> None:
    address = started().address()
    assert stat.S_IMODE(address.stat().st_mode) == 0o600
    assert len(json.loads(address.read_text())["token"]) == 64


def test_until_it_is_told_of_a_driver_it_is_a_stranger_to_all_that_a_shim_asks(started: Started) -> None:
    planner = started()
    found = json.loads(planner.address().read_text())
    asked = [
        ["begins", "{}"],
        ["opened", "1", "{}"],
        ["admit", "1", "1.1:", None, "r1", "{}"],
        ["plan", "1", "1.1:", "1", None],
        ["outage", "1", None],
        ["thrown", "1", ""],
        ["closed", "1", None],
        ["noticed", "{}"],
        ["ended", "r1", None],
    ]
    with socket.create_connection(("127.0.0.1", found["port"]), timeout=DEADLINE_SECONDS) as connection:
        send(connection, [found["token"]])
        for question in asked:
            send(connection, question)
            assert receive(connection) == ["stranger", None], question
        other = json.dumps({"protocol": PROTOCOL - 1, "gatewayPort": 1, "gatewayToken": "", "pid": 1})
        with pytest.raises(RuntimeError, match=f"speaks protocol {PROTOCOL - 1} and .* of two versions"):
            ask(connection, "attached", other)
        send(connection, asked[0])
        assert receive(connection) == ["stranger", None], (
            "it was told of a driver that it does not understand"
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_that_is_sent_to_every_process_does_not_end_it(
    started: Started, number: signal.Signals
) -> None:
    planner = started()
    running(planner).send_signal(number)
    assert stops(planner) == NOTHING_TO_STOP
    assert running(planner).poll() is None


def test_its_threads_have_their_memory_from_as_many_heaps_as_is_said_or_else_from_one(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, heaps in ((None, "1"), ("4", "4")):
        monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
        if said is not None:
            monkeypatch.setenv("MALLOC_ARENA_MAX", said)
        assert psutil.Process(running(started()).pid).environ()["MALLOC_ARENA_MAX"] == heaps


def test_it_ends_when_it_may_and_no_other_follows(started: Started) -> None:
    before = threading.enumerate()
    planner = started()
    supervisors = [thread for thread in threading.enumerate() if thread not in before]
    process = running(planner)
    planner.end()
    assert process.wait(DEADLINE_SECONDS) == 0
    for supervisor in supervisors:
        supervisor.join(DEADLINE_SECONDS)
        assert not supervisor.is_alive()
    assert running(planner) is process


PARENT = """
import os, signal
from headgate_spark.launch.planner import PlannerProcess
planner = PlannerProcess("flights", {"spark.headgate.metrics.port": "0"})
planner.start()
print(planner._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_ends_with_a_parent_that_was_killed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    pid = int(ended.stdout)
    wait_until(lambda: is_gone(pid), "the end of the planner's process")


def test_why_it_cannot_be_started_is_said_in_its_own_words() -> None:
    planner = PlannerProcess("flights", {"spark.headgate.metrics.port": "http"})
    with pytest.raises(PlannerError, match=r"^spark\.headgate\.metrics\.port is 'http', which is no port"):
        planner.start()


@pytest.mark.parametrize("address", ["192.0.2.1", "no.such.invalid"])
def test_an_address_that_is_none_is_named_with_its_property_where_a_jvm_has_started_it(address: str) -> None:
    properties = OF_ANY_PORT | {"spark.headgate.metrics.address": address}
    told = {"token": "t", "pid": 1, "application": "flights", "properties": properties}
    ended = subprocess.run(
        module.COMMAND, input=json.dumps(told) + "\n", capture_output=True, text=True, timeout=60, check=False
    )
    said = json.loads(ended.stdout)["error"]
    assert said.startswith(f"metrics cannot be served at {address}, port 0: ")
    assert said.endswith("; give others in spark.headgate.metrics.address and spark.headgate.metrics.port")


def test_one_that_ends_before_it_has_read_or_said_anything_is_told_by_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", "raise SystemExit(9)"))
    more_than_a_pipe_holds = {"spark.headgate.any": "x" * 1_000_000}
    with pytest.raises(PlannerError, match="has ended with 9"):
        PlannerProcess("flights", more_than_a_pipe_holds).start()


def is_gone(pid: int) -> bool:
    """Whether a process runs no more, also where nobody has taken note of its end."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


# With Spark


def planner_of(running: Driver) -> psutil.Process:
    """The planner's process of a driver."""
    children = psutil.Process(running.process.pid).children()
    (found,) = [child for child in children if "headgate_spark.runtime" in child.cmdline()]
    return found


@pytest.mark.spark
def test_a_query_goes_on_governed_when_the_planner_has_died_and_reads_nothing_twice(tmp_path: Path) -> None:
    rows = 200_000
    source = recording(tmp_path / "source", rows)
    slow = SourceControl(rate_limit=RateControl(records_per_second=100, max_burst_seconds=1))
    governed = QueryControl(interval_seconds=0.2, sources={"source": slow})
    arguments = ("copy.py", source, tmp_path / "out", tmp_path / "ck")
    with driver(tmp_path / "run", *arguments, control={"copy": governed}) as running:
        for _ in range(2):
            running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, query="copy")
            killed = planner_of(running)
            killed.send_signal(signal.SIGKILL)
            wait_for(lambda pid=killed.pid: is_gone(pid), "its end", running)
        running.wait_for_metric("headgate_source_rate_limit_records_per_second", lambda v: v == 100)
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, query="copy")
        assert len(ids_in(tmp_path / "out")) < rows
        batch = QueryControl(interval_seconds=0.2, backlog=True, batch=BatchControl())
        running.control(copy=batch)
        running.wait_for_metric("headgate_source_pending_records", lambda v: v == 0)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert "the job's own end" in running.log
        assert running.log.count("the planner's process has ended, and is started again") == 2
    assert sorted(ids_in(tmp_path / "out")) == list(range(rows))
