"""The election, in a thread, an event loop and a connection of its own.

The event loop of the reconciles is late at times: an answer of ten megabytes is decoded, thousands of applications
start at once. A renewal that waited for it would come late on the very clusters that are large, and end a good
leader. So nothing of the lease waits for that loop, and the lease is not renewed for one that has come to a stand: a
replica that hangs gives way to another.
"""

import os
import sys
import threading
from dataclasses import dataclass, field
from typing import NoReturn

import structlog

from headgate.adapters.kubernetes.client import ApiServer
from headgate.factory.cluster import connected
from headgate.handlers.health import Health
from headgate.handlers.lease import Candidate, LeaseLost, LeaseTerms
from headgate.key import Key
from headgate.metrics import OperatorMetrics
from headgate.settings import Settings
from headgate.threads import LoopThread

log = structlog.get_logger("headgate")

FAILED = 1
"""Exit code."""
WATCHDOG_SECONDS = 0.25
"""Seconds between two looks at whether the lease was renewed in time."""


@dataclass(slots=True)
class Election:
    """One replica's candidate, as the event loop of the reconciles sees it."""

    candidate: Candidate
    cluster: ApiServer | None = None
    """The connection, which is used in the thread alone."""
    _thread: LoopThread = field(default_factory=lambda: LoopThread("lease"))
    _is_over: threading.Event = field(default_factory=threading.Event)

    @classmethod
    async def of(cls, settings: Settings, metrics: OperatorMetrics, health: Health) -> "Election":
        cluster = await connected(settings, metrics)
        terms = LeaseTerms(
            duration=settings.lease_duration.total_seconds(),
            renew_deadline=settings.lease_renew_deadline.total_seconds(),
            retry_period=settings.lease_retry_period.total_seconds(),
        )
        key = Key(settings.lease_namespace, settings.lease_name)
        candidate = Candidate(
            cluster, key, settings.identity, terms, reached=health.reached, can_act=health.loop_runs
        )
        return cls(candidate, cluster)

    async def win(self) -> None:
        """Return once this replica leads. From then on the process ends when the lease was not renewed in time."""
        log.info("waiting for the lease", lease=str(self.candidate.key), identity=self.candidate.identity)
        await self._thread.run(self.candidate.acquire())
        threading.Thread(target=self._watch, name="watchdog of the lease", daemon=True).start()

    async def hold(self) -> None:
        """Hold the lease for ever; the process ends at once when somebody else has it."""
        await self._thread.run(self._hold())

    async def release(self) -> None:
        """Give the lease up."""
        await self._thread.run(self.candidate.release())

    async def close(self) -> None:
        if self.cluster is not None:
            await self._thread.run(self.cluster.close())
        self._thread.close()
        self._is_over.set()

    async def _hold(self) -> NoReturn:
        try:
            await self.candidate.hold()
        except LeaseLost as lost:
            end_at_once(str(lost))

    def _watch(self) -> None:
        """End the process once its lease was not renewed in time, also where no event loop runs."""
        while not self.candidate.overdue():
            if self._is_over.wait(WATCHDOG_SECONDS):
                return
        seconds = self.candidate.terms.renew_deadline
        end_at_once(f"lease {self.candidate.key} was not renewed for {seconds:g} s")


def end_at_once(reason: str) -> NoReturn:
    """Exit without finishing anything: no reconcile, no request, no thread."""
    log.error(f"{reason}; this process ends at once")
    sys.stderr.flush()
    os._exit(FAILED)
