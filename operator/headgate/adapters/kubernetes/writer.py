"""What a reconcile wants written, as values, and who carries it out: in order, one after the other, until one fails.

Each can be carried out twice, or by a process that does not know that it is not in charge any more, without harm: it
names the very object that it means, and the application's status carries the version that the reconcile was decided
on.

What follows a write that fails is dropped. The reconcile is made again, from what is there then; whatever was done
already is found done. One thing is not dropped: a driver that cannot be told anything more can be ended all the same,
and its application let go.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, assert_never

from headgate.adapters.kubernetes.cache import application_of
from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, ApiServer, Manifest
from headgate.adapters.kubernetes.names import CONTROL, FINALIZER
from headgate.adapters.kubernetes.pods import attempt_of, is_ended
from headgate.adapters.kubernetes.refusals import NameIsTaken, PredecessorRemains
from headgate.api.application import API_VERSION, KIND
from headgate.api.labels import APPLICATION, DRIVER, ROLE, driver_name
from headgate.clock import steady_seconds
from headgate.errors import ApiConflict, ApiNotFound, ApiUnavailable, TransientError
from headgate.key import Key, key_of

FRESH_SECONDS = 10.0
"""How old a decision may be at most when it is carried out. A process that was stopped for longer may have lost its
lease to another one meanwhile, and must not act on what it knew; so this is no longer than it may go without renewing
that."""

TELLING_SHARE = 0.5
"""Of that time, to tell a driver something: what is to be done to it then must not be too old because of it."""


@dataclass(frozen=True, slots=True)
class HoldApplication:
    """Put our finalizer on the application, so that it cannot go before its driver has stopped."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write status and memory in one."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PublishControl:
    """Put the control document on a driver pod."""

    pod: str
    uid: str
    document: str


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Create a driver's pod."""

    pod: Manifest


@dataclass(frozen=True, slots=True)
class EndPod:
    """Delete a pod: ask the kubelet to end it within `grace_seconds`; `None`: within its own grace period.

    One that has ended goes at once.
    """

    pod: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ReleaseApplication:
    """Take our finalizer off."""


@dataclass(frozen=True, slots=True)
class RemoveApplication:
    """Delete the application."""


Write = (
    HoldApplication
    | WriteStatus
    | PublishControl
    | CreateDriver
    | EndPod
    | ReleaseApplication
    | RemoveApplication
)


class Writer:
    """Carries out the writes of one reconcile.

    `seen` and `gone` are told of each object as the API server answers with it.
    """

    def __init__(  # noqa: PLR0913  whom to tell, and how long what was decided holds
        self,
        cluster: ApiServer,
        application: Manifest,
        *,
        seen: Callable[[Manifest], object],
        gone: Callable[[Manifest], object],
        clock: Callable[[], float] = steady_seconds,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._key = key_of(application)
        self._uid = application["metadata"]["uid"]
        self._finalizers = list(application["metadata"].get("finalizers", ()))
        self._version = application["metadata"]["resourceVersion"]
        self._seen = seen
        self._gone = gone
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._decided_at = clock()
        self.has_written_status = False
        self.status: Mapping[str, Any] | None = None
        """As the API server has it after the write."""
        self.untold: TransientError | None = None
        """Why the driver could not be told its control document."""

    async def carry_out(self, writes: Sequence[Write]) -> None:
        """Carry the writes out; raises what the first one that fails raises."""
        for write in writes:
            if self.untold is None or isinstance(write, EndPod | ReleaseApplication):
                self._require_fresh()
                await self._carry_out(write)
        if self.untold is not None:
            raise self.untold

    def _require_fresh(self) -> None:
        if self._clock() - self._decided_at > self._fresh_seconds:
            raise ApiUnavailable(f"application {self._key}: the decision is too old to be carried out")

    async def _carry_out(self, write: Write) -> None:
        match write:
            case HoldApplication():
                await self._set_finalizers([*self._finalizers, FINALIZER])
            case ReleaseApplication():
                with suppress(ApiNotFound):
                    await self._set_finalizers([name for name in self._finalizers if name != FINALIZER])
            case RemoveApplication():
                with suppress(ApiNotFound):
                    await self._cluster.delete(APPLICATIONS, self._key, uid=self._uid)
            case WriteStatus(status=status):
                await self._write_status(status)
            case PublishControl(pod=name, uid=uid, document=document):
                try:
                    await self._publish(name, uid, document)
                except TransientError as error:
                    self.untold = error
            case CreateDriver(pod=pod):
                await self._create(pod)
            case EndPod(pod=name, uid=uid, grace_seconds=grace):
                try:
                    await self._cluster.delete(PODS, self._at(name), uid=uid, grace_seconds=grace)
                except (ApiNotFound, ApiConflict):  # it is not there any more, or is another one by now
                    self._gone(self._pod(name, uid))
            case other:
                assert_never(other)

    def _at(self, name: str) -> Key:
        return Key(self._key.namespace, name)

    async def _write_status(self, status: object) -> None:
        metadata = {
            "name": self._key.name,
            "namespace": self._key.namespace,
            "uid": self._uid,
            "resourceVersion": self._version,
        }
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": status}
        answer = await self._cluster.apply_status(manifest)
        self._learn(answer)
        self.has_written_status, self.status = True, answer.get("status")

    async def _set_finalizers(self, finalizers: Sequence[str]) -> None:
        metadata = {"uid": self._uid, "resourceVersion": self._version, "finalizers": list(finalizers)}
        self._learn(await self._cluster.patch(APPLICATIONS, self._key, {"metadata": metadata}))

    def _learn(self, application: Manifest) -> None:
        self._version = application["metadata"]["resourceVersion"]
        self._finalizers = list(application["metadata"].get("finalizers", ()))
        self._seen(application)

    async def _publish(self, name: str, uid: str, document: str) -> None:
        patch = {"metadata": {"uid": uid, "annotations": {CONTROL: document}}}
        try:
            async with asyncio.timeout(self._fresh_seconds * TELLING_SHARE):
                self._seen(await self._cluster.patch(PODS, self._at(name), patch))
        except TimeoutError:
            raise ApiUnavailable(f"pod {self._at(name)}: its control document is not taken in time") from None
        except ApiNotFound:
            self._gone(self._pod(name, uid))
            raise

    async def _create(self, pod: Manifest) -> None:
        """Create the pod. One of that name is looked at before anything is decided again.

        Where it is not to be seen as a driver, no other decision would come of that.
        """
        if (attempt := attempt_of(pod) or 0) > 1:
            # The driver before this one, by its name: whoever takes its labels off hides it, and no more.
            before = driver_name(self._key.name, attempt - 1)
            with suppress(ApiNotFound):
                if not is_ended(await self._cluster.get(PODS, self._at(before))):
                    raise PredecessorRemains(self._key, before)
        self._require_fresh()
        try:
            self._seen(await self._cluster.create(PODS, pod))
        except ApiConflict:
            with suppress(ApiNotFound):
                found = await self._cluster.get(PODS, key_of(pod))
                self._seen(found)
                if application_of(found) != self._key:
                    raise NameIsTaken(self._key, pod["metadata"]["name"]) from None
            raise

    def _pod(self, name: str, uid: str) -> Manifest:
        """Return as much of a pod as it takes to say that it is gone."""
        labels = {APPLICATION: self._key.name, ROLE: DRIVER}
        return {"metadata": {"name": name, "uid": uid, "namespace": self._key.namespace, "labels": labels}}
