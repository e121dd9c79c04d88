"""What is looked up beside planning: in steps, while there is something to do, and never after it was closed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from headgate_spark.kafka import beside
from headgate_spark.kafka.beside import Beside
from support.waiting import wait_until


@dataclass
class Work:
    """So many steps, each of which waits until it may go on."""

    left: int
    done: list[str] = field(default_factory=list)
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def step(self) -> float | None:
        assert self.may_go_on.wait(30)
        if self.left == 0:
            return None
        self.left -= 1
        self.done.append("step")
        return 0.0

    def last(self) -> None:
        self.done.append("last")


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "REST", 0)


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_it_takes_steps_until_there_is_nothing_left_and_leaves_no_thread() -> None:
    work = Work(5)
    work.may_go_on.set()
    looked = Beside("of-a-test", work.step)
    for _ in range(3):
        looked.begin()
    wait_until(lambda: not named("of-a-test"), "its end")
    assert work.done == ["step"] * 5
    work.left = 2
    looked.begin()
    wait_until(lambda: work.done == ["step"] * 7, "more steps")
    looked.close(work.last)
    wait_until(lambda: work.done[-1] == "last", "what comes last")


def test_what_is_asked_for_during_the_last_step_is_done_too() -> None:
    work = Work(0)
    looked = Beside("of-a-test", work.step)
    looked.begin()
    wait_until(lambda: bool(named("of-a-test")), "its thread")
    work.left = 1
    looked.begin()
    work.may_go_on.set()
    wait_until(lambda: work.done == ["step"], "the step")
    looked.close(work.last)


def test_nobody_waits_for_its_end_and_nothing_comes_after_it() -> None:
    work = Work(10**9)
    looked = Beside("of-a-test", work.step)
    looked.begin()
    wait_until(lambda: bool(named("of-a-test")), "its thread")
    assert all(thread.daemon for thread in named("of-a-test")), "the end of a process does not wait for it"
    looked.close(work.last)
    looked.close(work.last)
    work.may_go_on.set()
    wait_until(lambda: not named("of-a-test"), "its end")
    assert work.done in (["last"], ["step", "last"])
    looked.begin()
    assert not named("of-a-test")


def test_a_step_that_raises_is_told_and_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "FAILED_REST_SECONDS", 0.0)
    done: list[str] = []

    def step() -> float | None:
        done.append("step")
        if len(done) == 1:
            raise RuntimeError("a client that cannot be closed")
        return None

    looked = Beside("of-a-test", step)
    with capture_logs() as logs:
        looked.begin()
        wait_until(lambda: not named("of-a-test"), "its end")
    assert done == ["step", "step"]
    assert [line["thread"] for line in logs] == ["of-a-test"]
    looked.begin()
    wait_until(lambda: len(done) == 3, "another step")
