"""Which applications name the same checkpoint location.

Two drivers on one checkpoint ruin it for both. The driver itself holds a lock where its file system has one;
an object store has none. What can be seen here is `spark.sql.streaming.checkpointLocation`, of applications
and of drivers that live. The application that was created first has the location; a driver that lives has it
whoever was first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate.adapters.kubernetes.cache import application_of
from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.key import Key, key_of
from headgate.adapters.kubernetes.manifests import CHECKPOINT_PROPERTY
from headgate.adapters.kubernetes.names import LOCATION
from headgate.adapters.kubernetes.pods import is_ended
from headgate.decision.driver import Obstacle, StepReason

Age = tuple[str, str]
"""When an application was created, and its uid: one of two is always older."""


class Claims:
    """The locations that applications and living drivers name."""

    def __init__(self) -> None:
        self._declared: dict[str, dict[Key, Age]] = defaultdict(dict)
        self._location_of: dict[Key, str] = {}
        self._written: dict[str, dict[str, tuple[Key, str]]] = defaultdict(dict)
        """By location and uid of the pod: whose driver it is, and its name."""
        self._written_by: dict[str, str] = {}

    def declare(self, application: Manifest) -> None:
        """Take in an application as it is now."""
        key = key_of(application)
        self.withdraw(key)
        conf: Any = application.get("spec", {}).get("sparkConf") or {}
        if location := located(conf.get(CHECKPOINT_PROPERTY), key.namespace):
            metadata = application["metadata"]
            self._location_of[key] = location
            self._declared[location][key] = (metadata["creationTimestamp"], metadata["uid"])

    def withdraw(self, key: Key) -> None:
        """Take in that an application names no location any more."""
        if (location := self._location_of.pop(key, None)) is not None:
            del self._declared[location][key]
            _drop_if_empty(self._declared, location)

    def observe(self, pod: Manifest) -> None:
        """Take in a driver pod as it is now."""
        if is_ended(pod):
            self.forget(pod)
        else:
            self._note(pod["metadata"]["uid"], pod)

    def forget(self, pod: Manifest) -> None:
        """Take in that a driver pod is gone, or writes no more."""
        self._strike(pod["metadata"]["uid"])

    @contextmanager
    def creating(self, pod: Manifest) -> Iterator[None]:
        """Count `pod` as a driver that lives while it is being created, so that two turns do not create two."""
        mark = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._note(mark, pod)
        try:
            yield
        finally:
            self._strike(mark)

    def _note(self, mark: str, pod: Manifest) -> None:
        metadata, key = pod["metadata"], application_of(pod)
        location = located(metadata.get("annotations", {}).get(LOCATION), metadata["namespace"])
        self._strike(mark)
        if location is not None and key is not None:
            self._written_by[mark] = location
            self._written[location][mark] = (key, metadata["name"])

    def _strike(self, mark: str) -> None:
        if (location := self._written_by.pop(mark, None)) is not None:
            del self._written[location][mark]
            _drop_if_empty(self._written, location)

    def against(self, key: Key, now: float) -> Obstacle | None:
        """Return why `key` must not start a driver: somebody else has its checkpoint location."""
        if (location := self._location_of.get(key)) is None:
            return None
        declared = self._declared[location]
        older = sorted((age, other) for other, age in declared.items() if age < declared[key])
        writers = [(other, pod) for other, pod in self._written.get(location, {}).values() if other != key]
        if writers:
            other, pod = writers[0]
            holder = f"driver {pod} of application {other} writes there; suspend or delete that one"
        elif older:
            holder = f"application {older[0][1]} was created earlier and names it too; delete that one"
        else:
            return None
        message = f"checkpoint location {location}: {holder}, or name another location in sparkConf"
        return Obstacle(reason=StepReason.CHECKPOINT_IN_USE, message=message, since=now, forbids_start=True)


def located(text: str | None, namespace: str) -> str | None:
    """Return a location in the form in which two that are the same are equal.

    A path on a pod's own file system means another place in every namespace, as far as anybody knows.
    """
    if not text:
        return None
    location = re.sub(r"^s3[an]?://", "s3://", text.rstrip("/"))
    scheme, separator, path = location.partition(":/")
    if not separator or scheme in ("file", "local"):
        return f"{namespace}:/{(path if separator else location).lstrip('/')}"
    return location


def _drop_if_empty(index: dict[str, Any], location: str) -> None:
    if not index[location]:
        del index[location]
