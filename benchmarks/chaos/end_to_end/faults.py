"""What is done to a run: each fault strikes, and is mended before it returns."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import psutil

from benchmarks.chaos.blows import Fault, give_time
from benchmarks.chaos.end_to_end.world import World
from headgate_contract.receiving import RefusalReason
from support.driver import Driver

HUGE_BYTES = 16 << 20
REWRITTEN_SECONDS = 0.1
SHUT_OUT = ("is in use by", "commits nothing more to its checkpoint")
"""What the log of a newcomer says that is not let in, and that of a driver whose checkpoint was taken over."""


# The document -------------------------------------------------------------------------------------


def refused(world: World, text: str, reason: RefusalReason) -> None:
    """Put a text there that must be refused, see that it is, and that what was in force stays so."""

    def count() -> float:
        return world.driver.metric("headgate_control_refused_total", reason=reason.value) or 0.0

    before, in_force = count(), world.generation
    world.write_control(text)
    world.wait_for(lambda: count() > before, f"a refusal: {reason.value}")
    found = world.driver.metric("headgate_control_generation")
    assert found == in_force, f"generation {in_force} was in force, and after a refusal {found} is"
    world.publish()
    world.acknowledged()


def document_cut(world: World, chance: random.Random) -> None:
    text = world.text(world.generation + 1)
    cut = text[: chance.randrange(1, len(text) - 1)]
    refused(world, cut, RefusalReason.MALFORMED)


def document_old(world: World, _: random.Random) -> None:
    world.publish()
    world.acknowledged()
    refused(world, world.text(world.generation - 1), RefusalReason.OLDER_GENERATION)


def document_huge(world: World, chance: random.Random) -> None:
    padding = chance.choice("x[")
    refused(world, padding * HUGE_BYTES, RefusalReason.MALFORMED)


def document_gone(world: World, chance: random.Random) -> None:
    (world.root / "control.json").unlink()
    time.sleep(chance.uniform(0.0, 0.5))
    world.publish()
    world.acknowledged()


def document_rewritten(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(5, 20)):
        world.publish(interval=chance.choice([0.0, 0.1, 0.2, 0.4]))
        time.sleep(REWRITTEN_SECONDS)
    world.acknowledged()


def verdict_flaps(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(5, 20)):
        world.publish(backlog=not world.backlog)
        time.sleep(chance.uniform(0.02, 0.2))
    world.acknowledged()


# Processes ----------------------------------------------------------------------------------------


@contextmanager
def standing(processes: Iterable[psutil.Process]) -> Iterator[None]:
    """Have processes stand still meanwhile."""
    stopped = list(processes)
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def planner_killed(world: World, _: random.Random) -> None:
    with world.unheard_meanwhile():
        killed = world.planner()
        killed.kill()
        world.wait_for(lambda: world.planner().pid != killed.pid, "another planner's process")
        world.acknowledged()


def planner_stands(world: World, chance: random.Random) -> None:
    with world.unheard_meanwhile(), standing([world.planner()]):
        time.sleep(chance.choice([0.3, 1.0, 2.0, 7.0]))


def driver_killed(world: World, _: random.Random) -> None:
    for process in world.processes(world.driver):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    world.restart()


def jvm_killed(world: World, _: random.Random) -> None:
    world.driver.kill_jvm()
    world.driver.wait()
    world.restart()


def python_killed(world: World, _: random.Random) -> None:
    world.driver.kill()
    world.restart()


def driver_stopped(world: World, _: random.Random) -> None:
    world.stop()
    assert not world.is_in_mid_batch, "a driver that was asked to stop left a batch that it has planned"
    world.restart()


def second_driver(world: World, _: random.Random) -> None:
    first, second = world.driver, world.start()
    world.wait_for(
        lambda: any(each.process.poll() is not None for each in (first, second)),
        "the end of one of two drivers",
    )
    loser, world.driver = (first, second) if second.process.poll() is None else (second, first)
    shut_out(world, loser)


def driver_comes_back(world: World, _: random.Random) -> None:
    first, before = world.driver, world.committed
    with standing(world.processes(first)):
        world.driver = world.start()
        world.wait_for_commit(before + 1)  # the batch that was running may have been committed just before
    world.wait_for(lambda: first.process.poll() is not None, "the end of a driver that was shut out")
    shut_out(world, first)


def shut_out(world: World, driver: Driver) -> None:
    """See that a driver has ended because another one has its checkpoint, and that all of it is gone."""
    log = driver.log
    assert any(words in log for words in SHUT_OUT), f"it ended of something else: {log[-3000:]}"
    world.clear(driver)


# Broker and network -------------------------------------------------------------------------------


def broker_killed(world: World, chance: random.Random) -> None:
    world.broker.kill()
    time.sleep(chance.uniform(0.0, 1.0))
    world.broker.start()


def broker_stopped(world: World, _: random.Random) -> None:
    world.broker.stop()
    world.broker.start()


def broker_stands(world: World, chance: random.Random) -> None:
    with standing([psutil.Process(world.broker.pid)]):
        time.sleep(chance.uniform(0.5, 4.0))


def network_cut(world: World, chance: random.Random) -> None:
    world.proxy.cut()
    time.sleep(chance.uniform(0.3, 3.0))
    world.proxy.mend()


def network_slow(world: World, chance: random.Random) -> None:
    world.proxy.delay(chance.uniform(0.02, 0.3))
    time.sleep(chance.uniform(0.5, 2.0))
    world.proxy.mend()


def network_reset(world: World, _: random.Random) -> None:
    world.proxy.reset()


# Disk and clock -----------------------------------------------------------------------------------


def disk_slow(world: World, chance: random.Random) -> None:
    world.weather(f"slow {chance.randint(20, 200)}")
    time.sleep(chance.uniform(0.5, 2.0))
    world.weather("")


def disk_full(world: World, _: random.Random) -> None:
    world.weather("full")
    world.feed.more()
    world.wait_for(lambda: world.driver.process.poll() is not None, "the end of a driver whose disk is full")
    assert "No space left on device" in world.driver.log, (
        f"it ended of something else: {world.driver.log[-3000:]}"
    )
    world.weather("")
    world.restart()


def clock_steps(world: World, chance: random.Random) -> None:
    before = world.committed
    world.clock_ahead(chance.choice([-3600.0, -30.0, 30.0, 3600.0]))
    give_time(lambda: world.committed > before)
    world.clock_ahead(0.0)


FAULTS = (
    Fault("document_cut", 40, document_cut),
    Fault("document_old", 20, document_old),
    Fault("document_huge", 10, document_huge),
    Fault("document_gone", 20, document_gone),
    Fault("document_rewritten", 30, document_rewritten),
    Fault("verdict_flaps", 40, verdict_flaps),
    Fault("planner_killed", 40, planner_killed),
    Fault("planner_stands", 40, planner_stands),
    Fault("driver_killed", 6, driver_killed),
    Fault("jvm_killed", 4, jvm_killed),
    Fault("python_killed", 4, python_killed),
    Fault("driver_stopped", 6, driver_stopped),
    Fault("second_driver", 4, second_driver),
    Fault("driver_comes_back", 4, driver_comes_back),
    Fault("broker_killed", 20, broker_killed),
    Fault("broker_stopped", 5, broker_stopped),
    Fault("broker_stands", 20, broker_stands),
    Fault("network_cut", 50, network_cut),
    Fault("network_slow", 40, network_slow),
    Fault("network_reset", 50, network_reset),
    Fault("disk_slow", 30, disk_slow),
    Fault("disk_full", 4, disk_full),
    Fault("clock_steps", 20, clock_steps),
)
