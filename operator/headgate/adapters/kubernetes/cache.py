"""What is known of the cluster: fed by watches and by the answers to our own writes.

Both come in any order, so the object with the newest resource version wins, and an object that is gone stays
gone: an old event must not bring it back. Of one version with two contents the later one holds: a store that was put
back gives a version again, and a newer CRD other defaults. What nobody reads of an object is left out, and the rest
is packed, since a large cluster has ten thousand of each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Kind, Manifest
from headgate.adapters.kubernetes.packing import packed_json, unpacked_json
from headgate.api.application import GROUP
from headgate.api.labels import APPLICATION, DRIVER, ROLE
from headgate.key import Key, key_of

OURS = f"{GROUP}/"
"""What the names of our annotations begin with."""

GONE_KEPT = 4096
"""How many objects are remembered as gone: more than can have a late answer on its way."""


def version_of(manifest: Mapping[str, Any]) -> int:
    """Return the resource version, which rises with every write (KEP-5504 lets clients compare it)."""
    text = manifest["metadata"].get("resourceVersion", "0")
    return int(text) if text.isdecimal() else 0


class Packed:
    """An object at rest, with what tells it from others beside it."""

    __slots__ = ("_content", "uid", "version")

    def __init__(self, manifest: Manifest) -> None:
        self.uid: str = manifest["metadata"]["uid"]
        self.version = version_of(manifest)
        self._content = packed_json(manifest)

    def open(self) -> Manifest:
        """Return the object; it is the caller's own."""
        manifest: Manifest = unpacked_json(self._content)
        return manifest


@dataclass(slots=True)
class Family:
    """An application with its driver pods."""

    application: Packed | None = None
    pods: dict[str, Packed] = field(default_factory=dict)
    """By name."""


class Cache:
    """Applications and their driver pods, by the key of the application."""

    def __init__(self) -> None:
        self._families: dict[Key, Family] = {}
        self._stalled: set[Key] = set()
        """Those of them that wait for a person."""
        self._gone: dict[str, Kind] = {}
        """By uid, the oldest first."""

    def keys(self) -> Collection[Key]:
        """Return the keys of the applications that are there, or of which a pod is."""
        return self._families.keys()

    def application(self, key: Key) -> Manifest | None:
        """Return the application, without what nobody reads."""
        family = self._families.get(key)
        return None if family is None or family.application is None else family.application.open()

    def pods(self, key: Key) -> tuple[Manifest, ...]:
        """Return the driver pods of the application, without what nobody reads."""
        family = self._families.get(key)
        return () if family is None else tuple(pod.open() for pod in family.pods.values())

    def pod(self, key: Key, name: str) -> Manifest | None:
        family = self._families.get(key)
        found = None if family is None else family.pods.get(name)
        return None if found is None else found.open()

    def objects(self, kind: Kind, namespace: str | None = None) -> dict[str, Packed]:
        """Return all applications, or all pods, of a namespace or of all of them, by uid."""
        families = [family for key, family in self._families.items() if namespace in (None, key.namespace)]
        if kind == APPLICATIONS:
            packed = [family.application for family in families if family.application is not None]
        else:
            packed = [pod for family in families for pod in family.pods.values()]
        return {one.uid: one for one in packed}

    def gone_applications(self) -> frozenset[str]:
        """Return the uids of applications that are known to be gone."""
        return frozenset(uid for uid, kind in self._gone.items() if kind == APPLICATIONS)

    def stalled(self) -> int:
        """Return how many applications wait for a person, by their condition `Stalled`; from any thread."""
        return len(self._stalled)

    def put_application(self, manifest: Manifest) -> Key | None:
        """Take in an application, as a watch or an answer shows it; returns its key, `None` if that is no news."""
        key = key_of(manifest)
        family = self._families.setdefault(key, Family())
        is_news = self._is_news(manifest, family.application, _without_bookkeeping)
        if is_news:
            family.application = Packed(_without_bookkeeping(manifest))
            conditions = (manifest.get("status") or {}).get("conditions", ())
            is_stalled = any(one["type"] == "Stalled" and one["status"] == "True" for one in conditions)
            (self._stalled.add if is_stalled else self._stalled.discard)(key)
        self._tidy(key)
        return key if is_news else None

    def drop_application(self, manifest: Manifest) -> Key:
        key = key_of(manifest)
        family = self._families.setdefault(key, Family())
        self._bury(APPLICATIONS, manifest)
        if _is_same(manifest, family.application):
            family.application = None
            self._stalled.discard(key)
        self._tidy(key)
        return key

    def put_pod(self, manifest: Manifest) -> Key | None:
        """Take in a driver pod; returns whose it is, `None` for no news, and for a pod of another kind."""
        key = application_of(manifest)
        if key is None:
            return None
        family, name = self._families.setdefault(key, Family()), manifest["metadata"]["name"]
        is_news = self._is_news(manifest, family.pods.get(name), _slim_pod)
        if is_news:
            family.pods[name] = Packed(_slim_pod(manifest))
        self._tidy(key)
        return key if is_news else None

    def drop_pod(self, manifest: Manifest) -> Key | None:
        """Take in that a driver pod is gone; returns whose it was, or `None` for a pod of another kind."""
        key = application_of(manifest)
        if key is None:
            return None
        family, name = self._families.setdefault(key, Family()), manifest["metadata"]["name"]
        self._bury(PODS, manifest)
        if _is_same(manifest, family.pods.get(name)):
            del family.pods[name]
        self._tidy(key)
        return key

    def _is_news(
        self, manifest: Manifest, known: Packed | None, slim: Callable[[Manifest], Manifest]
    ) -> bool:
        if manifest["metadata"]["uid"] in self._gone:
            return False
        if known is None or (version := version_of(manifest)) > known.version:
            return True
        return version == known.version and slim(manifest) != known.open()

    def _bury(self, kind: Kind, manifest: Manifest) -> None:
        self._gone[manifest["metadata"]["uid"]] = kind
        while len(self._gone) > GONE_KEPT:
            del self._gone[next(iter(self._gone))]

    def _tidy(self, key: Key) -> None:
        family = self._families[key]
        if family.application is None and not family.pods:
            del self._families[key]


def application_of(pod: Manifest) -> Key | None:
    """Return the key of the application whose driver `pod` is."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    if labels.get(ROLE) != DRIVER or APPLICATION not in labels:
        return None
    return Key(metadata["namespace"], labels[APPLICATION])


def _is_same(manifest: Manifest, known: Packed | None) -> bool:
    return known is not None and known.uid == manifest["metadata"]["uid"]


def _without_bookkeeping(manifest: Manifest) -> Manifest:
    """Leave out what others keep there: who wrote which field, and up to 256 KiB of annotations that are not ours."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    if given := metadata.pop("annotations", None):
        metadata["annotations"] = {name: text for name, text in given.items() if name.startswith(OURS)}
    return {**manifest, "metadata": metadata}


def _slim_pod(pod: Manifest) -> Manifest:
    """Keep what `pods` reads, and the identity."""
    slim = _without_bookkeeping(pod)
    return {
        "metadata": slim["metadata"],
        "spec": {"nodeName": node} if (node := pod.get("spec", {}).get("nodeName")) else {},
        "status": pod.get("status", {}),
    }
