"""What the watches of one kind have told, to be compared with what a listing tells.

Once all that a listing has named was heard of, there is nothing that one could not know: only then may anybody
act. Later a version that is listed, and not told by the watch for minutes, shows that the watch is dead, which
nobody else would notice. What is listed by itself, a namespace or the whole cluster, is known by itself: one that
cannot be listed keeps none of the others waiting. Pure; `resync.py` does the listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Metadata = Mapping[str, Any]
"""`metadata` of an object."""


@dataclass(frozen=True, slots=True)
class _Awaited:
    version: int
    since: float
    scope: str | None


@dataclass(slots=True)
class Roster:
    """The versions of objects that were heard of, by uid. Times are on one clock, that of the caller."""

    _heard: dict[str, int] = field(default_factory=dict)
    _awaited: dict[str, _Awaited] = field(default_factory=dict)
    """Listed in a version that was not heard of yet."""
    _compared: set[str | None] = field(default_factory=set)
    """Of which there was a listing."""

    def heard(self, metadata: Metadata) -> None:
        """A watch, or its own listing, told of an object."""
        uid, version = metadata["uid"], _version(metadata)
        self._heard[uid] = max(version, self._heard.get(uid, 0))
        if uid in self._awaited and self._awaited[uid].version <= version:
            del self._awaited[uid]

    def gone(self, metadata: Metadata) -> None:
        """An object is gone."""
        self._heard.pop(metadata["uid"], None)
        self._awaited.pop(metadata["uid"], None)

    def expect(self, listed: Iterable[Metadata], at: float, scope: str | None = None) -> None:
        """A complete listing of `scope` named these, at `at`: the watch has told of them, or will."""
        before = self._awaited
        others = {uid: awaited for uid, awaited in before.items() if awaited.scope != scope}
        versions = {metadata["uid"]: _version(metadata) for metadata in listed}
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


def _version(metadata: Metadata) -> int:
    """Return the version as a number; those of one kind may be compared (KEP-5504)."""
    return int(metadata["resourceVersion"])
