"""Compares what was heard with what is there: at the start until it is all known, and now and then afterwards.

After a watch was away, Kopf lists and takes in what is there; of what has gone meanwhile nobody tells. Listing finds
it: what was known before the listing began, and is not in it, is gone. Only who it is and its version are listed.
What is listed in an earlier version than was known before tells that the API server's store was put back.

Each namespace is compared by itself, and its rights are looked at before: what is lacking in one says nothing of the
others. One that is not served, or not known yet, is looked at again every few seconds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from headgate.adapters.kubernetes.cache import Cache
from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, ApiServer, Kind
from headgate.adapters.kubernetes.history import StoreHistory
from headgate.adapters.kubernetes.names import DRIVER_SELECTOR
from headgate.errors import ApiRefused, TransientError
from headgate.handlers.namespaces import Barrier, Namespaces, Scope, named
from headgate.handlers.watches import Watches
from headgate.metrics import OperatorMetrics

log = structlog.get_logger("headgate.resync")

SELECTORS: Mapping[Kind, str | None] = {APPLICATIONS: None, PODS: DRIVER_SELECTOR}
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between listings while not everything has been heard of: something may have gone in between."""
LISTING = 0.2
"""Part of the time that goes into listing, at most: of ten thousand applications one keeps the API server, and us,
for a second or two, in which the watches are not listened to. Until all was heard of it rests after a listing, which
tells what is waited for; from then on within it, since nobody waits for its end."""
AGAIN_SECONDS = 10.0
"""Seconds between two looks at a namespace that is not served, or not known yet, while others are."""
LONGEST_REST = 20.0
"""After a listing that took long, since it may have been the API server that did."""


@dataclass(slots=True)
class Resync:
    """Lists, compares and mends, until it is cancelled."""

    listing: ApiServer
    known: Cache
    watches: Watches
    metrics: OperatorMetrics
    seconds: float
    barrier: Barrier
    """Opened for each namespace once all that is there has been heard of."""
    missing: Callable[[Scope], Awaitable[str]]
    """Returns which rights to a namespace are missing; empty: none."""
    history: StoreHistory = field(default_factory=StoreHistory)
    """Compares what is listed with what was known before."""
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once everything that is there has been heard of, in all namespaces that are served."""

    @property
    def namespaces(self) -> Namespaces:
        return self.barrier.namespaces

    async def run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            started = time.monotonic()
            await self.compare(self.namespaces.scopes)
            took = time.monotonic() - started
            if self.synced.is_set():
                await self._rest(self.seconds)
            else:
                await self._until_synced(max(pause, min(took / LISTING - took, LONGEST_REST)))
                pause = min(2 * pause, LONGEST_PAUSE)

    async def compare(self, scopes: Sequence[Scope]) -> None:
        """Compare each of them once. A listing that fails says nothing, and is tried again later.

        A server that refuses says so of that namespace. One that does not answer says it of a namespace only where
        it answers for another one.
        """
        failures: dict[Scope, TransientError] = {}
        for scope in scopes:
            try:
                if missing := await self.missing(scope):
                    self._lacks(scope, missing)
                    continue
                for kind in SELECTORS:
                    await self._compare(kind, scope)
                self.namespaces.has_all(scope)
            except ApiRefused as error:
                self._lacks(scope, str(error))
            except TransientError as error:
                failures[scope] = error
        for scope, failure in failures.items():
            if len(failures) < len(scopes):
                self._lacks(scope, str(failure))
            else:
                log.warning(f"cannot compare with what is there in {named(scope)}: {failure}")

    def _lacks(self, scope: Scope, why: str) -> None:
        self.namespaces.lacks(scope, why)
        for known in self.watches.versions.values():
            known.expect_nothing(scope)

    async def _rest(self, seconds: float) -> None:
        """Wait for the next comparison of all; those that are not served, or not known yet, wait for less."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, AGAIN_SECONDS) if self._outstanding() else left)
            self._open()
            if time.monotonic() < end and (outstanding := self._outstanding()):
                await self.compare(outstanding)

    def _outstanding(self) -> list[Scope]:
        return [
            scope
            for scope in self.namespaces.scopes
            if not (self.namespaces.is_served(scope) and self.barrier.is_open(scope))
        ]

    def _open(self) -> None:
        """Open the barrier to each namespace of which everything has been heard by now."""
        for scope in self.namespaces.scopes:
            if not self.barrier.is_open(scope) and self.watches.are_synced(scope):
                self.barrier.open(scope)

    async def _compare(self, kind: Kind, scope: Scope) -> None:
        before = self.known.objects(kind, scope)
        gone = self.known.gone(kind) if kind == APPLICATIONS else frozenset()
        then = {uid: known.version for uid, known in before.items()}
        rest = 1 / LISTING - 1 if self.synced.is_set() else 0.0
        items = await self.listing.list(kind, scope, labels=SELECTORS[kind], metadata_only=True, rest=rest)
        self.history.compare(items, then, gone)
        listed = [item["metadata"] for item in items]
        present = {metadata["uid"] for metadata in listed}
        for uid in (before.keys() & self.known.objects(kind, scope).keys()) - present:
            vanished = before[uid].open()
            del vanished["metadata"]["resourceVersion"]  # as it was known: it went in a later one
            self.metrics.missed.labels(kind.plural).inc()
            log.warning(
                f"a {kind.plural[:-1]} is gone, and no watch has said so", object=vanished["metadata"]["name"]
            )
            self.watches.vanished(kind, vanished)
        # The listing is of the moment of its first page: of what has gone since then no watch will tell again.
        gone_since = self.known.gone(kind)
        awaited = [metadata for metadata in listed if metadata["uid"] not in gone_since]
        self.watches.versions[kind].expect(awaited, time.monotonic(), scope)

    async def _until_synced(self, seconds: float) -> None:
        """Wait for the watches to tell what was listed, and not for long."""
        end = time.monotonic() + seconds
        while not (is_synced := self._is_synced()) and time.monotonic() < end:
            await asyncio.sleep(FIRST_PAUSE / 4)
        if is_synced:
            self._open()
            count = len(self.known.keys())
            log.info("everything that is there has been heard of", applications=count)
            self.synced.set()

    def _is_synced(self) -> bool:
        """Whether there is a namespace that is served, and everything has been heard of in all that are."""
        served = [scope for scope in self.namespaces.scopes if self.namespaces.is_served(scope)]
        return bool(served) and all(self.watches.are_synced(scope) for scope in served)
