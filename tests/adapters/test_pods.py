"""A pod's status, as kubelets and controllers write it, read as a driver."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.pods import attempt_of, driver_of, is_ended
from headgate.adapters.kubernetes.times import unix_time
from headgate.decision.driver import SeenDriver, StepReason

CREATED, STARTED, FINISHED, NOW = (f"2026-03-01T08:0{minute}:00Z" for minute in range(4))
AT = unix_time(NOW)


def pod(*, leaving_since: str | None = None, **status: Any) -> Manifest:
    metadata = {
        "name": "flights-driver-3",
        "creationTimestamp": CREATED,
        "labels": {"headgate.dev/attempt": "3"},
        "annotations": {"headgate.dev/revision": "abc"},
    }
    leaving = {} if leaving_since is None else {"deletionTimestamp": leaving_since}
    return {"metadata": {**metadata, **leaving}, "spec": {"nodeName": "node7"}, "status": status}


def container(**state: Any) -> list[Manifest]:
    sidecar = {"name": "istio-proxy", "state": {"terminated": {"exitCode": 9, "finishedAt": FINISHED}}}
    return [sidecar, {"name": "driver", "state": state}]


RUNNING = {"phase": "Running", "containerStatuses": container(running={"startedAt": STARTED})}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
TARGET = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "TerminationByKubelet",
    "message": "Pod was terminated in response to imminent node shutdown.",
}


def ended(code: int, **terminated: Any) -> Manifest:
    told = {"exitCode": code, "startedAt": STARTED, "finishedAt": FINISHED, **terminated}
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": container(terminated=told),
    }


def waiting(reason: str, message: str | None = None) -> Manifest:
    return {
        "phase": "Pending",
        "containerStatuses": container(waiting={"reason": reason, "message": message}),
    }


class Row(NamedTuple):
    title: str
    pod: Manifest
    alive: bool = True
    ready: bool = False
    leaving: bool = False
    lost: bool = False
    code: int | None = None
    disrupted: bool = False
    note: str | None = None
    oom_killed: bool = False
    obstacle: StepReason | None = None


OOM = (
    "OOMKilled: it took more memory than driver.memory and its overhead; raise driver.memory, or "
    "spark.driver.memoryOverhead in sparkConf"
)
TRACEBACK = "26/03/01 INFO x\nTraceback (most recent call last):\nValueError: no topic\n26/03/01 INFO bye\n"
ROWS = (
    Row("just created", pod()),
    Row("pending", pod(phase="Pending")),
    Row("container is being created", pod(**waiting("ContainerCreating"))),
    Row("runs", pod(**RUNNING)),
    Row("runs and reports", pod(**RUNNING, **READY), ready=True),
    Row("a sidecar has ended, the driver has not", pod(**RUNNING | {"phase": "Running"})),
    # It cannot start
    Row("no image", pod(**waiting("ImagePullBackOff")), obstacle=StepReason.IMAGE_PULL_FAILED),
    Row("bad image name", pod(**waiting("InvalidImageName")), obstacle=StepReason.IMAGE_PULL_FAILED),
    Row(
        "no secret",
        pod(**waiting("CreateContainerConfigError")),
        obstacle=StepReason.CONTAINER_CONFIG_ERROR,
    ),
    Row(
        "no room",
        pod(
            phase="Pending",
            conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        ),
        obstacle=StepReason.UNSCHEDULABLE,
    ),
    # It has ended
    Row("completed", pod(**ended(0, reason="Completed")), alive=False, code=0),
    Row("failed", pod(**ended(1, reason="Error")), alive=False, code=1),
    Row(
        "failed with a traceback in its log",
        pod(**ended(1, reason="Error", message=TRACEBACK)),
        alive=False,
        code=1,
        note="ValueError: no topic",
    ),
    Row(
        "failed with a cause that the launcher knows",
        pod(
            **ended(1, reason="Error", message=f"{TRACEBACK}headgate-run: error: query q: topic t is gone\n")
        ),
        alive=False,
        code=1,
        note="query q: topic t is gone",
    ),
    Row(
        "failed with nothing that looks like an error",
        pod(**ended(2, message="one\n\ntwo\n")),
        alive=False,
        code=2,
        note="two",
    ),
    Row(
        "out of memory",
        pod(**ended(137, reason="OOMKilled")),
        alive=False,
        code=137,
        note=OOM,
        oom_killed=True,
    ),
    Row(
        "out of memory, while it was being deleted",
        pod(leaving_since=FINISHED, **ended(137, reason="OOMKilled")),
        alive=False,
        leaving=True,
        code=137,
        disrupted=True,
        note="its pod was deleted",
        oom_killed=True,
    ),
    Row(
        "its JVM alone was out of memory, and the launcher could not note it",
        pod(**ended(80, reason="OOMKilled", message="headgate-run: error: the driver's JVM has died\n")),
        alive=False,
        code=80,
        note="the driver's JVM has died",
        oom_killed=True,
    ),
    Row(
        "its JVM alone was out of memory, and the launcher has told of it",
        pod(**ended(76, reason="OOMKilled", message="headgate-run: error: query q: batch 7 has failed\n")),
        alive=False,
        code=76,
        note="query q: batch 7 has failed",
    ),
    Row(
        "the kubelet could not find it any more",
        pod(**ended(137, reason="ContainerStatusUnknown", message="The container could not be located")),
        alive=False,
        code=137,
        disrupted=True,
        note="ContainerStatusUnknown: The container could not be located",
    ),
    Row(
        "its node was switched off and on",
        pod(**ended(255, reason="Unknown")),
        alive=False,
        code=255,
        disrupted=True,
        note="Unknown",
    ),
    Row("it ended with that code itself", pod(**ended(255, reason="Error")), alive=False, code=255),
    Row(
        "ended although a sidecar still runs",
        pod(**ended(1) | {"phase": "Running"}),
        alive=False,
        code=1,
    ),
    # Somebody else ends it
    Row("drained, still running", pod(leaving_since="2026-03-01T08:05:00Z", **RUNNING), leaving=True),
    Row(
        "drained, ended in order",
        pod(leaving_since=FINISHED, **ended(0)),
        alive=False,
        leaving=True,
        code=0,
        disrupted=True,
        note="its pod was deleted",
    ),
    Row(
        "evicted for want of memory on the node",
        pod(**ended(137), reason="Evicted", message="The node was low on resource:\n memory."),
        alive=False,
        code=137,
        disrupted=True,
        note="Evicted: The node was low on resource: memory.",
    ),
    Row(
        "the node is being shut down",
        pod(**ended(143), conditions=[TARGET]),
        alive=False,
        code=143,
        disrupted=True,
        note="TerminationByKubelet: Pod was terminated in response to imminent node shutdown.",
    ),
    Row(
        "turned away by the kubelet",
        pod(phase="Failed", reason="OutOfcpu", message="Node didn't have enough resource"),
        lost=True,
        obstacle=StepReason.DRIVER_LOST,
    ),
    Row(
        "evicted before it ran",
        pod(**waiting("ContainerCreating") | {"phase": "Failed"}, reason="Evicted", conditions=[TARGET]),
        lost=True,
        obstacle=StepReason.DRIVER_LOST,
    ),
    # Nobody knows
    Row(
        "marked as failed, last seen running",
        pod(**RUNNING | {"phase": "Failed"}, conditions=[TARGET]),
        obstacle=StepReason.NODE_UNREACHABLE,
    ),
    Row(
        "should have ended half a minute ago",
        pod(leaving_since="2026-03-01T08:02:30Z", **RUNNING),
        leaving=True,
        obstacle=StepReason.NODE_UNREACHABLE,
    ),
    Row(
        "should have ended just now",
        pod(leaving_since="2026-03-01T08:02:31Z", **RUNNING),
        leaving=True,
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_a_pod_is_read_as(row: Row) -> None:
    driver = driver_of(row.pod, 3, AT)
    assert (driver.exit is None) is row.alive is not is_ended(row.pod)
    assert (driver.is_ready, driver.is_leaving, driver.is_lost) == (row.ready, row.leaving, row.lost)
    assert reason_of(driver) is row.obstacle
    if driver.exit is not None:
        told = driver.exit
        assert (told.code, told.is_disruption, told.note) == (row.code, row.disrupted, row.note)
        assert told.oom_killed == row.oom_killed
        assert told.at == unix_time(FINISHED)


def reason_of(driver: SeenDriver) -> StepReason | None:
    return None if driver.obstacle is None else driver.obstacle.reason


def test_a_driver_has_started_when_its_container_has() -> None:
    assert driver_of(pod(**RUNNING), 3, AT).started_at == unix_time(STARTED)
    assert driver_of(pod(phase="Pending"), 3, AT).started_at == unix_time(CREATED)


@pytest.mark.parametrize("never", [None, "1970-01-01T00:00:00Z"])
def test_one_that_could_not_be_started_ran_for_no_time(never: str | None) -> None:
    """containerd has no moment for what has not happened, and the kubelet tells the first one of its clock."""
    driver = driver_of(pod(**ended(128, reason="StartError", startedAt=never)), 3, AT)
    assert driver.exit is not None
    assert (driver.started_at, driver.exit.at) == (unix_time(FINISHED), unix_time(FINISHED))
    driver = driver_of(pod(**ended(137, startedAt=never, finishedAt=never)), 3, AT)
    assert driver.exit is not None
    assert (driver.started_at, driver.exit.at) == (unix_time(CREATED), AT)


def test_what_the_kubelet_says_reaches_people() -> None:
    told = driver_of(pod(**waiting("ErrImagePull", "manifest for x:1 not found")), 3, AT).obstacle
    assert told is not None
    assert told.message == (
        "the driver's container does not start (ErrImagePull: manifest for x:1 not found); correct "
        "spec.image, or give the driver's service account a pull secret"
    )


def test_what_the_kubelet_says_is_told_without_what_is_secret_in_it() -> None:
    said = "Head https://robot:x7Kq@registry.example.com/v2/: 401"
    told = driver_of(pod(**waiting("ErrImagePull", said)), 3, AT).obstacle
    assert told is not None
    assert "https://(hidden)@registry.example.com/v2/" in told.message


@pytest.mark.parametrize(
    ("label", "attempt"), [("7", 7), ("", None), ("-1", None), ("x", None), ("1" * 10, None)]
)
def test_the_attempt_is_read_from_its_label(label: str, attempt: int | None) -> None:
    manifest = pod()
    manifest["metadata"]["labels"]["headgate.dev/attempt"] = label
    assert attempt_of(manifest) == attempt


def init(name: str, **state: Any) -> list[Manifest]:
    return [{"name": name, "state": state}]


def test_an_init_container_that_fails_fails_the_attempt_and_is_named() -> None:
    end = {"exitCode": 3, "finishedAt": FINISHED, "message": "no such bucket\n"}
    failed = pod(
        **waiting("PodInitializing") | {"phase": "Failed"},
        initContainerStatuses=init("fetch", terminated=end),
    )
    driver = driver_of(failed, 3, AT)
    assert is_ended(failed)
    assert not driver.is_lost
    assert driver.exit is not None
    assert (driver.exit.code, driver.exit.note) == (
        1,
        "init container fetch ended with exit code 3: no such bucket",
    )


def test_an_init_container_that_nobody_saw_end_is_no_failure_of_the_attempt() -> None:
    lost = {"name": "fetch", "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}
    found = pod(**waiting("PodInitializing") | {"phase": "Failed", "initContainerStatuses": [lost]})
    driver = driver_of(found, 3, AT)
    assert driver.exit is not None
    assert driver.exit.is_disruption


def test_an_init_container_that_cannot_start_is_named() -> None:
    stuck = init("proxy", waiting={"reason": "ImagePullBackOff", "message": "not found"})
    obstacle = driver_of(pod(**waiting("PodInitializing"), initContainerStatuses=stuck), 3, AT).obstacle
    assert obstacle is not None
    assert obstacle.reason is StepReason.IMAGE_PULL_FAILED
    assert "init container proxy" in obstacle.message
    assert "the image of proxy in driver.podTemplate" in obstacle.message


@pytest.mark.parametrize(
    ("reason", "is_ready"),
    [("ContainersNotReady", True), (None, False), ("NodeNotReady", False)],
)
def test_a_driver_is_ready_beside_a_sidecar_that_is_not_as_long_as_its_node_answers(
    reason: str | None, is_ready: bool
) -> None:
    status = {
        "phase": "Running",
        "containerStatuses": [
            {"name": "driver", "ready": True, "state": {"running": {"startedAt": STARTED}}}
        ],
        "conditions": [{"type": "Ready", "status": "False", "reason": reason}],
    }
    assert driver_of(pod(**status), 3, AT).is_ready is is_ready
