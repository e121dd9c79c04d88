"""A driver pod, read as the driver that the lifecycle knows.

The one question that must not be answered wrongly is whether the driver may still write. It may until the
kubelet reports its container as terminated, or the object is gone from the API server. The phase alone does
not tell: a pod that somebody else marks as failed, because its node does not answer, may well be running there.
"""

import re
from collections.abc import Mapping
from typing import Any

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import ATTEMPT, CONTAINER, REVISION
from headgate.adapters.kubernetes.times import unix_time
from headgate.adapters.last_words import LONGEST_NOTE, last_words
from headgate.decision.driver import Exit, Obstacle, SeenDriver, StepReason
from headgate.reconcile.ports import Problem
from headgate_contract.exit_codes import KILLED, OOM_KILLED, ExitCode
from headgate_contract.foreign import scrubbed

LATE_SECONDS = 30.0
"""How much later than its grace period a pod may end before its node is suspected."""

CREATING_SECONDS = 300.0
"""How long a container may be in the making: a large image takes minutes, and so does a volume that moves."""

IMAGE_PROBLEMS = frozenset(
    {
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
CONTAINER_PROBLEMS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PostStartHookError",
        "PreCreateHookError",
        "PreStartHookError",
        "RunContainerError",
    }
)
"""Reasons of the kubelet for a container that waits, and not just for its turn."""

