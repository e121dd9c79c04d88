"""One reconcile for one application of a cluster: decide, then carry out, then remember.

What is remembered in the process follows what was written: where the status could not be written, the reconcile has
not happened; where it could, and something after it failed, the next reconcile finds that undone and does it.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import structlog

from headgate.adapters.kubernetes.client import ApiServer, Manifest
from headgate.adapters.kubernetes.events import Recorder
from headgate.adapters.kubernetes.executor_pods import ExecutorLooks
from headgate.adapters.kubernetes.manifests import Owner
from headgate.adapters.kubernetes.ports import ApplicationObject, PendingWrites, PodDrivers
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.adapters.kubernetes.refusals import PredecessorRemains, Trouble, start_trouble, telling_trouble
from headgate.adapters.kubernetes.writer import (
    FRESH_SECONDS,
    CreateDriver,
    PublishControl,
    Writer,
    WriteStatus,
)
from headgate.api.application import SparkApplication
from headgate.api.status import SparkApplicationStatus
from headgate.controller.checkpoint_owners import CheckpointOwners
from headgate.controller.record import ApplicationRecord, RefusedSpec, digest_of
from headgate.decision.driver import Obstacle, State
from headgate.errors import ApiRefused, ApiUnavailable, TransientError
from headgate.key import Key, key_of
from headgate.reconcile.events import edit
from headgate.reconcile.executors import is_short
from headgate.reconcile.loop import Outcome, recall, reconcile
from headgate.reconcile.memory import Kept, LoopMemory
from headgate.reconcile.ports import Event, Metrics, Ports, WritePolicy
from headgate.reconcile.report import next_write_at, taken_over
from headgate.reconcile.status import INVALID_SPEC, refused_status, with_end

log = structlog.get_logger("headgate")

CLUSTER_WRITE_POLICY = WritePolicy(
    numbers_seconds=30.0, small_changes_seconds=1800.0, flapping_seconds=600.0, dwell_share=0.5
)
"""At most six writes an hour for an application to which nothing happens but what comes and goes."""

IN_MOTION = frozenset({State.PENDING, State.STARTING, State.STOPPING})
IN_MOTION_SECONDS = 30.0
"""How long a driver that starts, stops or waits for executors is left without a look, if nothing is heard of it."""

AT_REST_SECONDS = 1800.0
"""How long one that does neither is, on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOptions:
    """What the operator's settings say about its reconciles."""

    drivers: DriverDefaults = field(default_factory=DriverDefaults)
    write_policy: WritePolicy = CLUSTER_WRITE_POLICY
    fresh_seconds: float = FRESH_SECONDS
    """How old a decision may be when it is carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all reconciles share."""

    cluster: ApiServer
    recorder: Recorder
    options: ReconcileOptions
    owners: CheckpointOwners
    executors: ExecutorLooks
    seen: Callable[[Manifest], object]
    """Told of each object that the API server answers with."""
    gone: Callable[[Manifest], object]
    """Told of each pod that turns out to be gone."""
    decided: Callable[[Key, Outcome, float], object]
    """Told of each reconcile that was carried out, and of the Unix time at which the next one comes at the latest."""

    def writer(self, application: Manifest) -> Writer:
        fresh_seconds = self.options.fresh_seconds
        return Writer(self.cluster, application, seen=self.seen, gone=self.gone, fresh_seconds=fresh_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a reconcile is decided on."""

    application: Manifest
    pods: Sequence[Manifest]
    metrics: Metrics
    unchanged_until: float | None
    """Unix time until which each look found what the reconcile before had read; `None`: nobody has looked."""
    obstacle: Obstacle | None
    """What keeps a driver from being started, if it is known already."""
    now: float


class Reconciliation:
    """One reconcile."""

    def __init__(self, around: Surroundings, sight: Sight, record: ApplicationRecord) -> None:
        self._around = around
        self._sight = sight
        self._record = record
        self._owner = Owner(key=key_of(sight.application), uid=record.uid)
        self._pending = pending = PendingWrites()
        self._writer = around.writer(sight.application)
        drivers = PodDrivers(
            self._owner,
            sight.pods,
            pending,
            defaults=around.options.drivers,
            obstacle=sight.obstacle or _obstacle(record.refusal, sight.now),
            untold=_obstacle(record.untold, sight.now),
        )
        if drivers.living is None:
            pending.document = record.staged
        self._application = ApplicationObject(sight.application, pending)
        self._holds = drivers.living is not None and self._application.deletion_asked_at() is None
        """Whether the application must be held: its driver lives. Whoever replaces the object takes that off."""
        self._ports = Ports(
            drivers=drivers,
            metrics=sight.metrics,
            controls=drivers,
            store=self._application,
            reports=self._application,
            finalizer=self._application,
            executors=record.executors,
            write_policy=replace(around.options.write_policy, phase=self._owner.key.phase),
        )

    async def reconcile(
        self, application: SparkApplication, *, jitter: float, refused: RefusedSpec | None = None
    ) -> float:
        """Run the loop; returns the Unix time at which to look again at the latest.

        `refused` is why `application` only stands in for what is declared.
        """
        now, memory = self._sight.now, self._memory()
        if is_short(memory, now):
            await self._around.executors.refresh(self._record.executors, self._owner.key, now)
        told = None
        if refused is None:
            told = edit(self._record.acted_on(application), application, memory.status, now)
            memory = _having_refused(memory, None)
        elif _is_news(refused, memory, application.metadata.generation):
            told = Event(at=now, reason=INVALID_SPEC, message=refused.message, is_warning=True)
            memory = _having_refused(memory, refused)
        if told is not None:
            self._ports.reports.tell(told)
        outcome = reconcile(application, self._ports, memory, now, jitter=jitter)
        await self._carry_out(outcome.memory, application)
        again_at = self._look_again_at(outcome)
        self._around.decided(self._owner.key, outcome, again_at)
        return again_at

    async def refuse(self, spec: RefusedSpec) -> float:
        """Say that the resource cannot be acted on, and what becomes of its driver meanwhile; do nothing else."""
        now, memory = self._sight.now, self._memory()
        driver, history = self._ports.drivers.observe(now), memory.kept.history
        status = refused_status(
            memory.status,
            spec.message,
            driver=driver,
            history=history,
            generation=self._sight.application["metadata"]["generation"],
            now=now,
        )
        if _sentences(status) != _sentences(memory.status):
            message = with_end(spec.message, driver, history, now)
            log.warning(f"the spec is refused: {message}", application=str(self._owner.key))
            self._ports.reports.tell(Event(at=now, reason=INVALID_SPEC, message=message, is_warning=True))
        if status != memory.status:
            self._ports.reports.write(status)
        await self._carry_out(replace(_having_refused(memory, spec), status=status))
        return self._ports.write_policy.again_at(now, AT_REST_SECONDS)

    def _memory(self) -> LoopMemory:
        """Return what was remembered, as far as the cluster has the same.

        Where it has another memory, somebody else wrote it, or a write of ours whose answer was lost: that one
        counts, since the status is about to be written over the version that it stands in. What somebody else has
        made of the rest of the status is written over.
        """
        memory = self._record.memory
        if memory is None:
            return taken_over(recall(self._ports, self._complain), self._ports.write_policy, self._sight.now)
        if (until := self._sight.unchanged_until) is not None:
            memory = replace(memory, kept=memory.kept.unchanged_until(until))
        shown = digest_of(self._sight.application.get("status"))
        if shown == self._record.status:
            return memory
        self._record.status = shown
        memory = replace(memory, status_written=self._ports.reports.last())
        saved = self._ports.store.load()
        there = Kept() if saved is None else Kept.from_json(saved, self._complain)
        return memory if there == memory.saved else replace(memory, kept=there, saved=there, tried=None)

    def _complain(self, complaint: str) -> None:
        log.warning(complaint, application=str(self._owner.key))

    async def _carry_out(self, memory: LoopMemory, application: SparkApplication | None = None) -> None:
        pending = self._pending
        creates = next((write for write in pending.writes if isinstance(write, CreateDriver)), None)
        # Whoever knows less than the cluster fails with the status, and comes no further.
        is_guarded = creates or any(isinstance(write, PublishControl) for write in pending.writes)
        writes_status = is_guarded or pending.memory is not None or pending.status is not None
        if writes_status:
            memory = memory.having_written_status(self._ports.write_policy, self._sight.now)
            memory = replace(memory, saved=memory.kept)  # written together, whichever of them asked for it
            shown = {} if memory.status is None else memory.status.model_dump(mode="json", exclude_none=True)
            pending.writes.insert(0, WriteStatus({**shown, "memory": memory.kept.to_json()}))
        if creates or self._holds:
            self._application.hold()
        try:
            with nullcontext() if creates is None else self._around.owners.creating(creates.pod):
                await self._writer.carry_out(pending.writes)
        except (ApiRefused, ApiUnavailable, PredecessorRemains) as error:
            if creates and self._writer.has_written_status:
                self._record.refusal = start_trouble(error, self._record.refusal, self._sight.now)
            raise
        else:
            self._record.refusal = None if creates else self._record.refusal
        finally:
            self._learn_whether_it_is_told()
            if self._writer.has_written_status or not writes_status:
                # Whoever measures for all applications keeps their readings; once is enough.
                self._record.remember(replace(memory, metrics=None), pending.document)
                if application is not None:
                    self._record.acts_on(application)
                if self._writer.status is not None:
                    self._record.status = digest_of(self._writer.status)
                await self._tell()

    def _learn_whether_it_is_told(self) -> None:
        """Keep why the driver cannot be told its document; once it can, or need not be, that is worth a reconcile."""
        record, error = self._record, self._writer.untold
        if isinstance(error, ApiRefused | ApiUnavailable):
            before, now = record.untold, self._sight.now
            record.untold = trouble = telling_trouble(error, before, now)
            if trouble.is_certain and (before is None or not before.is_certain):
                # What was to be told is announced already, and would be the last word of it.
                reason, message = trouble.obstacle.reason, trouble.obstacle.message
                event = Event(at=now, reason=reason, message=message, topic=(), is_warning=True)
                self._ports.reports.tell(event)
        elif error is None and record.untold is not None:
            record.untold, record.is_surprised = None, True

    async def _tell(self) -> None:
        for event in self._pending.events:
            try:
                await self._around.recorder.tell(self._owner, event)
            except TransientError as error:
                log.warning(
                    f"event {event.reason} is not recorded: {error}", application=str(self._owner.key)
                )

    def _look_again_at(self, outcome: Outcome) -> float:
        now, memory, step = self._sight.now, outcome.memory, outcome.plan.step
        status = memory.status
        is_in_motion = step.state in IN_MOTION or (status is not None and status.waits_for_executors)
        write_policy = self._ports.write_policy
        times = [now + IN_MOTION_SECONDS if is_in_motion else write_policy.again_at(now, AT_REST_SECONDS)]
        if outcome.wake_at is not None:
            times.append(outcome.wake_at)
        if (at := next_write_at(memory, write_policy, now)) is not None:
            times.append(at)
        return max(now, min(times))


def _obstacle(trouble: Trouble | None, now: float) -> Obstacle | None:
    return None if trouble is None else trouble.obstacle_at(now)


def _is_news(refused: RefusedSpec, memory: LoopMemory, generation: int | None) -> bool:
    """Tell whether a refusal is to be told.

    Nobody has edited a generation that was acted on before: there it is news only after another refusal was told.
    """
    told, status = memory.kept.refused, memory.status
    was_seen = status is not None and status.observed_generation == generation
    return refused.digest != told and (told != "" or not was_seen)


def _having_refused(memory: LoopMemory, refused: RefusedSpec | None) -> LoopMemory:
    """Return the memory of having told why the spec cannot be acted on; `None`: it can."""
    digest = "" if refused is None else refused.digest
    return (
        memory
        if memory.kept.refused == digest
        else replace(memory, kept=replace(memory.kept, refused=digest))
    )


def _sentences(status: SparkApplicationStatus | None) -> frozenset[tuple[str, str]]:
    return frozenset() if status is None else frozenset((c.reason, c.message) for c in status.conditions)
