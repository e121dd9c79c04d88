"""Ticks: they come at their pace whatever a look takes, and what is worth a reconcile is queued."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from headgate.api.application import MetricsSource
from headgate.controller.ticker import Poller, Ticker
from headgate.key import Key
from headgate.metrics import OperatorMetrics

A, B = Key("team", "a"), Key("team", "b")


@dataclass
class Ticks:
    """A poller that may be made to hang, and what was told."""

    answers: list[Collection[Key] | Exception] = field(default_factory=list)
    looks: int = 0
    may_go_on: threading.Event = field(default_factory=threading.Event)
    queued: list[Key] = field(default_factory=list)
    beats: int = 0
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    others: dict[str, Poller] = field(default_factory=dict)

    @property
    def pollers(self) -> dict[str, Poller]:
        return {"Prometheus": self, **self.others}

    def poll(self, now: float) -> Collection[Key]:
        self.looks += 1
        assert self.may_go_on.wait(240)
        answer = self.answers.pop(0) if self.answers else ()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def beat(self) -> None:
        self.beats += 1

    def measured(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(f"headgate_operator_{name}", labels)
        assert value is not None
        return value

    @property
    def failed(self) -> dict[str, float]:
        """How many looks have failed, by where they read."""
        counts = {source: self.measured("looks_failed_total", source=source) for source in MetricsSource}
        return {source.value: count for source, count in counts.items() if count}

    def until(self, condition: Callable[[], bool]) -> None:
        async def run() -> None:
            ticking = asyncio.create_task(
                Ticker(self.pollers, 0.005, self.queued.append, self.beat, self.metrics).run()
            )
            async with asyncio.timeout(240):
                while not condition():
                    await asyncio.sleep(0.001)
            self.may_go_on.set()
            ticking.cancel()

        asyncio.run(run())


def test_what_is_worth_a_reconcile_is_queued() -> None:
    ticks = Ticks(answers=[(A, B), (), (A,)])
    ticks.may_go_on.set()
    ticks.until(lambda: len(ticks.queued) == 3)

    assert ticks.queued == [A, B, A]
    assert ticks.measured("tick_duration_seconds_count", source="Prometheus") >= 3
    assert ticks.measured("tick_duration_seconds_count", source="Driver") == 0


def test_a_slow_look_is_not_joined_by_another_and_ticks_go_on() -> None:
    ticks = Ticks()
    ticks.until(lambda: ticks.beats >= 4)

    assert ticks.looks == 1
    assert ticks.measured("ticks_skipped_total") == ticks.beats - 1


def test_a_look_that_fails_does_not_end_the_ticks() -> None:
    ticks = Ticks(answers=[ZeroDivisionError("a defect"), (A,)])
    ticks.may_go_on.set()
    ticks.until(lambda: ticks.queued == [A])

    assert ticks.looks >= 2
    assert ticks.failed == {"Prometheus": 1}


def test_a_look_that_fails_loses_nothing_of_what_another_has_found() -> None:
    drivers = Ticks(answers=[OverflowError("cannot convert float infinity to integer")] * 1000)
    drivers.may_go_on.set()
    ticks = Ticks(answers=[(), (A,), (), (B,)], others={"Driver": drivers})
    ticks.may_go_on.set()
    ticks.until(lambda: len(ticks.queued) == 2 and drivers.looks > 3)

    assert ticks.queued == [A, B]
    assert set(ticks.failed) == {"Driver"}


def test_a_look_that_hangs_holds_up_no_other() -> None:
    drivers = Ticks(answers=[(A,), (B,), (A,)])
    drivers.may_go_on.set()
    ticks = Ticks(others={"Driver": drivers})
    ticks.until(lambda: len(ticks.queued) == 3)

    assert ticks.queued == [A, B, A]
    assert (ticks.looks, drivers.looks >= 3) == (1, True)


def test_how_long_no_look_has_ended_well_is_told_by_source_once_there_are_ticks() -> None:
    async def look() -> list[tuple[Mapping[str, float], float]]:
        now = [1000.0]
        drivers = Ticks(answers=[ZeroDivisionError("a defect")])
        drivers.may_go_on.set()
        ticks = Ticks(others={"Driver": drivers})
        ticker = Ticker(
            ticks.pollers, 60, ticks.queued.append, ticks.beat, ticks.metrics, clock=lambda: now[0]
        )
        told = [(ticker.ages(), ticker.longest_look())]
        ticking = asyncio.create_task(ticker.run())
        async with asyncio.timeout(240):
            while not ticks.failed or not ticks.looks:
                await asyncio.sleep(0.001)
            now[0] += 40
            told.append((ticker.ages(), ticker.longest_look()))
            ticks.may_go_on.set()
            while not ticker.is_idle:
                await asyncio.sleep(0.001)
        told.append((ticker.ages(), ticker.longest_look()))
        ticking.cancel()
        return told

    assert asyncio.run(look()) == [
        ({}, 0.0),
        ({"Prometheus": 40.0, "Driver": 40.0}, 40.0),
        ({"Prometheus": 0.0, "Driver": 40.0}, 0.0),
    ]


def test_a_tick_is_applied_once_all_that_it_wakes_are_reconciled() -> None:
    async def tick() -> list[tuple[float, bool]]:
        ticks = Ticks(answers=[(A, B)])
        ticks.may_go_on.set()
        ticker = Ticker(ticks.pollers, 60, ticks.queued.append, ticks.beat, ticks.metrics)
        ticking = asyncio.create_task(ticker.run())
        async with asyncio.timeout(240):
            while len(ticks.queued) < 2:
                await asyncio.sleep(0.001)
        applied = []
        for key in (A, A, B):
            applied.append(
                (ticks.measured("tick_applied_seconds_count", source="Prometheus"), ticker.is_idle)
            )
            ticker.reconciled(key)
        ticking.cancel()
        return [*applied, (ticks.measured("tick_applied_seconds_count", source="Prometheus"), ticker.is_idle)]

    assert asyncio.run(tick()) == [(0, False), (0, False), (0, False), (1, True)]


def test_the_first_looks_go_on_until_everything_was_found_or_nothing_more_is() -> None:
    def looks(*answers: Collection[Key], wanted: set[Key]) -> tuple[int, list[Key]]:
        ticks = Ticks(answers=list(answers))
        ticks.may_go_on.set()
        ticker = Ticker(ticks.pollers, 60, ticks.queued.append, ticks.beat, ticks.metrics)
        assert asyncio.run(ticker.first(lambda found: wanted <= set(found), seconds=240))
        return ticks.looks, ticks.queued

    assert looks(wanted=set()) == (0, [])
    assert looks((A,), (B,), wanted={A, B}) == (2, [])
    assert looks((A,), (A,), (B,), wanted={A, B}) == (2, [])


def test_first_looks_that_take_too_long_are_not_waited_for_and_queue_whom_they_find() -> None:
    async def look() -> list[Key]:
        ticks = Ticks(answers=[(A, B)])
        ticker = Ticker(ticks.pollers, 60, ticks.queued.append, ticks.beat, ticks.metrics)
        assert not await ticker.first(lambda found: {A, B} <= set(found), seconds=0)
        ticks.may_go_on.set()
        async with asyncio.timeout(240):
            while len(ticks.queued) < 2:
                await asyncio.sleep(0.001)
        return ticks.queued

    assert asyncio.run(look()) == [A, B]