IN_THE_MAKING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons for one that waits for what it needs: the kubelet tells in events what that is."""

DISRUPTIONS = frozenset({"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"})
"""Reasons of the kubelet for a pod that it ended although nothing was wrong with it."""

LOST = frozenset({"ContainerStatusUnknown", "Unknown"})
"""Reasons of the kubelet, and of containerd, for a container that is gone and that nobody saw end: its node was
switched off and on, for instance. The exit code (137, 255) is made up."""


def attempt_of(pod: Manifest) -> int | None:
    """Return which attempt the pod is; `None` where its label does not say."""
    label = pod["metadata"].get("labels", {}).get(ATTEMPT, "")
    return int(label) if re.fullmatch(r"[0-9]{1,9}", label) else None


def is_ended(pod: Manifest) -> bool:
    """Return whether nothing of the driver can write any more, by the word of the kubelet."""
    return "terminated" in _state(pod)


def driver_of(pod: Manifest, attempt: int, now: float) -> SeenDriver:
    metadata = pod["metadata"]
    annotations, state = metadata.get("annotations", {}), _state(pod)
    ran = state.get("terminated") or state.get("running") or {}
    started_at = _moment(ran.get("startedAt"))
    if started_at is None:  # one that could not be started ran for no time
        started_at = _moment(ran.get("finishedAt"))
    return SeenDriver(
        attempt=attempt,
        started_at=unix_time(metadata["creationTimestamp"]) if started_at is None else started_at,
        revision=annotations.get(REVISION),
        is_ready=_is_ready(pod),
        is_leaving="deletionTimestamp" in metadata,
        is_lost=_was_turned_away(pod),
        obstacle=_obstacle(pod, now),
        exit=_exit(pod, state["terminated"], now) if "terminated" in state else None,
    )


def _moment(text: str | None) -> float | None:
    """Return a moment as Unix time; `None` where there was none, which kubelets may tell as the first of 1970."""
    moment = 0.0 if text is None else unix_time(text)
    return moment if moment > 0 else None


def _state(pod: Manifest) -> Mapping[str, Any]:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    found: Mapping[str, Any] = next((s.get("state", {}) for s in statuses if s["name"] == CONTAINER), {})
    if found.keys() & {"running", "terminated"} or (failed := _failed_init(pod)) is None:
        return found
    return {"terminated": failed}


def _failed_init(pod: Manifest) -> Mapping[str, Any] | None:
    """Return the end of an init container that has failed, and with it the driver, which never ran."""
    status = pod.get("status", {})
    if status.get("phase") != "Failed":
        return None
    for one in status.get("initContainerStatuses", ()):
        end = one.get("state", {}).get("terminated") or {}
        if (code := end.get("exitCode", 0)) != 0:
            words = last_words(end.get("message") or "") or end.get("reason", "Error")
            message = f"init container {one['name']} ended with exit code {code}: {words}"
            reason = end["reason"] if end.get("reason") in LOST else "Error"
            return {**end, "exitCode": 1, "reason": reason, "message": message}
    return None


def _is_ready(pod: Manifest) -> bool:
    """Whether the driver serves its metrics, whatever becomes of a sidecar of it.

    The container's own word counts only where the kubelet still speaks for the pod: nobody takes it back when a node
    is lost.
    """
    ready = condition_of(pod, "Ready")
    if ready.get("status") == "True" or ready.get("reason") != "ContainersNotReady":
        return ready.get("status") == "True"
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return any(status["name"] == CONTAINER and status.get("ready", False) for status in statuses)


def condition_of(pod: Manifest, kind: str) -> Mapping[str, Any]:
    """Return a condition of the pod; empty where it has none of that kind."""
    conditions = pod.get("status", {}).get("conditions", ())
    found: Mapping[str, Any] = next((c for c in conditions if c["type"] == kind), {})
    return found


def _was_turned_away(pod: Manifest) -> bool:
    """Whether the kubelet refused the pod, or evicted it, before it ran.

    One that ran may still do so, on a node that nobody reaches; one whose deletion has begun is looked after by
    whoever began it.
    """
    has_failed = pod.get("status", {}).get("phase") == "Failed"
    never_ran = not _state(pod).keys() & {"running", "terminated"}
    return has_failed and never_ran and "deletionTimestamp" not in pod["metadata"]


def _exit(pod: Manifest, terminated: Mapping[str, Any], now: float) -> Exit:
    disruption = _disruption(pod, terminated)
    finished_at = _moment(terminated.get("finishedAt"))
    return Exit(
        at=now if finished_at is None else finished_at,
        code=terminated.get("exitCode"),
        note=disruption if disruption is not None else _last_words(terminated),
        is_disruption=disruption is not None,
        oom_killed=_was_oom_killed(terminated) or terminated.get("exitCode") == ExitCode.JVM_OUT_OF_MEMORY,
    )


def _disruption(pod: Manifest, terminated: Mapping[str, Any]) -> str | None:
    """Return who ended the driver, if it was not the driver itself, as far as anybody saw."""
    status, target = pod.get("status", {}), condition_of(pod, "DisruptionTarget")
    reason: str = status.get("reason", "")
    if reason in DISRUPTIONS:
        return in_words(reason, status.get("message"))
    if target.get("status") == "True":
        return in_words(str(target.get("reason")), target.get("message"))
    if "deletionTimestamp" in pod["metadata"]:
        return "its pod was deleted"
    lost: str = terminated.get("reason", "")
    return in_words(lost, terminated.get("message")) if lost in LOST else None


def _was_oom_killed(terminated: Mapping[str, Any]) -> bool:
    """Whether all of the container was killed for want of memory.

    Container runtimes give that reason as well where only the JVM was: the launcher notes that, or ends with a code
    that says that it could not.
    """
    return terminated.get("reason") == OOM_KILLED and terminated.get("exitCode") == KILLED


def _last_words(terminated: Mapping[str, Any]) -> str | None:
    reason: str | None = terminated.get("reason")
    if _was_oom_killed(terminated):
        return (
            "OOMKilled: it took more memory than driver.memory and its overhead; raise driver.memory, or "
            "spark.driver.memoryOverhead in sparkConf"
        )
    told = last_words(terminated.get("message", ""))
    return reason if told is None and reason not in ("Completed", "Error") else told


def _obstacle(pod: Manifest, now: float) -> Obstacle | None:
    metadata, status = pod["metadata"], pod.get("status", {})
    if is_ended(pod):
        return None
    if (deadline := metadata.get("deletionTimestamp")) is not None:
        return _unreachable(pod, unix_time(deadline)) if now >= unix_time(deadline) + LATE_SECONDS else None
    if _was_turned_away(pod):
        told = in_words(status.get("reason", "Failed"), status.get("message"))
        message = f"the kubelet turned the driver away ({told}); it is taken away and started again"
        return Obstacle(
            reason=StepReason.DRIVER_LOST, message=message, since=changed_at(pod, "DisruptionTarget")
        )
    if status.get("phase") == "Failed":
        return _unreachable(pod, changed_at(pod, "DisruptionTarget"))
    if status.get("phase", "Pending") != "Pending":
        return None
    remedy = (
        "add nodes, lower driver.cores and driver.memory, or let driver.podTemplate tolerate the taints of nodes "
        "that have room"
    )
    container, since = _state(pod).get("waiting", {}), changed_at(pod, "PodScheduled")
    found = (
        unscheduled(pod, "the driver", remedy)
        or _waiting(pod)
        or in_the_making(pod, container, "the driver's container", now)
    )
    return (
        None
        if found is None
        else Obstacle(reason=StepReason(found.reason), message=found.message, since=since)
    )


def _unreachable(pod: Manifest, since: float) -> Obstacle:
    node = pod.get("spec", {}).get("nodeName", "unknown")
    message = (
        f"pod {pod['metadata']['name']} should have ended, and node {node} does not say that it has. Nothing "
        f"else is started, since it may still write. If the node is dead for certain, delete the Node {node}"
    )
    return Obstacle(reason=StepReason.NODE_UNREACHABLE, message=message, since=since)


def unscheduled(pod: Manifest, who: str, remedy: str) -> Problem | None:
    """Return that no node takes a pod; `who` is it."""
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") != "False":
        return None
    told = in_words(scheduled.get("reason", "Unschedulable"), scheduled.get("message"))
    return Problem(StepReason.UNSCHEDULABLE, f"no node takes {who} ({told}); {remedy}")


def _waiting(pod: Manifest) -> Problem | None:
    """Return why the driver's container waits, or an init container that keeps it from starting."""
    name, waiting, image, whose = CONTAINER, _state(pod).get("waiting", {}), "spec.image", "the driver's"
    for one in pod.get("status", {}).get("initContainerStatuses", ()):
        held = one.get("state", {}).get("waiting") or {}
        if held.get("reason") in IMAGE_PROBLEMS | CONTAINER_PROBLEMS:
            name, waiting = one["name"], held
            image = f"the image of {name} in driver.podTemplate"
            whose = f"the driver's init container {name}: its"
            break
    return why_it_waits(waiting, f"{whose} container", image, "the driver's")


