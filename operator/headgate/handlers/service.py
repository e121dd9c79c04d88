"""What the replica that leads runs: watches, comparisons, ticks, and the workers that run the loop.

Nothing acts before everything that is there has been heard of: a reconcile that did not know of a living driver would
start a second one. Nor before the metrics were looked at, unless they do not come: ten thousand statuses would say
that nothing is known, and five seconds later what was known all the time.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import kopf
import structlog

from headgate.controller.decision_log import DecisionLog
from headgate.controller.ticker import Ticker
from headgate.controller.workers import Workers
from headgate.factory.cluster import ClusterOperator
from headgate.handlers.health import Health, Timeouts
from headgate.handlers.namespaces import Barrier
from headgate.handlers.resync import Resync
from headgate.handlers.rights import Preflight
from headgate.handlers.watches import NoMemories, Watches, kopf_settings, registry_of
from headgate.metrics import OperatorMetrics
from headgate.settings import Settings

log = structlog.get_logger("headgate")

END_SECONDS = 5.0
"""Longest wait for watches to end, which leave nothing behind if they do not."""

PREPARED_AT_ONCE = 20
"""Applications that are read before others get their chance: some twenty milliseconds."""

FIRST_LOOK_SECONDS = 2.0
FIRST_LOOK_SECONDS_EACH = 0.002
"""Longest wait for the first metrics, and how much longer for each application: several times what they take. A
Prometheus that does not answer keeps nobody from starting and ending drivers."""

FLUSH_SECONDS = 2.0
"""Longest wait for events to be sent, which are best effort."""


FREEZE_SECONDS = 60.0
"""How often what has survived is set aside from garbage collection."""
THAWED_EVERY = 60
"""Freezes between two looks at everything."""

YOUNG_OBJECTS = 100_000
"""New objects until those are looked at; at every tenth time those that survived the last ten as well. A tick of ten
thousand applications makes some 60,000 and lets as many go, so that none of them is looked at."""
NEVER = 1_000_000_000
MOMENTS = 100
"""How often a moment is looked for in which nothing is under way, before it is done all the same."""
MOMENT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a process measures and tells of itself."""

    metrics: OperatorMetrics
    health: Health
    decision_log: DecisionLog

    @classmethod
    def of(cls, settings: Settings) -> "Instruments":
        metrics = OperatorMetrics()
        return cls(metrics, Health(Timeouts(tick=settings.tick.total_seconds())), DecisionLog(metrics))


@dataclass(slots=True)
class Service:
    """The parts, wired; `hear_signals` is called when Kopf has taken the signals for itself."""

    operator: ClusterOperator
    settings: Settings
    health: Health
    workers: Workers
    watches: Watches
    resync: Resync
    ticker: Ticker
    hear_signals: Callable[[], None]
    _is_prepared: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self) -> list[asyncio.Task[None]]:
        """Start everything. The tasks never end by themselves, unless they fail."""
        parts: dict[str, Coroutine[Any, Any, None]] = {
            "watches": self._watch(),
            "comparisons": self.resync.run(),
            "workers": self._work(),
            "ticks": self._tick(),
            "events": self.operator.events.run(),
            "history": self.operator.controller.history.until_put_back(),
            "memory": set_aside(lambda: self.ticker.is_idle),
        }
        return [asyncio.create_task(part, name=name) for name, part in parts.items()]

    async def finish(self) -> None:
        """Begin no more reconciles, and finish those that run; then send the events that wait."""
        if not await self.workers.drain(self.settings.drain_timeout.total_seconds()):
            log.warning("some reconciles did not end in time; the next leader makes them again")
        await self.operator.events.flush(FLUSH_SECONDS)

    async def _watch(self) -> None:
        """Run Kopf; it ends only when it has failed, or is cancelled."""
        namespaces = self.settings.namespaces
        tasks = await kopf.spawn_tasks(
            registry=registry_of(self.watches, self.operator.api),
            settings=kopf_settings(self.settings.api_timeout.total_seconds()),
            memories=NoMemories(),
            clusterwide=not namespaces,
            namespaces=namespaces,
        )
        self.hear_signals()
        await kopf.run_tasks(tasks, ignored=_AllTasks())

    async def _work(self) -> None:
        await self.resync.synced.wait()
        self.health.synced = True
        await self._prepare()
        await self.workers.run()

    async def _prepare(self) -> None:
        """Look at the metrics of all that is there, before anything is decided on them."""
        controller, barrier = self.operator.controller, self.resync.barrier
        keys = set(filter(barrier.lets_in, controller.keys()))
        for number, key in enumerate(keys):
            controller.prepare(key)
            if number % PREPARED_AT_ONCE == 0:
                await asyncio.sleep(0)  # the lease is renewed in between
        seconds = FIRST_LOOK_SECONDS + len(keys) * FIRST_LOOK_SECONDS_EACH
        if await self.ticker.first(lambda found: keys <= set(found), seconds):
            log.info("the metrics of everything that is there were looked at", applications=len(keys))
        else:
            log.warning(f"no metrics within {seconds:.0f} s; drivers are looked after without them meanwhile")
        self._is_prepared.set()

    async def _tick(self) -> None:
        await self._is_prepared.wait()
        await self.ticker.run()


