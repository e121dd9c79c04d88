"""What the pods of executors show, and how often they are looked at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.executor_pods import (
    AGAIN_SECONDS,
    PACE_SECONDS,
    STANDS_SECONDS,
    ExecutorLook,
    ExecutorLooks,
    hindrance_of,
)
from headgate.adapters.kubernetes.pods import CREATING_SECONDS
from headgate.adapters.kubernetes.times import rfc3339
from headgate.errors import ApiUnavailable
from headgate.key import Key

NOW = 1_700_000_000.0
KEY = Key("etl", "flights")


def pod(number: int = 1, *, age: float = 60.0, **status: Any) -> Manifest:
    name = f"flights-1-exec-{number}"
    metadata = {"name": name, "namespace": "etl", "creationTimestamp": rfc3339(NOW - age)}
    return {"metadata": metadata, "status": {"phase": "Pending", **status}}


def unscheduled(number: int = 1) -> Manifest:
    words = "0/3 nodes are available: 3 node(s) had untolerated taint {pool: spot}"
    one = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    return pod(number, conditions=[one])


def waiting(reason: str, message: str = "", **of_pod: Any) -> Manifest:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod(containerStatuses=[{"name": "executor", "state": state}], **of_pod)


def test_a_taint_is_told_in_the_schedulers_words() -> None:
    found = hindrance_of([unscheduled()], NOW)
    assert found == (
        "Unschedulable",
        "no node takes flights-1-exec-1 (Unschedulable: 0/3 nodes are available: 3 node(s) had untolerated taint "
        "{pool: spot}); add nodes that take it, lower executor.cores, executor.memory or executor.instances, or let "
        "executor.podTemplate tolerate the taints of nodes that have room",
    )


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ErrImagePull", "ImagePullFailed"),
        ("ImagePullBackOff", "ImagePullFailed"),
        ("CreateContainerConfigError", "ContainerConfigError"),
    ],
)
def test_a_container_that_does_not_start_is_told_in_the_kubelets_words(reason: str, told: str) -> None:
    found = hindrance_of([waiting(reason, "because")], NOW)
    assert found is not None
    assert found.reason == told
    assert f"flights-1-exec-1 does not start ({reason}: because)" in found.message


def test_one_that_is_in_the_making_has_its_time() -> None:
    young, old = (waiting("ContainerCreating", age=age) for age in (60.0, CREATING_SECONDS))
    assert hindrance_of([young], NOW) is None
    found = hindrance_of([old], NOW)
    assert found is not None
    assert found.reason == "ContainerCreating"


def test_what_somebody_can_mend_comes_before_what_may_pass() -> None:
    found = hindrance_of([unscheduled(1), waiting("ErrImagePull")], NOW)
    assert found is not None
    assert found.reason == "ImagePullFailed"


def test_executors_that_run_or_are_on_their_way_out_keep_nobody_away() -> None:
    leaving = unscheduled(2)
    leaving["metadata"]["deletionTimestamp"] = rfc3339(NOW)
    assert hindrance_of([pod(phase="Running"), pod(), leaving], NOW) is None


class Server:
    """An API server that counts what it is asked, and may not answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.is_away = False

    async def list(self, kind: object, namespace: str, *, labels: str) -> list[Manifest]:
        self.asked.append((namespace, labels))
        if self.is_away:
            raise ApiUnavailable("no answer")
        return [unscheduled()]


class Watch:
    """Looks on a clock of their own."""

    def __init__(self) -> None:
        self.server, self.now = Server(), 0.0
        self.looks = ExecutorLooks(self.server, clock=lambda: self.now)  # type: ignore[arg-type]

    def look(self, look: ExecutorLook, key: Key = KEY) -> str | None:
        asyncio.run(self.looks.refresh(look, key, NOW))
        found = look.hindrance()
        return None if found is None else found.reason


def test_the_executors_of_the_application_are_asked_for_once_a_minute() -> None:
    watch, look = Watch(), ExecutorLook()
    assert watch.look(look) == "Unschedulable"
    assert watch.server.asked == [("etl", "headgate.dev/application=flights,headgate.dev/role=executor")]
    watch.now = AGAIN_SECONDS - 1
    watch.look(look)
    assert len(watch.server.asked) == 1
    watch.now = AGAIN_SECONDS
    watch.look(look)
    assert len(watch.server.asked) == 2


def test_ten_thousand_applications_are_not_asked_for_at_once() -> None:
    watch = Watch()
    for n in range(10_000):
        watch.now = n * 0.001
        watch.look(ExecutorLook(), Key("etl", f"flights-{n}"))
    assert len(watch.server.asked) == pytest.approx(10_000 * 0.001 / PACE_SECONDS, abs=2)


def test_what_was_seen_last_stands_where_the_api_server_does_not_answer() -> None:
    watch, look = Watch(), ExecutorLook()
    watch.look(look)
    watch.server.is_away, watch.now = True, AGAIN_SECONDS
    assert watch.look(look) == "Unschedulable"
    watch.now += PACE_SECONDS
    watch.look(look)
    assert len(watch.server.asked) == 3, "and it is asked again"
    watch.now = STANDS_SECONDS
    assert watch.look(look) is None, "and not for ever: another shortage is not told by the words of this one"
