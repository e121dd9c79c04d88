"""Which replica acts: the one that holds the Lease.

The election of the official client is not used, for what it does when things go wrong: a refused connection escapes
it and ends it, an answer that never comes is waited for beyond the renew deadline while somebody else takes over, and
it does not release the lease on the way out. Each of these would break the one promise that is made here:

    the leader is gone before another one acts

A holder counts from when it *sent* its last good renewal, others from when they *saw* it. The holder's deadline is
the shorter one, so it has ended before they act, whatever their clocks say: only durations are compared, never the
times that are written down. They are measured on a clock that goes on while the machine is suspended.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

import structlog

from headgate.adapters.kubernetes.client import LEASES, ApiServer, Manifest
from headgate.clock import steady_seconds
from headgate.errors import ApiConflict, ApiNotFound, HeadgateError, TransientError
from headgate.key import Key

log = structlog.get_logger("headgate.lease")


class LeaseLost(HeadgateError):  # noqa: N818  what happened, not a fault of its own
    """The lease is not ours any more; whoever hears it must do nothing further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long is waited for what, in seconds."""

    duration: float = 15.0
    """After so long without a renewal another replica may take the lease."""
    renew_deadline: float = 10.0
    """After so long without a renewal its holder ends itself."""
    retry_period: float = 2.0
    """Seconds between two tries."""

    @property
    def patience(self) -> float:
        """Seconds for one try: a single lost answer must not use up the deadline."""
        return self.renew_deadline / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRecord:
    """A Lease as it was read."""

    holder: str
    """Empty: nobody."""
    duration: float
    renewed_at: str
    """As its holder wrote it; only compared for being equal."""
    transitions: int
    version: str

    @classmethod
    def of(cls, manifest: Manifest) -> "ElectionRecord":
        """Read a Lease; what is missing counts as not held."""
        spec = manifest.get("spec") or {}
        return cls(
            holder=spec.get("holderIdentity") or "",
            duration=float(spec.get("leaseDurationSeconds") or 0),
            renewed_at=spec.get("renewTime") or "",
            transitions=int(spec.get("leaseTransitions") or 0),
            version=manifest["metadata"]["resourceVersion"],
        )


@dataclass(slots=True)
class Observed:
    """What was read of the Lease, and since when it has been like that."""

    record: ElectionRecord | None = None
    since: float = 0.0

    def saw(self, record: ElectionRecord, at: float) -> None:
        if record != self.record:
            self.record, self.since = record, at

    def may_be_taken(self, identity: str, at: float) -> bool:
        """Whether nobody else holds it: given up, or not renewed for as long as its holder said.

        A lease of our own name is from an earlier life of this very process, which is over.
        """
        record = self.record
        if record is None or record.holder in ("", identity):
            return True
        return at - self.since >= record.duration


@dataclass(slots=True)
class Candidate:
    """One replica's way to the lease, and its hold on it."""

    leases: ApiServer
    key: Key
    identity: str
    terms: LeaseTerms = field(default_factory=LeaseTerms)
    clock: Callable[[], float] = steady_seconds
    reached: Callable[[], None] = lambda: None
    """Told each time the API server has answered."""
    can_act: Callable[[], bool] = lambda: True
    """Whether this replica does what it leads for. A lease is not renewed for one that hangs."""
    renewed_at: float | None = None
    """When the last good renewal was sent, while the lease is held."""
    _observed: Observed = field(default_factory=Observed)
    _held: ElectionRecord | None = None
    _unanswered: dict[str, float] = field(default_factory=dict)
    """Renewals that nobody knows the fate of: what was written, and when it was sent."""

    async def acquire(self) -> None:
        """Return once the lease is ours."""
        while not await self.try_to_acquire():
            await asyncio.sleep(self.terms.retry_period)
        log.info("this replica leads", identity=self.identity, lease=str(self.key))

    async def hold(self) -> NoReturn:
        """Renew the lease for ever; raises `LeaseLost` as soon as it is known to be somebody else's.

        That it was not renewed in time is for `overdue` to say, which needs no event loop that runs.
        """
        while True:
            await asyncio.sleep(self.terms.retry_period)
            if self.can_act():
                await self.renew()
            else:
                log.warning("the lease is not renewed: this replica does nothing", lease=str(self.key))

    async def release(self) -> None:
        """Give the lease up, so that another replica need not wait; best effort."""
        if self._held is None:
            return
        held, self._held, self.renewed_at = self._held, None, None
        try:
            async with asyncio.timeout(self.terms.patience):
                await self.leases.patch(LEASES, self.key, _patch(held.version, {"holderIdentity": None}))
        except (TransientError, TimeoutError) as error:
            log.warning(f"the lease was not released and runs out by itself: {error or 'no answer'}")
        else:
            log.info("the lease is released", identity=self.identity, lease=str(self.key))

    def overdue(self) -> bool:
        """Whether the lease is held and was not renewed within the deadline; may be asked from any thread."""
        renewed_at = self.renewed_at
        return renewed_at is not None and self.clock() - renewed_at >= self.terms.renew_deadline

    async def try_to_acquire(self) -> bool:
        """Take the lease if it may be taken; returns whether it is ours now."""
        try:
            async with asyncio.timeout(self.terms.patience):
                return await self._look_and_take()
        except ApiConflict:
            return False  # another replica was quicker
        except (TransientError, TimeoutError) as error:
            log.warning(f"cannot look at the lease: {error or 'no answer'}", lease=str(self.key))
            return False

    async def renew(self) -> None:
        """Renew the lease that is held; what does not succeed now is tried again. Raises `LeaseLost`."""
        try:
            async with asyncio.timeout(self.terms.patience):
                await self._renew()
        except (TransientError, TimeoutError) as error:
            log.warning(f"the lease was not renewed: {error or 'no answer'}", lease=str(self.key))

    async def _look_and_take(self) -> bool:
        sent = self.clock()
        try:
            record = ElectionRecord.of(await self.leases.get(LEASES, self.key))
        except ApiNotFound:
            # With no word on who holds it: replicas that make it at once do each other no harm. Applied and not
            # created, since that names it: a Role can then grant the creation of this one Lease.
            metadata = {"namespace": self.key.namespace, "name": self.key.name}
            unheld = {"apiVersion": LEASES.group_version, "kind": "Lease", "metadata": metadata}
            record = ElectionRecord.of(await self.leases.apply(LEASES, unheld))
        self.reached()
        self._observed.saw(record, self.clock())
        if not self._observed.may_be_taken(self.identity, self.clock()):
            return False
        sent = self.clock()
        changes_hands = record.renewed_at != "" and record.holder != self.identity
        moment = _moment()
        claim = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self.terms.duration),
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": record.transitions + changes_hands,
        }
        self._took(await self.leases.patch(LEASES, self.key, _patch(record.version, claim)), sent)
        return True

    async def _renew(self) -> None:
        if self._held is None:
            raise LeaseLost(f"lease {self.key} is not held")
        moment, sent = _moment(), self.clock()
        renewal = _patch(self._held.version, {"holderIdentity": self.identity, "renewTime": moment})
        self._unanswered[moment] = sent
        try:
            self._took(await self.leases.patch(LEASES, self.key, renewal), sent)
        except ApiNotFound:  # somebody has deleted it; whoever creates it first has it
            if not await self._look_and_take():
                raise LeaseLost(f"lease {self.key} was deleted, and taken by another replica") from None
        except ApiConflict:
            self._check(self._held, ElectionRecord.of(await self.leases.get(LEASES, self.key)))

    def _check(self, held: ElectionRecord, found: ElectionRecord) -> None:
        """Go on where it was changed by ourselves, or in something else: a label, for instance."""
        self.reached()
        if found.holder != self.identity:
            raise LeaseLost(f"lease {self.key} is held by {found.holder or 'nobody'} now")
        if sent := self._unanswered.get(found.renewed_at):
            self.renewed_at = sent
        elif found.renewed_at != held.renewed_at:
            raise LeaseLost(
                f"lease {self.key} is renewed by another process of the same name; "
                f"give each replica an identity of its own, not {self.identity} to all"
            )
        self._held = found

    def _took(self, manifest: Manifest, sent: float) -> None:
        self.reached()
        self._unanswered.clear()
        self._held, self.renewed_at = ElectionRecord.of(manifest), sent


def _patch(version: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "spec": dict(spec)}


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
