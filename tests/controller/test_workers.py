"""Workers: as many reconciles at once as allowed, one for each application, and failures that stay with their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from headgate.controller.workers import Workers
from headgate.errors import ApiUnavailable, TransientError
from headgate.key import Key

A, B, C = Key("team", "a"), Key("team", "b"), Key("team", "c")


@dataclass
class Reconciles:
    """Turns that wait until a test lets them end."""

    begun: list[Key] = field(default_factory=list)
    ended: list[Key] = field(default_factory=list)
    running: int = 0
    most_at_once: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, key: Key) -> float | None:
        self.begun.append(key)
        self.running += 1
        self.most_at_once = max(self.running, self.most_at_once)
        try:
            await self.gate.wait()
        finally:
            self.running -= 1
        self.ended.append(key)
        return None


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until something is so."""
    async with asyncio.timeout(240):
        while not condition():
            await asyncio.sleep(0)


def working(test: Callable[[Workers], Awaitable[None]], workers: Workers) -> None:
    async def run() -> None:
        work = asyncio.create_task(workers.run())
        await test(workers)
        await workers.drain(240)
        await work

    asyncio.run(run())


def test_as_many_reconciles_at_once_as_there_are_workers() -> None:
    reconciles = Reconciles()

    async def test(workers: Workers) -> None:
        for key in (A, B, C):
            workers.add(key)
        await until(lambda: reconciles.running == 2)
        assert workers.depth() == 1
        reconciles.gate.set()
        await until(lambda: len(reconciles.ended) == 3)

    working(test, Workers(reconciles, count=2))
    assert reconciles.most_at_once == 2


def test_what_is_heard_during_a_reconcile_is_another_reconcile_after_it() -> None:
    reconciles = Reconciles()

    async def test(workers: Workers) -> None:
        workers.add(A)
        await until(lambda: reconciles.running == 1)
        workers.add(A)
        workers.add(A)
        reconciles.gate.set()
        await until(lambda: len(reconciles.ended) == 2)

    working(test, Workers(reconciles, count=8))
    assert (reconciles.begun, reconciles.most_at_once) == ([A, A], 1)


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (TransientError("API server: 409: it has changed"), "retried"),
        (ApiUnavailable("API server: 429", 0.01), "retried"),
        (ZeroDivisionError("a defect"), "defect"),
    ],
)
def test_a_reconcile_that_fails_is_made_again_and_the_others_go_on(error: Exception, result: str) -> None:
    tries: list[Key] = []
    told: list[str] = []

    async def reconcile(key: Key) -> float | None:
        tries.append(key)
        if key == A and tries.count(A) < 3:
            raise error
        return None

    async def test(workers: Workers) -> None:
        workers.add(A)
        workers.add(B)
        await until(lambda: tries.count(A) == 3 and B in tries)

    working(test, Workers(reconcile, 4, reconciled=lambda how, _seconds: told.append(how), first_pause=0.001))
    assert sorted(told) == sorted([result, result, "done", "done"])


def test_a_reconcile_may_ask_to_be_looked_at_again() -> None:
    tries: list[Key] = []

    async def reconcile(key: Key) -> float | None:
        tries.append(key)
        return 0.0 if len(tries) < 3 else None  # long past: at once

    async def test(workers: Workers) -> None:
        workers.add(A)
        await until(lambda: len(tries) == 3)

    working(test, Workers(reconcile, 1))


def test_draining_finishes_what_runs_and_begins_nothing() -> None:
    reconciles = Reconciles()

    async def run() -> bool:
        workers = Workers(reconciles, count=1)
        work = asyncio.create_task(workers.run())
        workers.add(A)
        await until(lambda: reconciles.running == 1)
        workers.add(B)
        drain = asyncio.create_task(workers.drain(240))
        await until(work.done)
        reconciles.gate.set()
        return await drain

    assert asyncio.run(run())
    assert (reconciles.begun, reconciles.ended) == ([A], [A])


def test_draining_cuts_off_what_does_not_end_in_time() -> None:
    reconciles = Reconciles()

    async def run() -> bool:
        workers = Workers(reconciles, count=1)
        work = asyncio.create_task(workers.run())
        workers.add(A)
        await until(lambda: reconciles.running == 1)
        drained = await workers.drain(0.01)
        await work
        return drained

    assert not asyncio.run(run())
    assert (reconciles.running, reconciles.ended) == (0, [])
