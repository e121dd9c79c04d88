"""Compares what was heard with what is there: at the start until it is all known, and now and then afterwards.

After a watch was away, Kopf lists and takes in what is there; of what has gone meanwhile nobody tells. Listing finds
it: what was known before the listing began, and is not in it, is gone. Only who it is and its version are listed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Kind, Manifest
from headgate.adapters.kubernetes.key import Key
from headgate.adapters.kubernetes.names import DRIVER_SELECTOR
from headgate.errors import TransientError
from headgate.handlers.watches import Watches

log = structlog.get_logger("headgate.resync")

SELECTORS: Mapping[Kind, str | None] = {APPLICATIONS: None, PODS: DRIVER_SELECTOR}
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Between listings while not everything has been heard of: something may have gone in between."""
LISTING = 0.2
"""Part of the time that goes into listing, at most: of ten thousand applications one keeps the API server, and us,
for a second or two, in which the watches are not listened to. Until all was heard of it rests after a listing, which
tells what is waited for; from then on within it, since nobody waits for its end."""
LONGEST_REST = 20.0
"""After a listing that took long, since it may have been the API server that did."""


class Listing(Protocol):
    """The call that is needed of the API server; `Cluster` has it."""

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        metadata_only: bool = False,
        rest: float = 0.0,
    ) -> list[Manifest]:
        """Return all objects of a namespace, or of all; between two pages it rests for `rest` times as long."""


class Remembered(Protocol):
    """An object that is known."""

    def open(self) -> Manifest:
        """Return it, or as much of it as tells which it is."""


class Known(Protocol):
    """What is known of the cluster, own writes included."""

    def keys(self) -> Collection[Key]:
        """Return the keys of all applications, also of those of which only pods are left."""

    def objects(self, kind: Kind) -> Mapping[str, Remembered]:
        """Return all objects of a kind, by uid."""


class Missed(Protocol):
    """Told of what the watches have missed."""

    def missed(self, resource: str) -> None:
        """An object is gone, and no watch has said so."""


@dataclass(slots=True)
class Resync:
    """Lists, compares and mends, until it is cancelled."""

    listing: Listing
    known: Known
    watches: Watches
    metrics: Missed
    seconds: float
    namespaces: Sequence[str] = ()
    """Empty: all of them."""
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once everything that is there has been heard of."""

    async def run(self) -> None:
        """Compare again and again."""
        pause = FIRST_PAUSE
        while True:
            started = time.monotonic()
            await self.compare()
            took = time.monotonic() - started
            if self.synced.is_set():
                await asyncio.sleep(self.seconds)
            else:
                await self._until_synced(max(pause, min(took / LISTING - took, LONGEST_REST)))
                pause = min(2 * pause, LONGEST_PAUSE)

    async def compare(self) -> None:
        """Compare once. A listing that fails says nothing, and is tried again next time."""
        try:
            for kind in SELECTORS:
                await self._compare(kind)
        except TransientError as error:
            log.warning(f"cannot compare with what is there: {error}")

    async def _compare(self, kind: Kind) -> None:
        before = self.known.objects(kind)
        rest = 1 / LISTING - 1 if self.synced.is_set() else 0.0
        listed = [
            item["metadata"]
            for namespace in self.namespaces or (None,)
            for item in await self.listing.list(
                kind, namespace, labels=SELECTORS[kind], metadata_only=True, rest=rest
            )
        ]
        present = {metadata["uid"] for metadata in listed}
        for uid in (before.keys() & self.known.objects(kind).keys()) - present:
            vanished = before[uid].open()
            self.metrics.missed(kind.plural)
            log.warning(
                f"a {kind.plural[:-1]} is gone, and no watch has said so", object=vanished["metadata"]["name"]
            )
            self.watches.vanished(kind, vanished)
        self.watches.rosters[kind].expect(listed, time.monotonic())

    async def _until_synced(self, seconds: float) -> None:
        """Wait for the watches to tell what was listed, and not for long."""
        end = time.monotonic() + seconds
        while not self.watches.are_synced and time.monotonic() < end:
            await asyncio.sleep(FIRST_PAUSE / 4)
        if self.watches.are_synced:
            count = len(self.known.keys())
            log.info("everything that is there has been heard of", applications=count)
            self.synced.set()
