"""What the watches of one kind have told, to be compared with what a listing tells.

Once all that a listing has named was heard of, there is nothing that one could not know: only then may anybody
act. Later a version that is listed, and not told by the watch for minutes, shows that the watch is dead, which
nobody else would notice. Pure; `resync.py` does the listing.
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


@dataclass(slots=True)
class Roster:
    """The versions of objects that were heard of, by uid. Times are on one clock, that of the caller."""

    _heard: dict[str, int] = field(default_factory=dict)
    _awaited: dict[str, _Awaited] = field(default_factory=dict)
    """Listed in a version that was not heard of yet."""
    _was_compared: bool = False

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

    def expect(self, listed: Iterable[Metadata], at: float) -> None:
        """A complete listing named these, at `at`: the watch has told of them, or will."""
        versions = {metadata["uid"]: _version(metadata) for metadata in listed}
        self._awaited = {
            uid: self._awaited.get(uid, _Awaited(version, at))
            for uid, version in versions.items()
            if self._heard.get(uid, 0) < version
        }
        self._was_compared = True

    @property
    def is_synced(self) -> bool:
        """Whether all that was listed has been heard of."""
        return self._was_compared and not self._awaited

    def behind(self, now: float) -> float:
        """Return for how long the watch has not told what a listing has, in seconds; from any thread."""
        return max((now - awaited.since for awaited in list(self._awaited.values())), default=0.0)


def _version(metadata: Metadata) -> int:
    """Return the version as a number; those of one kind may be compared (KEP-5504)."""
    return int(metadata["resourceVersion"])
