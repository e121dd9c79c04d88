"""Which applications of a namespace name the same checkpoint location.

Two drivers on one checkpoint ruin it for both. The drivers keep each other off, by a lock on a volume and a fence on
every store, but only once both run. Here the second is not even started: the application that was created first has
the location, and a driver that lives has it whoever was first. What can be seen is what `checkpoint_locations` tells.

Ownership holds within its namespace and no further: whoever may write in one namespace could keep the applications of
all others from starting with nothing but a string, and learn from the answer what they are called. And a pod counts
only where an application controls it by its owner reference: one whose owner was never there is taken away by the
garbage collector of Kubernetes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from headgate.adapters.kubernetes.checkpoint_locations import checkpoint_locations
from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import LOCATIONS
from headgate.adapters.kubernetes.pods import is_ended
from headgate.api.application import GROUP, KIND
from headgate.decision.driver import Obstacle, StepReason
from headgate.key import Key, key_of

MOST_LOCATIONS = 32
"""Of a pod: a resource has no more queries. In its annotation others may write a hundred thousand."""

Age = tuple[str, str]
"""When an application was created, and its uid: one of two is always older."""


class CheckpointLocation(NamedTuple):
    """A checkpoint location, as applications of one namespace know it."""

    namespace: str
    path: str


class CheckpointWriter(NamedTuple):
    """A driver that may write."""

    application: Key
    pod: str


class CheckpointOwners:
    """The locations that applications and living drivers name."""

    def __init__(self) -> None:
        self._declared: dict[CheckpointLocation, dict[Key, Age]] = defaultdict(dict)
        self._locations_of: dict[Key, tuple[CheckpointLocation, ...]] = {}
        self._written: dict[CheckpointLocation, dict[str, CheckpointWriter]] = defaultdict(dict)
        """By uid of the pod."""
        self._written_by: dict[str, tuple[CheckpointLocation, ...]] = {}

    def declare(self, application: Manifest) -> None:
        key = key_of(application)
        self.withdraw(key)
        if locations := tuple(
            CheckpointLocation(key.namespace, path) for path in _declared_locations(application)
        ):
            metadata = application["metadata"]
            self._locations_of[key] = locations
            for location in locations:
                self._declared[location][key] = (metadata["creationTimestamp"], metadata["uid"])

    def withdraw(self, key: Key) -> None:
        """Take in that an application names no location any more."""
        for location in self._locations_of.pop(key, ()):
            del self._declared[location][key]
            _drop_if_empty(self._declared, location)

    def observe(self, pod: Manifest) -> None:
        if is_ended(pod):
            self.forget(pod)
        else:
            self._note(pod["metadata"]["uid"], pod)

    def forget(self, pod: Manifest) -> None:
        """Take in that a driver pod is gone, or writes no more."""
        self._strike(pod["metadata"]["uid"])

    @contextmanager
    def creating(self, pod: Manifest) -> Iterator[None]:
        """Count `pod` as a driver that lives while it is being created, so that two reconciles do not create two."""
        mark = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._note(mark, pod)
        try:
            yield
        finally:
            self._strike(mark)

    def _note(self, mark: str, pod: Manifest) -> None:
        metadata, application = pod["metadata"], _controller(pod)
        self._strike(mark)
        if application is None:
            return
        named = (metadata.get("annotations") or {}).get(LOCATIONS, "").splitlines()
        locations = tuple(CheckpointLocation(metadata["namespace"], path) for path in named[:MOST_LOCATIONS])
        self._written_by[mark] = locations
        for location in locations:
            self._written[location][mark] = CheckpointWriter(application, metadata["name"])

    def _strike(self, mark: str) -> None:
        for location in self._written_by.pop(mark, ()):
            self._written[location].pop(mark, None)
            _drop_if_empty(self._written, location)

    def against(self, key: Key, now: float) -> Obstacle | None:
        """Return why `key` must not start a driver: somebody else has one of its checkpoint locations."""
        for location in self._locations_of.get(key, ()):
            if (holder := self._holder(key, location)) is not None:
                message = (
                    f"checkpoint location {location.path}: {holder}, or name another location in sparkConf; leave "
                    "it out there if the job names its own"
                )
                return Obstacle(
                    reason=StepReason.CHECKPOINT_IN_USE, message=message, since=now, forbids_start=True
                )
        return None

    def _holder(self, key: Key, location: CheckpointLocation) -> str | None:
        """Return who has the location instead of `key`, and what to do about it."""
        declared = self._declared[location]
        older = sorted((age, other) for other, age in declared.items() if age < declared[key])
        writers = [one for one in self._written.get(location, {}).values() if one.application != key]
        if writers:
            application, pod = writers[0]
            return f"driver {pod} of application {application} writes there; suspend or delete that one"
        if older:
            return f"application {older[0][1]} was created earlier and names it too; delete that one"
        return None


def _declared_locations(application: Manifest) -> tuple[str, ...]:
    """Return what an application names; none where that is not as it should be, which is told elsewhere."""
    spec: Any = application.get("spec")
    conf = spec.get("sparkConf") if isinstance(spec, Mapping) else None
    if not isinstance(conf, Mapping):
        return ()
    texts = {name: value for name, value in conf.items() if isinstance(value, str)}
    listed = spec.get("queries")
    queries = listed if isinstance(listed, list) else ()
    names = [
        query["name"]
        for query in queries
        if isinstance(query, Mapping) and isinstance(query.get("name"), str)
    ]
    return checkpoint_locations(texts, names)


def _controller(pod: Manifest) -> Key | None:
    metadata = pod["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        is_ours = owner["kind"] == KIND and owner["apiVersion"].partition("/")[0] == GROUP
        if is_ours and owner.get("controller"):
            return Key(metadata["namespace"], owner["name"])
    return None


def _drop_if_empty(index: dict[CheckpointLocation, Any], location: CheckpointLocation) -> None:
    if not index[location]:
        del index[location]
