"""Turns the loop for the applications of a cluster, one turn of one application at a time.

Watches tell it what there is (`…_seen`, `…_gone`), all of it before the first turn: one that did not know of a
living driver would start a second one. A queue above it says whose turn it is. A turn reads from
what was seen alone, decides, and carries out what follows, beginning with the status: that write names the
version of the application that the decision was made on, so that whoever knows less than the cluster does
nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from headgate.adapters.kubernetes.cache import Cache
from headgate.adapters.kubernetes.claims import Claims
from headgate.adapters.kubernetes.client import APPLICATIONS, Cluster, Manifest
from headgate.adapters.kubernetes.events import EventRecorder
from headgate.adapters.kubernetes.key import Key
from headgate.adapters.kubernetes.record import Record, RefusedSpec, stand_in
from headgate.adapters.kubernetes.turn import Options, Sight, Surroundings, Turn
from headgate.api.application import SparkApplication
from headgate.errors import ApiConflict, ApiNotFound
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Metrics


class Measurements(Protocol):
    """Reads the metrics of all applications."""

    def watch(self, key: Key, application: SparkApplication) -> None:
        """Read what this application asks for, from now on."""

    def forget(self, key: Key) -> None:
        """Read nothing more of this application."""

    def metrics(self, key: Key) -> Metrics:
        """Return the port that answers from what was read last."""


class Controller:
    """The loop of every application that is seen."""

    def __init__(  # noqa: PLR0913  clock and chance are set by tests alone
        self,
        cluster: Cluster,
        measurements: Measurements,
        options: Options | None = None,
        *,
        decided: Callable[[Key, Outcome], object] = lambda _key, _outcome: None,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        options = options or Options()
        self._cluster = cluster
        self._measurements = measurements
        self._drivers = options.drivers
        self._clock = clock
        self._jitter = jitter
        self._cache = Cache()
        self._claims = Claims()
        self._records: dict[Key, Record] = {}
        self._around = Surroundings(
            cluster=cluster,
            recorder=EventRecorder(cluster, options.identity),
            options=options,
            claims=self._claims,
            seen=self._answered,
            gone=self.pod_gone,
            decided=decided,
        )

    @property
    def cache(self) -> Cache:
        """What is known of the cluster, for whoever compares it with what is there."""
        return self._cache

    def application_seen(self, manifest: Manifest) -> Key:
        """Take in an application that is new or has changed; returns whose turn it is."""
        key = self._cache.put_application(manifest)
        if (known := self._cache.application(key)) is not None:
            self._claims.declare(known)
        return key

    def application_gone(self, manifest: Manifest) -> Key:
        """Take in that an application is not there any more."""
        key = self._cache.drop_application(manifest)
        if self._cache.application(key) is None:
            self._claims.withdraw(key)
        return key

    def pod_seen(self, manifest: Manifest) -> Key | None:
        """Take in a driver pod; returns whose turn it is, or `None` for a pod of another kind."""
        key = self._cache.put_pod(manifest)
        if key is not None and (known := self._cache.pod(key, manifest["metadata"]["name"])) is not None:
            self._claims.observe(known)
        return key

    def pod_gone(self, manifest: Manifest) -> Key | None:
        """Take in that a driver pod is not there any more."""
        self._claims.forget(manifest)
        return self._cache.drop_pod(manifest)

    def keys(self) -> Collection[Key]:
        """Return the keys of all that is known."""
        return tuple(self._cache.keys())

    async def turn(self, key: Key) -> float | None:
        """Bring one application nearer to what it declares. One turn of a key at a time.

        Returns the Unix time at which to look again at the latest, `None` where there is nothing to look at.
        Raises `TransientError` where the turn has to be made again, after a pause.
        """
        manifest = self._cache.application(key)
        if manifest is None:
            self._measurements.forget(key)
            self._records.pop(key, None)
            return None
        record = self._record(key, manifest)
        try:
            return await self._turn(key, manifest, record)
        except (ApiConflict, ApiNotFound):
            record.doubt()
            await self._look(key, manifest)
            raise

    async def _turn(self, key: Key, manifest: Manifest, record: Record) -> float:
        now = self._clock()
        sight = Sight(
            application=manifest,
            pods=self._cache.pods(key),
            metrics=self._measurements.metrics(key),
            obstacle=self._claims.against(key, now),
            now=now,
        )
        turn = Turn(self._around, sight, record)
        declared = record.declared(manifest, self._drivers)
        if isinstance(declared, RefusedSpec):
            if "deletionTimestamp" not in manifest["metadata"]:
                return await turn.refuse(declared)
            declared = stand_in(manifest)
        if record.watched is not declared:
            self._measurements.watch(key, declared)
            record.watched = declared
        return await turn.reconcile(declared, jitter=self._jitter())

    def _record(self, key: Key, manifest: Manifest) -> Record:
        uid = manifest["metadata"]["uid"]
        record = self._records.get(key)
        if record is None or record.uid != uid:
            record = self._records[key] = Record(uid)
        return record

    async def _look(self, key: Key, manifest: Manifest) -> None:
        """Read the application anew: a write of ours found another one than we know."""
        with suppress(ApiNotFound):
            self.application_seen(await self._cluster.get(APPLICATIONS, key))
            return
        self.application_gone(manifest)

    def _answered(self, manifest: Manifest) -> None:
        if manifest.get("kind") == "Pod":
            self.pod_seen(manifest)
        else:
            self.application_seen(manifest)