def why_it_waits(waiting: Mapping[str, Any], container: str, image: str, whose: str) -> Problem | None:
    """Return why a container does not start; `None`: it just waits for its turn.

    `waiting` is the word of the kubelet, `image` says where its image is named, `whose` whose service account it has.
    """
    does_not_start = (
        f"{container} does not start ({in_words(waiting.get('reason', ''), waiting.get('message'))})"
    )
    if waiting.get("reason") in IMAGE_PROBLEMS:
        remedy = f"correct {image}, or give {whose} service account a pull secret"
        return Problem(StepReason.IMAGE_PULL_FAILED, f"{does_not_start}; {remedy}")
    if waiting.get("reason") in CONTAINER_PROBLEMS:
        remedy = "correct what the kubelet names"
        return Problem(StepReason.CONTAINER_CONFIG_ERROR, f"{does_not_start}; {remedy}")
    return None


def in_the_making(pod: Manifest, waiting: Mapping[str, Any], container: str, now: float) -> Problem | None:
    """Return that a container has been in the making for long; `now` is Unix time."""
    reason, name = waiting.get("reason"), pod["metadata"]["name"]
    if reason not in IN_THE_MAKING or now < changed_at(pod, "PodScheduled") + CREATING_SECONDS:
        return None
    message = (
        f"{container} has been in the making for more than {CREATING_SECONDS / 60:.0f} minutes ({reason}); the "
        f"events of pod {name} say what it waits for, be it a volume, a secret, the network or a large image: "
        f"kubectl describe pod {name}"
    )
    return Problem(StepReason.CONTAINER_CREATING, message)


def changed_at(pod: Manifest, kind: str) -> float:
    """Return when a condition last changed, or else when the pod was created."""
    return unix_time(
        condition_of(pod, kind).get("lastTransitionTime") or pod["metadata"]["creationTimestamp"]
    )


def in_words(reason: str, message: str | None) -> str:
    """Return what Kubernetes says, in a line of bounded length, without what looks like a secret."""
    return (reason if not message else f"{reason}: {' '.join(scrubbed(message).split())}")[:LONGEST_NOTE]