def service_of(
    operator: ClusterOperator,
    settings: Settings,
    instruments: Instruments,
    preflight: Preflight,
    hear_signals: Callable[[], None],
) -> Service:
    """Wire the parts; nothing runs yet. `preflight` has passed, and is asked for rights from now on."""
    controller, metrics, health = operator.controller, instruments.metrics, instruments.health
    workers = Workers(controller.reconcile, settings.workers, reconciled=metrics.reconciled)
    barrier = Barrier(preflight.namespaces, workers.add)
    watches = Watches(controller, barrier.add, heard=metrics.heard, gone=instruments.decision_log.gone)
    resync = Resync(
        operator.cluster,
        controller.cache,
        watches,
        metrics,
        settings.resync.total_seconds(),
        barrier,
        preflight.missing,
        controller.history,
    )
    ticker = Ticker(
        operator.poller.pollers, settings.tick.total_seconds(), workers.add, health.ticked, metrics
    )
    workers.ended = ticker.reconciled
    metrics.watch(
        queue_depth=workers.depth,
        queue_longest_wait_seconds=workers.longest_wait,
        reconcile_longest_running_seconds=workers.longest_run,
        control_longest_pending_seconds=lambda: instruments.decision_log.longest_pending(time.time()),
        namespaces_unserved=preflight.namespaces.unserved,
        stalled_applications=controller.cache.stalled,
    )
    metrics.watch_by_label(applications=instruments.decision_log.states, look_age_seconds=ticker.ages)
    health.longest_run = workers.longest_run
    health.longest_look = ticker.longest_look
    health.behind = lambda: watches.behind(time.monotonic())
    return Service(operator, settings, health, workers, watches, resync, ticker, hear_signals)


async def set_aside(is_idle: Callable[[], bool] = lambda: True) -> None:
    """Freeze what has survived, again and again, until it is cancelled; when `is_idle`, where that comes soon.

    What is known of ten thousand applications are millions of objects that live as long as these. A full collection
    goes through all of them, with everything else standing still for a second or two, and finds nothing. So once a
    minute what has survived is set aside; once an hour everything is looked at, for cycles that were frozen and are
    garbage by now. In between only what is young is collected. A minute's survivors are still enough for a quarter of
    a second, which would fall into a tick as often as not: it is spent when no tick is under way.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, 10, NEVER)
    try:
        for freezes in count():
            if freezes % THAWED_EVERY == 0:
                gc.unfreeze()
            gc.collect()
            gc.freeze()
            await asyncio.sleep(FREEZE_SECONDS)
            for _ in range(MOMENTS):
                if is_idle():
                    break
                await asyncio.sleep(MOMENT_SECONDS)
    finally:
        gc.set_threshold(*thresholds)


async def end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            await asyncio.gather(*tasks, return_exceptions=True)


class _AllTasks:
    """All tasks of the event loop. At its end Kopf cancels those that are not its own, unless they are in here."""

    def __contains__(self, _task: object) -> bool:
        return True

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(asyncio.all_tasks())

    def __len__(self) -> int:
        return len(asyncio.all_tasks())
