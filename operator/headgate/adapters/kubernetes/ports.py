"""The ports of the loop for one application and one reconcile.

They answer from the cache and change nothing: what the loop wants done is collected as writes, which the
controller carries out once the reconcile is over.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.manifests import DriverStart, Owner, driver_pod
from headgate.adapters.kubernetes.names import CONTROL, FINALIZER
from headgate.adapters.kubernetes.pods import attempt_of, driver_of, is_ended
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.adapters.kubernetes.times import unix_time
from headgate.adapters.kubernetes.writer import (
    CreateDriver,
    EndPod,
    HoldApplication,
    PublishControl,
    ReleaseApplication,
    RemoveApplication,
    Write,
)
from headgate.api.labels import driver_name
from headgate.api.status import SparkApplicationStatus
from headgate.decision.driver import Obstacle, SeenDriver, StepReason
from headgate.decision.situation import SCRIPT_SECONDS
from headgate.reconcile.launch import Launch
from headgate.reconcile.ports import Event
from headgate_contract import ControlDocument, Refusal
from headgate_contract.receiving import take, write

KILL_GRACE_SECONDS = 1
"""The least that still leaves it to the kubelet to say that the container has ended: with 0 the API server
forgets the pod at once, and what runs on a node that does not answer goes on writing."""

FOLLOW_BY_THEMSELVES = frozenset({StepReason.WAITING_FOR_DRIVER})
"""Reasons that are in the status, and not worth an object each: a driver that was started is waited for."""


@dataclass(slots=True)
class PendingWrites:
    """What the loop wants done."""

    memory: Mapping[str, Any] | None = None
    status: SparkApplicationStatus | None = None
    document: ControlDocument | None = None
    writes: list[Write] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class PodDrivers:
    """The ports `Drivers` and `Controls`: pods of the application, of which one at most is alive.

    The control document is an annotation of that one. While there is none it waits for the next one, in `pending`,
    where whoever begins the reconcile puts the one from before.
    """

    def __init__(  # noqa: PLR0913  whose they are, where writes go, and what is known when the reconcile begins
        self,
        owner: Owner,
        pods: Sequence[Manifest],
        pending: PendingWrites,
        *,
        defaults: DriverDefaults,
        obstacle: Obstacle | None,
        untold: Obstacle | None,
    ) -> None:
        self._owner = owner
        self._pending = pending
        self._defaults = defaults
        self._obstacle = obstacle
        self._untold = untold
        self._all = tuple(pods)
        ours = [pod for pod in pods if _is_owned(pod, owner.uid) and attempt_of(pod) is not None]
        self._pods = sorted(ours, key=lambda pod: attempt_of(pod) or 0)

    @property
    def living(self) -> Manifest | None:
        """The pod of the driver that lives: the oldest, should there be several, since it has to go first."""
        return next((pod for pod in self._pods if not is_ended(pod)), None)

    def observe(self, now: float) -> SeenDriver | None:
        """Return the driver that lives, or else the newest one that has ended."""
        pod = self.living or (self._pods[-1] if self._pods else None)
        if pod is None or (attempt := attempt_of(pod)) is None:
            return None
        return replace(driver_of(pod, attempt, now), untold=self._untold)

    def obstacle(self, now: float) -> Obstacle | None:
        """Return what was found when the reconcile began, or what is left of an application of the same name."""
        strangers = [pod for pod in self._all if not _is_owned(pod, self._owner.uid) and not is_ended(pod)]
        if self._obstacle is not None:
            return self._obstacle
        if not strangers:
            return next((_held(pod, now) for pod in self._all if _is_held(pod)), None)
        names = ", ".join(sorted(pod["metadata"]["name"] for pod in strangers))
        message = f"an application of the same name was deleted, and its driver is still there: {names}"
        found = [pod["metadata"] for pod in strangers]
        since = min(unix_time(one.get("deletionTimestamp") or one["creationTimestamp"]) for one in found)
        return Obstacle(reason=StepReason.PREDECESSOR_REMAINS, message=message, since=min(since, now))

    def start(
        self,
        launch: Launch,
        attempt: int,
        now: float,  # noqa: ARG002  the pod says when
        *,
        follows_oom_kill: bool = False,
    ) -> None:
        """Clear away what has ended; once nothing is left, create the pod."""
        if any(pod["metadata"]["name"] == driver_name(self._owner.key.name, attempt) for pod in self._pods):
            return
        if self._all:
            left = [pod for pod in self._all if not _is_leaving(pod) or (is_ended(pod) and not _is_held(pod))]
            self._pending.writes += [EndPod(*_identity(pod)) for pod in left]
            return
        document = self._pending.document
        assert document is not None  # noqa: S101  the loop publishes before it starts, and once per change
        start = DriverStart(
            owner=self._owner,
            launch=launch,
            attempt=attempt,
            document=document,
            defaults=self._defaults,
            follows_oom_kill=follows_oom_kill,
        )
        self._pending.writes.append(CreateDriver(driver_pod(start)))

    def stop(self, grace_seconds: float) -> None:
        """Delete the pod of the driver that lives, with time for its batch and its script."""
        if (pod := self.living) is None or _is_leaving(pod):
            return
        seconds = int(grace_seconds + SCRIPT_SECONDS) if grace_seconds > 0 else KILL_GRACE_SECONDS
        self._pending.writes.append(EndPod(*_identity(pod), grace_seconds=seconds))

    def kill(self) -> None:
        """Delete the pod with next to no time."""
        pod = self.living
        if pod is None or pod["metadata"].get("deletionGracePeriodSeconds") == KILL_GRACE_SECONDS:
            return
        self._pending.writes.append(EndPod(*_identity(pod), grace_seconds=KILL_GRACE_SECONDS))

    def published(self) -> ControlDocument | None:
        """Return the document of the driver that lives, or the one that the next driver gets.

        None is one of a newer operator that says more than is known here: that would stay in force, though the
        resource does not say it any more.
        """
        if (pod := self.living) is None:
            return self._pending.document
        text = pod["metadata"].get("annotations", {}).get(CONTROL)
        if text is None:
            return None
        found = take(text)
        return None if isinstance(found, Refusal) or found.says_more else found.document

    def publish(self, document: ControlDocument) -> None:
        """Give the document to the driver that lives, or keep it for the next one."""
        self._pending.document = document
        if (pod := self.living) is not None:
            self._pending.writes.append(PublishControl(*_identity(pod), document=write(document)))


class ApplicationObject:
    """The ports `Store`, `Reports` and `Finalizer`: the status, with the memory in it, and our finalizer."""

    def __init__(self, application: Manifest, pending: PendingWrites) -> None:
        self._metadata = application["metadata"]
        self._status: Mapping[str, Any] = application.get("status") or {}
        self._pending = pending

    def load(self) -> Mapping[str, Any] | None:
        memory = self._status.get("memory")
        return memory if isinstance(memory, dict) else None

    def save(self, document: Mapping[str, Any]) -> None:
        self._pending.memory = document

    def last(self) -> SparkApplicationStatus | None:
        """Return the status; the default of a new object, and one that cannot be understood, count as none."""
        shown = {name: value for name, value in self._status.items() if name != "memory"}
        try:
            status = SparkApplicationStatus.model_validate_json(json.dumps(shown))
        except ValidationError:
            return None
        return None if status.observed_generation is None else status

    def write(self, status: SparkApplicationStatus) -> None:
        self._pending.status = status

    def tell(self, event: Event) -> None:
        """Have the event recorded, unless it follows from the one before it."""
        if event.reason not in FOLLOW_BY_THEMSELVES:
            self._pending.events.append(event)

    @property
    def is_held(self) -> bool:
        return FINALIZER in self._metadata.get("finalizers", ())

    def hold(self) -> None:
        """Hold the application, before anything of it runs."""
        if not self.is_held:
            self._pending.writes.insert(0, HoldApplication())

    def deletion_asked_at(self) -> float | None:
        text = self._metadata.get("deletionTimestamp")
        return None if text is None else unix_time(text)

    def release(self) -> None:
        if self.is_held:
            self._pending.writes.append(ReleaseApplication())

    def remove(self) -> None:
        if "deletionTimestamp" not in self._metadata:
            self._pending.writes.append(RemoveApplication())


def _identity(pod: Manifest) -> tuple[str, str]:
    return pod["metadata"]["name"], pod["metadata"]["uid"]


def _is_owned(pod: Manifest, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences", ()))


def _is_leaving(pod: Manifest) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_held(pod: Manifest) -> bool:
    """Return whether nothing but a finalizer keeps the pod: we put none on it."""
    return is_ended(pod) and _is_leaving(pod) and bool(pod["metadata"].get("finalizers"))


def _held(pod: Manifest, now: float) -> Obstacle:
    metadata = pod["metadata"]
    name, finalizers = metadata["name"], ", ".join(metadata["finalizers"])
    message = (
        f"pod {name} has ended, and somebody's finalizer holds it ({finalizers}); the next attempt starts once it is "
        "gone. See that its owner takes it off; where there is none any more, take it off yourself: kubectl patch "
        f'pod {name} -n {metadata["namespace"]} --type merge -p \'{{"metadata":{{"finalizers":null}}}}\''
    )
    since = min(unix_time(metadata["deletionTimestamp"]), now)
    return Obstacle(reason=StepReason.POD_HELD, message=message, since=since)
