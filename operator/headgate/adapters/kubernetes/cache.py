"""What is known of the cluster: fed by watches and by the answers to our own writes.

Both come in any order, so the object with the newest resource version wins, and an object that is gone stays
gone: an old event must not bring it back. A pod that a watch has told to be gone may only have lost the labels that
it is found by, and is there again in a later version. Of one version with two contents the later one holds: a store
that was put back gives a version again, and a newer CRD other defaults. What nobody reads of an object is left out,
and the rest is packed, since a large cluster has ten thousand of each.
"""

import math
from collections.abc import Callable, Collection, Mapping
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


Slot = tuple[Kind, str]
"""What an object is and its name, within the family of an application and its driver pods."""


class Cache:
    """Applications and their driver pods, by the key of the application."""

    def __init__(self) -> None:
        self._families: dict[Key, dict[Slot, Packed]] = {}
        self._stalled: set[Key] = set()
        """Those of them that wait for a person."""
        self._gone: dict[str, tuple[Kind, float]] = {}
        """By uid, the oldest first, with the version in which it went; one that is gone for good has no last one."""

    def keys(self) -> Collection[Key]:
        """Return the keys of the applications that are there, or of which a pod is."""
        return self._families.keys()

    def application(self, key: Key) -> Manifest | None:
        """Return the application, without what nobody reads."""
        found = self._families.get(key, {}).get((APPLICATIONS, key.name))
        return None if found is None else found.open()

    def has_application(self, key: Key) -> bool:
        """Return whether the application is there, or one of its name."""
        return (APPLICATIONS, key.name) in self._families.get(key, {})

    def pods(self, key: Key) -> tuple[Manifest, ...]:
        """Return the driver pods of the application, without what nobody reads."""
        family = list(self._families.get(key, {}).items())  # a poller asks from a thread of its own
        return tuple(packed.open() for (kind, _), packed in family if kind == PODS)

    def pod(self, key: Key, name: str) -> Manifest | None:
        found = self._families.get(key, {}).get((PODS, name))
        return None if found is None else found.open()

    def objects(self, kind: Kind, namespace: str | None = None) -> dict[str, Packed]:
        """Return all applications, or all pods, of a namespace or of all of them, by uid."""
        families = [family for key, family in self._families.items() if namespace in (None, key.namespace)]
        found = (packed for family in families for (of, _), packed in family.items() if of == kind)
        return {one.uid: one for one in found}

    def gone(self, kind: Kind) -> frozenset[str]:
        """Return the uids of the applications, or of the pods, that are known to be gone."""
        return frozenset(uid for uid, (of, _) in self._gone.items() if of == kind)

    def stalled(self) -> int:
        """Return how many applications wait for a person, by their condition `Stalled`; from any thread."""
        return len(self._stalled)

    def put_application(self, manifest: Manifest) -> Key | None:
        """Take in an application, as a watch or an answer shows it; returns its key, `None` if that is no news."""
        key = key_of(manifest)
        if not self._put(key, APPLICATIONS, manifest, _without_bookkeeping):
            return None
        conditions = (manifest.get("status") or {}).get("conditions", ())
        is_stalled = any(one["type"] == "Stalled" and one["status"] == "True" for one in conditions)
        (self._stalled.add if is_stalled else self._stalled.discard)(key)
        return key

    def drop_application(self, manifest: Manifest) -> Key:
        key = key_of(manifest)
        if self._drop(key, APPLICATIONS, manifest):
            self._stalled.discard(key)
        return key

    def put_pod(self, manifest: Manifest) -> Key | None:
        """Take in a driver pod; returns whose it is, `None` for no news, and for a pod of another kind."""
        key = application_of(manifest)
        return key if key is not None and self._put(key, PODS, manifest, _slim_pod) else None

    def drop_pod(self, manifest: Manifest) -> Key | None:
        """Take in that a driver pod is gone; returns whose it was, or `None` for a pod of another kind.

        One without a resource version is gone for good.
        """
        key = application_of(manifest)
        if key is not None:
            self._drop(key, PODS, manifest)
        return key

    def _put(self, key: Key, kind: Kind, manifest: Manifest, slim: Callable[[Manifest], Manifest]) -> bool:
        """Keep an object, without what nobody reads, if it is news; returns whether it is."""
        metadata, version = manifest["metadata"], version_of(manifest)
        slot, uid = (kind, metadata["name"]), metadata["uid"]
        known = self._families.get(key, {}).get(slot)
        is_old = known is not None and version < known.version
        if is_old or (uid in self._gone and version <= self._gone[uid][1]):
            return False
        if known is not None and version == known.version and slim(manifest) == known.open():
            return False
        self._gone.pop(uid, None)
        self._families.setdefault(key, {})[slot] = Packed(slim(manifest))
        return True

    def _drop(self, key: Key, kind: Kind, manifest: Manifest) -> bool:
        """Take in that an object is gone, and its uid with it for good; returns whether it was known."""
        uid, slot = manifest["metadata"]["uid"], (kind, manifest["metadata"]["name"])
        is_for_good = kind == APPLICATIONS or "resourceVersion" not in manifest["metadata"]
        self._gone[uid] = kind, math.inf if is_for_good else version_of(manifest)
        while len(self._gone) > GONE_KEPT:
            del self._gone[next(iter(self._gone))]
        family = self._families.get(key, {})
        if slot not in family or family[slot].uid != uid:
            return False
        del family[slot]
        if not family:
            del self._families[key]
        return True


def application_of(pod: Manifest) -> Key | None:
    """Return the key of the application whose driver `pod` is."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    if labels.get(ROLE) != DRIVER or APPLICATION not in labels:
        return None
    return Key(metadata["namespace"], labels[APPLICATION])


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
