"""An API server in memory, with a kubelet that does what a test says.

It keeps what the operator relies on: resource versions, uids as preconditions, one of a name, deletion with a
grace period, finalizers, and a status that is written apart. Watch events wait until a test delivers them.
It also knows what the API server does not: which containers run.
"""

from __future__ import annotations

import json
from builtins import list as listed
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headgate.adapters.kubernetes.client import APPLICATIONS, EVENTS, PODS, Kind, Manifest
from headgate.adapters.kubernetes.times import rfc3339
from headgate.errors import ApiConflict, ApiNotFound
from headgate.key import Key, key_of

Place = tuple[str, str, str]


def copied(manifest: Mapping[str, Any]) -> Manifest:
    """Return what comes of a manifest that is sent. `copy.deepcopy` takes twenty times as long."""
    found: Manifest = msgspec.msgpack.decode(msgspec.msgpack.encode(manifest))
    return found


@dataclass
class Watched:
    """One event of a watch."""

    kind: Kind
    is_gone: bool
    manifest: Manifest


@dataclass
class FakeCluster:
    """The calls of `client.ApiServer`, on objects in memory."""

    now: float = 1_700_000_000.0
    objects: dict[Place, Manifest] = field(default_factory=dict)
    events: listed[Watched] = field(default_factory=list)
    """All that watches have told since the beginning; each operator has a place in it of its own."""
    calls: listed[str] = field(default_factory=list)
    """The writes, as `verb plural`."""
    before: Callable[[str], None] = lambda _call: None
    """Called before a write is carried out; may raise what the operator then gets."""
    after: Callable[[str], None] = lambda _call: None
    """Called once a write has been carried out; what it raises is an answer that is lost."""
    description: Manifest = field(default_factory=dict)
    """The OpenAPI document of our group."""
    running: set[str] = field(default_factory=set)
    """Uids of pods whose container runs, whether or not the API server still has the pod."""
    _version: int = 0

    # What the operator calls ----------------------------------------------------------------------------

    async def get(self, kind: Kind, key: Key) -> Manifest:
        return copied(self._stored(kind, key))

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, **_: Any
    ) -> listed[Manifest]:
        wanted = dict(pair.split("=") for pair in labels.split(",")) if labels else {}
        return [
            copied(manifest)
            for (plural, where, _), manifest in self.objects.items()
            if plural == kind.plural
            and namespace in (None, where)
            and wanted.items() <= manifest["metadata"].get("labels", {}).items()
        ]

    async def describe(self, _kind: Kind) -> Manifest:
        return self.description

    async def create(self, kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
        def carry_out() -> Manifest:
            if self._place(kind, key_of(manifest)) in self.objects:
                raise ApiConflict("already exists")
            return self._store(kind, self._new(manifest))

        return self._write(f"create {kind.plural}", carry_out)

    async def apply(
        self, kind: Kind, manifest: Mapping[str, Any], *, subresource: str | None = None
    ) -> Manifest:
        def carry_out() -> Manifest:
            known = self.objects.get(self._place(kind, key_of(manifest)))
            if known is None and subresource is not None:
                raise ApiNotFound("no such object")
            if known is None:
                return self._store(kind, self._new(manifest))
            self._check(manifest["metadata"], known)
            members = {"status": manifest["status"]} if subresource == "status" else dict(manifest)
            return self._changed(kind, known, {**known, **members, "metadata": known["metadata"]})

        return self._write(f"apply {kind.plural}{f'/{subresource}' if subresource else ''}", carry_out)

    async def apply_status(self, manifest: Mapping[str, Any]) -> Manifest:
        return await self.apply(APPLICATIONS, manifest, subresource="status")

    async def patch(self, kind: Kind, key: Key, patch: Mapping[str, Any]) -> Manifest:
        def carry_out() -> Manifest:
            known = self._stored(kind, key)
            self._check(patch.get("metadata", {}), known)
            merged = _merged(known, {**patch, "metadata": _without_identity(patch.get("metadata", {}))})
            return self._changed(kind, known, merged)

        return self._write(f"patch {kind.plural}", carry_out)

    async def delete(
        self, kind: Kind, key: Key, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> Manifest:
        def carry_out() -> Manifest:
            known = self._stored(kind, key)
            if uid is not None and known["metadata"]["uid"] != uid:
                raise ApiConflict("the uid is another one")
            return self._deleted(kind, known, grace_seconds)

        return self._write(f"delete {kind.plural}", carry_out)

    # What a test does -----------------------------------------------------------------------------------

    def declare(self, manifest: Mapping[str, Any]) -> Manifest:
        """A person applies an application; the spec is replaced, the rest stays."""
        key = key_of(manifest)
        known = self.objects.get(self._place(APPLICATIONS, key))
        if known is None:
            return copied(self._store(APPLICATIONS, self._new(manifest)))
        return copied(self._changed(APPLICATIONS, known, {**known, "spec": manifest["spec"]}))

    def remove(self, key: Key) -> None:
        """A person deletes an application."""
        self._deleted(APPLICATIONS, self._stored(APPLICATIONS, key), None)

    def evict(self, pod: Manifest, grace_seconds: int = 30) -> None:
        """Somebody deletes a pod."""
        self._deleted(PODS, self._stored(PODS, key_of(pod)), grace_seconds)

    def application(self, key: Key) -> Manifest:
        return copied(self._stored(APPLICATIONS, key))

    def pods(self) -> listed[Manifest]:
        return [copied(found) for (plural, _, _), found in self.objects.items() if plural == "pods"]

    def told(self) -> listed[tuple[str, int]]:
        """Reasons of the Events, each with its count."""
        found = [found for (plural, _, _), found in self.objects.items() if plural == EVENTS.plural]
        return [(event["reason"], event["count"]) for event in found]

    def set_pod(self, name: str, **status: Any) -> None:
        """The kubelet reports a pod's status."""
        known = self.pod(name)
        changed = {**known, "spec": {**known["spec"], "nodeName": "node0"}, "status": status}
        self._changed(PODS, known, changed)

    def edit(self, kind: Kind, key: Key, change: Callable[[Manifest], object]) -> None:
        """Somebody changes an object in a way of their own."""
        manifest = copied(self._stored(kind, key))
        change(manifest)
        self._store(kind, manifest)

    def pod_runs(self, name: str, *, ready: bool = True) -> None:
        running = {"running": {"startedAt": rfc3339(self.now)}}
        self.running.add(self.pod(name)["metadata"]["uid"])
        self.set_pod(
            name,
            phase="Running",
            conditions=[{"type": "Ready", "status": str(ready)}],
            containerStatuses=[{"name": "driver", "state": running}],
        )

    def pod_ends(self, name: str, code: int, **terminated: Any) -> None:
        """The kubelet reports the container as terminated; a pod that is being deleted goes with it."""
        metadata = self.pod(name)["metadata"]
        self.running.discard(metadata["uid"])
        ended = {"exitCode": code, "finishedAt": rfc3339(self.now), **terminated}
        self.set_pod(
            name,
            phase="Succeeded" if code == 0 else "Failed",
            containerStatuses=[{"name": "driver", "state": {"terminated": ended}}],
        )
        if "deletionTimestamp" in metadata:
            self.vanish(name)

    def vanish(self, name: str) -> None:
        """A pod is gone from the API server, and so is its container: its node is."""
        self.running.discard(self.pod(name)["metadata"]["uid"])
        self._drop(PODS, self.pod(name))

    def pod(self, name: str) -> Manifest:
        return next(found for found in self.pods() if found["metadata"]["name"] == name)

    # Machinery ------------------------------------------------------------------------------------------

    def _write(self, call: str, carry_out: Callable[[], Manifest]) -> Manifest:
        self.before(call)
        answer = copied(carry_out())
        self.calls.append(call)
        self.after(call)
        return answer

    def _new(self, manifest: Mapping[str, Any]) -> Manifest:
        created = copied(manifest)
        created["metadata"] |= {
            "uid": f"uid-{self._version + 1}",
            "creationTimestamp": rfc3339(self.now),
            "generation": 1,
        }
        if created["kind"] == "Pod":
            created["status"] = {"phase": "Pending"}
        return created

    def _store(self, kind: Kind, manifest: Manifest) -> Manifest:
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        json.dumps(manifest)
        self.objects[self._place(kind, key_of(manifest))] = manifest
        self.events.append(Watched(kind, False, copied(manifest)))
        return manifest

    def _changed(self, kind: Kind, known: Manifest, changed: Mapping[str, Any]) -> Manifest:
        manifest = copied(changed)
        if manifest == known:
            return known
        if manifest.get("spec") != known.get("spec") and kind == APPLICATIONS:
            manifest["metadata"]["generation"] += 1
        is_leaving = kind == APPLICATIONS and "deletionTimestamp" in manifest["metadata"]
        if is_leaving and not manifest["metadata"].get("finalizers"):
            return self._drop(kind, manifest)
        return self._store(kind, manifest)

    def _deleted(self, kind: Kind, known: Manifest, grace_seconds: int | None) -> Manifest:
        manifest = copied(known)
        metadata, phase = manifest["metadata"], known.get("status", {}).get("phase")
        if kind == PODS and "nodeName" in known["spec"] and phase not in ("Succeeded", "Failed"):
            grace = known["spec"]["terminationGracePeriodSeconds"] if grace_seconds is None else grace_seconds
            if grace == 0:
                return self._drop(kind, known)
            if metadata.get("deletionGracePeriodSeconds", grace + 1) <= grace:
                return known
            metadata |= {
                "deletionTimestamp": rfc3339(self.now + grace),
                "deletionGracePeriodSeconds": grace,
            }
            return self._changed(kind, known, manifest)
        if metadata.get("finalizers"):
            if "deletionTimestamp" not in metadata:
                metadata |= {
                    "deletionTimestamp": rfc3339(self.now),
                    "generation": metadata["generation"] + 1,
                }
            return self._changed(kind, known, manifest)
        return self._drop(kind, known)

    def _drop(self, kind: Kind, known: Manifest) -> Manifest:
        self._version += 1
        del self.objects[self._place(kind, key_of(known))]
        gone = copied(known)
        gone["metadata"]["resourceVersion"] = str(self._version)
        self.events.append(Watched(kind, True, gone))
        return known

    def _stored(self, kind: Kind, key: Key) -> Manifest:
        try:
            return self.objects[self._place(kind, key)]
        except KeyError:
            raise ApiNotFound(f"no {kind.plural} {key}") from None

    def _check(self, metadata: Mapping[str, Any], known: Manifest) -> None:
        for name in ("uid", "resourceVersion"):
            if metadata.get(name, known["metadata"][name]) != known["metadata"][name]:
                raise ApiConflict(f"{name} is {known['metadata'][name]}")

    @staticmethod
    def _place(kind: Kind, key: Key) -> Place:
        return (kind.plural, *key)


def _without_identity(metadata: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in metadata.items() if name not in ("uid", "resourceVersion")}


def _merged(one: Any, other: Any) -> Any:
    """RFC 7386."""
    if not isinstance(other, Mapping):
        return other
    merged = dict(one) if isinstance(one, Mapping) else {}
    for name, value in other.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged
