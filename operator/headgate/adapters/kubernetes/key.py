"""The name of an application in a cluster: what queues, caches and metrics are keyed by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """One application, or another object that is named by its namespace and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key_of(manifest: Mapping[str, Any]) -> Key:
    """Return the key of an object as the API server holds it."""
    metadata = manifest["metadata"]
    return Key(metadata["namespace"], metadata["name"])
