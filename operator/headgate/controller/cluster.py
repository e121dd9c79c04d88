"""Runs the loop for the applications of a cluster, one reconcile of one application at a time.

Watches tell it what there is (`…_seen`, `…_gone`), all of it before the first reconcile: one that did not know of a
living driver would start a second one. A queue above it says whose turn it is. A turn reads from what was seen
alone, decides, and carries out what follows, beginning with the status: that write names the version of the
application that the decision was made on, so that whoever knows less than the cluster does nothing.

What a reconcile has written comes back by the watches. It is known by then from the API server's answer, and worth no
reconcile: without that, a start would be three reconciles.
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection
from contextlib import suppress

import structlog

from headgate.adapters.kubernetes.cache import Cache, application_of, version_of
from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, ApiServer, Manifest
from headgate.adapters.kubernetes.events import Recorder
from headgate.adapters.kubernetes.executor_pods import ExecutorLooks
from headgate.adapters.kubernetes.history import StoreHistory
from headgate.adapters.kubernetes.names import drivers_of
from headgate.adapters.kubernetes.writer import ReleaseApplication
from headgate.adapters.metrics.poller import Measurements
from headgate.api.crd import described
from headgate.api.schema import Schema
from headgate.controller.checkpoint_owners import CheckpointOwners
from headgate.controller.reconciliation import ReconcileOptions, Reconciliation, Sight, Surroundings
from headgate.controller.record import (
    ApplicationRecord,
    Declared,
    RefusedSpec,
    is_overdue,
    is_to_stop,
    minimal_application,
)
from headgate.errors import ApiConflict, ApiNotFound, ApiUnavailable, TransientError
from headgate.key import Key
from headgate.reconcile.loop import Outcome

log = structlog.get_logger("headgate")

PUBLISHED_SECONDS = 5.0
"""How old what is known of the CRD may be when a resource is refused: it may have become newer than this operator."""


class Controller:
    """The loop of every application that is seen."""

    def __init__(  # noqa: PLR0913  clock and chance are set by tests alone
        self,
        cluster: ApiServer,
        measurements: Measurements,
        options: ReconcileOptions,
        recorder: Recorder,
        *,
        decided: Callable[[Key, Outcome], object] = lambda _key, _outcome: None,
        refused: Callable[[Key], object] = lambda _key: None,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._measurements = measurements
        self._clock = clock
        self._jitter = jitter
        self._tell = decided
        self._tell_refused = refused
        self.cache = Cache()
        """What is known of the cluster, for whoever compares it with what is there."""
        self._records: dict[Key, ApplicationRecord] = {}
        self._published: Schema | None = None
        """What the API server knows of a resource, as read last; `None`: it need not have been read."""
        self._published_at = -math.inf
        self._unread: ApiUnavailable | None = None
        """Why that could not be read last; `None`: it was, or is published to nobody."""
        self._reading = asyncio.Lock()
        self.history = StoreHistory()
        """Compares what is read with what was known before."""
        self._around = Surroundings(
            cluster=cluster,
            recorder=recorder,
            options=options,
            owners=CheckpointOwners(),
            executors=ExecutorLooks(cluster),
            seen=self._answered,
            gone=self.pod_gone,
            decided=self._decided,
        )

    def application_seen(self, manifest: Manifest) -> Key | None:
        """Take in an application as it is; returns whose turn it is, or `None` where all of it was known."""
        key = self.cache.put_application(manifest)
        if key is not None:
            self._around.owners.declare(manifest)
        return key

    def application_gone(self, manifest: Manifest) -> Key:
        key = self.cache.drop_application(manifest)
        if self.cache.application(key) is None:
            self._around.owners.withdraw(key)
        return key

    def pod_seen(self, manifest: Manifest) -> Key | None:
        """Take in a pod as it is; returns whose turn it is, or `None`: all was known, or it is no driver."""
        key = self.cache.put_pod(manifest)
        if key is not None:
            self._around.owners.observe(manifest)
        return key

    def pod_gone(self, manifest: Manifest) -> Key | None:
        self._around.owners.forget(manifest)
        return self.cache.drop_pod(manifest)

    def keys(self) -> Collection[Key]:
        return tuple(self.cache.keys())

    def prepare(self, key: Key) -> None:
        """Have the metrics of an application read before its first reconcile."""
        if (manifest := self.cache.application(key)) is not None:
            self._declared(key, manifest, self._record(key, manifest))

    async def reconcile(self, key: Key) -> float | None:
        """Bring one application nearer to what it declares. One reconcile of a key at a time.

        Returns the Unix time at which to look again at the latest, `None` where there is nothing to look at.
        Raises `TransientError` where the reconcile has to be made again, after a pause.
        """
        manifest = self.cache.application(key)
        if manifest is None:
            self._measurements.forget(key)
            self._records.pop(key, None)
            return None
        record = self._record(key, manifest)
        record.is_surprised = False
        if record.leaving_since is None and "deletionTimestamp" in manifest["metadata"]:
            record.leaving_since = self._clock()
        try:
            look_again_at = await self._reconcile(key, manifest, record)
        except (ApiConflict, ApiNotFound):
            record.doubt()
            await self._look(key, manifest)
            raise
        except Exception:
            await self._let_go_in_time(key, record)
            raise
        return self._clock() if record.is_surprised else look_again_at

    async def _reconcile(self, key: Key, manifest: Manifest, record: ApplicationRecord) -> float:
        declared = self._declared(key, manifest, record)
        if isinstance(declared, RefusedSpec):
            await self._read_definition()
            declared = self._declared(key, manifest, record)
            if isinstance(declared, RefusedSpec) and self._unread is not None and not is_to_stop(manifest):
                raise self._unread  # a newer CRD may have filled it in: it is tried again, and nothing is told
        now = self._clock()
        sight = Sight(
            application=manifest,
            pods=self.cache.pods(key),
            metrics=self._measurements.metrics(key),
            unchanged_until=self._measurements.unchanged_until(key),
            obstacle=self._around.owners.against(key, now),
            now=now,
        )
        reconciliation = Reconciliation(self._around, sight, record)
        if not isinstance(declared, RefusedSpec):
            return await reconciliation.reconcile(declared, jitter=self._jitter())
        if not is_to_stop(manifest):
            look_again_at = await reconciliation.refuse(declared)
            if self.cache.has_application(key):
                self._tell_refused(key)
            return look_again_at
        return await reconciliation.reconcile(
            minimal_application(manifest), jitter=self._jitter(), refused=declared
        )

    async def _read_definition(self) -> None:
        """Read what the API server knows of a resource, unless it was read just now: a newer CRD may have filled in
        what is refused. Whoever comes meanwhile waits for the same answer."""
        async with self._reading:
            if abs(self._clock() - self._published_at) < PUBLISHED_SECONDS:
                return
            self._unread = None
            try:
                found = described(await self._around.cluster.describe(APPLICATIONS))
                self._published = self._published if found == self._published else found
            except ApiUnavailable as error:
                self._unread = error
            except TransientError:
                pass  # it is not told to us: as where it has always been the same
            self._published_at = self._clock()

    async def _let_go_in_time(self, key: Key, record: ApplicationRecord) -> None:
        """Let an application go that should have gone by now: a reconcile that fails each time must not keep it.

        Whatever the reconcile would have done first, its status above all, is left out. What is left of a driver goes
        with the application, as everything that it owns.
        """
        manifest = self.cache.application(key)
        if manifest is None or not is_overdue(manifest, record.leaving_since, self._clock()):
            return
        log.error("its reconciles fail, and it should be deleted by now: it is let go", application=str(key))
        with suppress(TransientError):
            await self._around.writer(manifest).carry_out([ReleaseApplication()])

    def _declared(self, key: Key, manifest: Manifest, record: ApplicationRecord) -> Declared:
        """Return what the application declares, and have metrics read for it."""
        declared = record.declared(manifest, self._around.options.drivers, self._published)
        if not isinstance(declared, RefusedSpec) and record.watched != record.mark:
            self._measurements.watch(key, declared)
            record.watched = record.mark
        return declared

    def _record(self, key: Key, manifest: Manifest) -> ApplicationRecord:
        uid = manifest["metadata"]["uid"]
        record = self._records.get(key)
        if record is None or record.uid != uid:
            if record is not None:  # another one of its name is gone
                self._measurements.forget(key)
            record = self._records[key] = ApplicationRecord(uid)
        return record

    def _decided(self, key: Key, outcome: Outcome, again_at: float) -> None:
        """Tell what was decided, unless a watch was quicker to tell that the application is gone: nobody would tell
        that again."""
        if not self.cache.has_application(key):
            return
        self._measurements.reconciled(key, clock_at=outcome.clock_at, again_at=again_at)
        self._tell(key, outcome)

    async def _look(self, key: Key, manifest: Manifest) -> None:
        """Read the application and its drivers anew: a write of ours found something else than we know.

        With the application alone the next reconcile would know of an attempt and not of its pod, and take it for
        gone. So nothing is taken in before both are read, and the pods are read last: one that the status speaks
        of was there before that was written.
        """
        before = {pod["metadata"]["uid"]: pod for pod in self.cache.pods(key)}
        known = {one["metadata"]["uid"]: version_of(one) for one in (manifest, *before.values())}
        found: Manifest | None = None
        with suppress(ApiNotFound):
            found = await self._around.cluster.get(APPLICATIONS, key)
        pods = await self._around.cluster.list(PODS, key.namespace, labels=drivers_of(key.name))
        self.history.compare(pods if found is None else (found, *pods), known)
        if found is None:
            self.application_gone(manifest)
        else:
            self.application_seen(found)
        for pod in pods:
            before.pop(pod["metadata"]["uid"], None)
            self.pod_seen(pod)
        for pod in before.values():
            del pod["metadata"]["resourceVersion"]  # as it was known: it went in a later one
            self.pod_gone(pod)

    def _answered(self, manifest: Manifest) -> None:
        """Take in what the API server answers to a write.

        Between the decision and a write to a pod the kubelet may have reported something. The watch will tell
        nothing that is new then.
        """
        if manifest.get("kind") != "Pod":
            self.application_seen(manifest)
            return
        key, name = application_of(manifest), manifest["metadata"]["name"]
        before = None if key is None else self.cache.pod(key, name)
        if self.pod_seen(manifest) is None or before is None or key is None:
            return
        known = self.cache.pod(key, name)
        if known is not None and (record := self._records.get(key)) is not None:
            record.is_surprised |= _reported(known) != _reported(before)


def _reported(pod: Manifest) -> tuple[object, object]:
    """Return what others than we write about a pod."""
    return pod["status"], pod["metadata"].get("deletionTimestamp")
