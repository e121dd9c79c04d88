"""Kopf: watches applications and driver pods, and hands what it hears on.

Of Kopf this takes what is hard to get right (watches that break, bookmarks, credentials, many namespaces) and leaves
what a level-based loop has no use for: no state in annotations, no finalizers of its own, no events, no handlers of
changes. A handler takes one object in and queues one key; it decides nothing.

Kopf hears of an object that vanished while a watch was away by no means at all; `resync.py` finds those.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import aiohttp
import kopf
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory  # no public name, yet a parameter
from kubernetes.aio.client import ApiClient

from headgate.adapters.kubernetes.client import APPLICATIONS, PAGE, PODS, Kind, Manifest, session_of
from headgate.adapters.kubernetes.names import DRIVER_SELECTOR
from headgate.api.application import GROUP, VERSION
from headgate.controller.cluster import Controller
from headgate.key import Key

Metadata = Mapping[str, Any]
"""`metadata` of an object."""


@dataclass(frozen=True, slots=True)
class _Awaited:
    version: int
    since: float
    scope: str | None


@dataclass(slots=True)
class KnownVersions:
    """The versions of objects that were heard of, by uid; those of one kind may be compared (KEP-5504).

    Once all that a listing has named was heard of, there is nothing that one could not know: only then may anybody
    act. Later a version that is listed, and not told by the watch for minutes, shows that the watch is dead, which
    nobody else would notice. What is listed by itself, a namespace or the whole cluster, is known by itself: one that
    cannot be listed keeps none of the others waiting. Times are on one clock, that of the caller. Pure; `resync.py`
    does the listing.
    """

    _heard: dict[str, int] = field(default_factory=dict)
    _awaited: dict[str, _Awaited] = field(default_factory=dict)
    """Listed in a version that was not heard of yet."""
    _compared: set[str | None] = field(default_factory=set)
    """Of which there was a listing."""

    def heard(self, metadata: Metadata) -> None:
        """A watch, or its own listing, told of an object."""
        uid, version = metadata["uid"], int(metadata["resourceVersion"])
        self._heard[uid] = max(version, self._heard.get(uid, 0))
        if uid in self._awaited and self._awaited[uid].version <= version:
            del self._awaited[uid]

    def gone(self, metadata: Metadata) -> None:
        self._heard.pop(metadata["uid"], None)
        self._awaited.pop(metadata["uid"], None)

    def expect(self, listed: Iterable[Metadata], at: float, scope: str | None = None) -> None:
        """A complete listing of `scope` named these, at `at`: the watch has told of them, or will."""
        before = self._awaited
        others = {uid: awaited for uid, awaited in before.items() if awaited.scope != scope}
        versions = {metadata["uid"]: int(metadata["resourceVersion"]) for metadata in listed}
        self._awaited = others | {
            uid: before.get(uid, _Awaited(version, at, scope))
            for uid, version in versions.items()
            if self._heard.get(uid, 0) < version
        }
        self._compared.add(scope)

    def expect_nothing(self, scope: str | None) -> None:
        """Nobody may watch `scope` any more: its silence says nothing, and the next listing of it is the first."""
        self._awaited = {uid: awaited for uid, awaited in self._awaited.items() if awaited.scope != scope}
        self._compared.discard(scope)

    def is_synced(self, scope: str | None = None) -> bool:
        """Whether all that was listed of `scope` has been heard of."""
        return scope in self._compared and all(one.scope != scope for one in self._awaited.values())

    def behind(self, now: float) -> float:
        """Return for how long the watch has not told what a listing has, in seconds; from any thread."""
        return max((now - awaited.since for awaited in list(self._awaited.values())), default=0.0)


LIST_SECONDS = 120.0
"""Longest wait for one page of a listing."""
SILENCE_SECONDS = 70.0
"""After so long without an event or a bookmark, of which there is one a minute, a watch is made anew."""


@dataclass(slots=True)
class Watches:
    """Where everything goes that is heard of the cluster, whether by a watch or by a listing."""

    controller: Controller
    add: Callable[[Key], None]
    """Queues an application."""
    heard: Callable[[str], None] = lambda _resource: None
    """Counts what is heard, by resource."""
    gone: Callable[[Key], None] = lambda _key: None
    """Told of applications that are not there any more."""
    versions: Mapping[Kind, KnownVersions] = field(
        default_factory=lambda: {APPLICATIONS: KnownVersions(), PODS: KnownVersions()}
    )

    def take(self, kind: Kind, event: str | None, manifest: Manifest) -> None:
        """Take in an event of an object; `event` is the word of the watch, `None` from a listing."""
        self.heard(kind.plural)
        if event == "DELETED":
            self.vanished(kind, manifest)
            return
        self.versions[kind].heard(manifest["metadata"])
        seen = self.controller.application_seen if kind == APPLICATIONS else self.controller.pod_seen
        if (key := seen(manifest)) is not None:
            self.add(key)

    def vanished(self, kind: Kind, manifest: Manifest) -> None:
        """Take in that an object is gone; of `manifest` only the metadata is needed."""
        self.versions[kind].gone(manifest["metadata"])
        if kind == APPLICATIONS:
            application = self.controller.application_gone(manifest)
            self.gone(application)
            self.add(application)
        elif (owner := self.controller.pod_gone(manifest)) is not None:
            self.add(owner)

    def are_synced(self, scope: str | None = None) -> bool:
        """Whether everything that was there has been heard of: in one namespace, or in the whole cluster."""
        return all(known.is_synced(scope) for known in self.versions.values())

    def behind(self, now: float) -> float:
        """Return for how long a watch has not told what a listing has, in seconds."""
        return max(known.behind(now) for known in self.versions.values())


def registry_of(watches: Watches, api: ApiClient) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    @kopf.on.event(GROUP, VERSION, APPLICATIONS.plural, registry=registry)
    async def application(event: kopf.RawEvent, **_: Any) -> None:
        watches.take(APPLICATIONS, event["type"], dict(event["object"]))

    @kopf.on.event("", "v1", PODS.plural, registry=registry)
    async def pod(event: kopf.RawEvent, **_: Any) -> None:
        watches.take(PODS, event["type"], dict(event["object"]))

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=api.configuration.host, aiohttp_session=_session(api))

    return registry


def _session(api: ApiClient) -> aiohttp.ClientSession:
    """Return a session with the credentials of `api`, asked for with each request: tokens are rotated."""

    async def authorize(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        headers: dict[str, str] = {}
        await api.update_params_for_auth(headers, [], ["BearerToken"], request.url.path, request.method, None)
        request.headers.update(headers)
        return await handler(request)

    return session_of(api, authorize)


def kopf_settings(connect_seconds: float) -> kopf.OperatorSettings:
    """Return Kopf's settings: alone, silent towards the cluster, never giving up on a watch."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = True  # it would need rights to all namespaces and CRDs
    settings.persistence.diffbase_storage = settings.persistence.progress_storage = _NoStorage()
    settings.networking.connect_timeout = connect_seconds
    settings.networking.request_timeout = LIST_SECONDS
    settings.networking.error_backoffs = _Backoffs()
    settings.watching.inactivity_timeout = SILENCE_SECONDS
    settings.watching.chunk_size = PAGE
    settings.watching.label_selectors["", "v1", PODS.plural] = DRIVER_SELECTOR
    settings.queueing.idle_timeout = 0.5  # each object that was heard of is a task for so long
    settings.process.ultimate_exiting_timeout = None  # the end of the process is seen to elsewhere
    return settings


class _Backoffs:
    """Pauses without an end: an API server that is gone for an hour comes back, and so shall its watches."""

    def __iter__(self) -> Iterator[float]:
        return chain((0.5, 1, 2, 4), repeat(8))


class _NoStorage(kopf.DiffBaseStorage, kopf.ProgressStorage):
    """Kopf compares each object with the one before, which is nobody's business here and costs a copy of each, and
    remembers which handlers have succeeded; there are none that could fail."""

    def build(self, **_: Any) -> Any:
        return {}

    def clear(self, *, essence: Any) -> Any:
        return essence

    def fetch(self, **_: Any) -> None:
        """Return that there was nothing before."""

    def store(self, **_: Any) -> None:
        """Write nothing to the object."""

    purge = touch = store


class NoMemories(ResourceMemories):
    """Kopf remembers each object until a watch says that it is gone, and one that vanished unheard for ever.

    It is a kilobyte of each, for handlers that we do not have.
    """

    async def recall(self, *args: Any, **kwargs: Any) -> ResourceMemory:
        """Return what is remembered of an object of which nobody has heard before."""
        return await super().recall(*args, **kwargs | {"ephemeral": True})
