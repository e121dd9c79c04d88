"""The name of an application in a cluster: what queues, caches and metrics are keyed by."""

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """One application, or another object that is named by its namespace and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def phase(self) -> float:
        """A number in 0..1 that is always the same for a key, and spreads many of them evenly."""
        return zlib.crc32(str(self).encode()) / 2**32


def key_of(manifest: Mapping[str, Any]) -> Key:
    """Return the key of an object as the API server holds it."""
    metadata = manifest["metadata"]
    return Key(metadata["namespace"], metadata["name"])
