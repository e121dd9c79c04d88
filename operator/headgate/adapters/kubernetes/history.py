"""Whether the API server still tells the story that it has told so far.

A read of the API server is never older than what it has answered or told before it was asked. Where one is, or shows
an object that was gone, the server's store was put back to what it was before: etcd was restored from a backup. What
is known of the cluster may then be of a world that never was, and no rule by which the newest version wins leads out
of that. So whoever finds it out says so, and the process begins anew with what is there.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from headgate.adapters.kubernetes.cache import version_of


class StoreWasPutBack(Exception):  # noqa: N818  what happened; the process is as it should be
    """The API server's store is in a state from before what it has told."""


@dataclass(slots=True)
class StoreHistory:
    """Compares what is read with what was known before."""

    contradiction: str | None = None
    """What was read that cannot be so, if anything was."""
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def compare(
        self,
        read: Iterable[Mapping[str, Any]],
        versions: Mapping[str, int],
        gone: frozenset[str] = frozenset(),
    ) -> None:
        """Take in objects, of which the metadata is enough, by what was known before they were asked for.

        That is by uid the resource versions, and what cannot come back; a pod that was listed by its labels can, with
        the labels.
        """
        for one in read:
            metadata = one["metadata"]
            name = metadata.get("name", f"the object of uid {metadata['uid']}")  # a listing may leave it out
            if metadata["uid"] in gone:
                self._put_back(f"{name} was gone and is there again")
            elif (version := versions.get(metadata["uid"], 0)) > version_of(one):
                self._put_back(f"{name} was in version {version} and is in version {version_of(one)} again")

    async def until_put_back(self) -> NoReturn:
        """Wait until a read contradicts what was told before; raises `StoreWasPutBack`."""
        await self._told.wait()
        raise StoreWasPutBack(
            f"the API server's store was put back to an earlier state: {self.contradiction}; this process starts "
            "anew with what is there now"
        )

    def _put_back(self, contradiction: str) -> None:
        if self.contradiction is None:
            self.contradiction = contradiction
            self._told.set()
