"""The election: it goes on while the event loop of the reconciles is busy, and ends for one that does nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headgate.adapters.kubernetes.client import Kind, Manifest
from headgate.errors import ApiNotFound
from headgate.handlers.election import Election
from headgate.handlers.lease import Candidate, LeaseTerms
from headgate.key import Key
from headgate.threads import LoopThread

SECONDS = 60.0
"""Longest wait for what comes at once."""


class Leases:
    """A lease that anybody may take, and that counts its renewals."""

    def __init__(self) -> None:
        self.renewals = 0
        self.was_renewed = threading.Event()

    async def get(self, kind: Kind, key: Key) -> Manifest:
        raise ApiNotFound("no such lease")

    async def apply(self, kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
        return self._answer({})

    async def patch(self, kind: Kind, key: Key, patch: Mapping[str, Any]) -> Manifest:
        if "acquireTime" not in patch["spec"]:
            self.renewals += 1
            self.was_renewed.set()
        return self._answer(patch["spec"])

    def _answer(self, spec: Mapping[str, Any]) -> Manifest:
        return {"metadata": {"resourceVersion": "1"}, "spec": dict(spec)}


def candidate(leases: Leases, **more: Any) -> Candidate:
    terms = LeaseTerms(duration=3600, renew_deadline=1800, retry_period=0.01)
    return Candidate(leases, Key("headgate", "lease"), "a", terms, **more)


def test_the_lease_is_renewed_while_the_event_loop_of_the_reconciles_is_blocked() -> None:
    leases = Leases()
    election = Election(candidate(leases))

    async def lead() -> bool:
        await election.win()
        held = asyncio.create_task(election.hold())
        await asyncio.sleep(0)
        renewed_meanwhile = leases.was_renewed.wait(SECONDS)  # nothing else happens in this loop until then
        held.cancel()
        with suppress(asyncio.CancelledError):
            await held
        await election.release()
        await election.close()
        return renewed_meanwhile

    assert asyncio.run(lead())


def test_nothing_watches_over_a_lease_once_the_election_is_over() -> None:
    election = Election(candidate(Leases()))

    async def lead() -> set[threading.Thread]:
        before = set(threading.enumerate())
        await election.win()
        begun = set(threading.enumerate()) - before
        await election.close()
        return begun

    (watchdog,) = (thread for thread in asyncio.run(lead()) if thread.name == "watchdog of the lease")
    watchdog.join(SECONDS)
    assert not watchdog.is_alive()


def test_the_lease_is_not_renewed_for_a_replica_that_does_nothing() -> None:
    leases = Leases()
    looks = 0

    def can_act() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyError  # enough
        return False

    async def lead() -> None:
        one = candidate(leases, can_act=can_act)
        await one.acquire()
        with suppress(KeyError):
            await one.hold()

    asyncio.run(lead())
    assert (looks, leases.renewals) == (3, 0)


def test_work_in_a_thread_is_cancelled_with_whoever_waits_for_it() -> None:
    thread = LoopThread("test")
    is_cancelled = threading.Event()
    has_begun = threading.Event()

    async def work() -> None:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled.set()

    async def wait() -> None:
        waiting = asyncio.create_task(thread.run(work()))
        await asyncio.to_thread(has_begun.wait, SECONDS)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    asyncio.run(wait())
    assert is_cancelled.wait(SECONDS)
    thread.close()
