"""A whole run: faults one after the other, more to read with each, and the audit when all has been read."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chaos.blows import Fault, drawn, struck
from benchmarks.chaos.end_to_end.audit import Audit, Limits, audit
from benchmarks.chaos.end_to_end.faults import FAULTS
from benchmarks.chaos.end_to_end.feed import CHUNK, PARTITIONS
from benchmarks.chaos.end_to_end.world import (
    BURST_SECONDS,
    DRIFT_SECONDS,
    QUERY,
    RECORDS_PER_CHECKPOINT,
    RECORDS_PER_SECOND,
    World,
    world_in,
)

LIMITS = Limits(RECORDS_PER_CHECKPOINT, RECORDS_PER_SECOND, BURST_SECONDS, round(DRIFT_SECONDS * 1000))
HISTORY = 0.1
"""What part of all the first topic has at the start, and the second one waits for."""
DRAINED_SECONDS = 1200.0


@dataclass(frozen=True)
class Storm:
    """What came of a run."""

    faults: Counter[str]
    records: int
    seconds: float
    drivers: int
    audit: Audit


def storm(
    root: Path,
    *,
    seed: int,
    faults: int,
    records: int,
    tell: Callable[[str], None],
    of: Sequence[Fault[World]] = FAULTS,
) -> Storm:
    """Let so many faults come over a job that reads so many records, in a folder that is removed if all is well.

    Raises BrokenError at the first thing that does not come about, with what was done last.
    """
    shutil.rmtree(root, ignore_errors=True)
    began = time.monotonic()
    blows = drawn(seed, faults, of)
    history = max(1, round(HISTORY * records / PARTITIONS / CHUNK)) * CHUNK
    with world_in(root.resolve(), history, tell) as world:
        begun = world.feed.written
        for number, blow in enumerate(blows, 1):
            world.feed.allow(begun + max(0, records - begun) * number // faults)
            struck(world, number, blow, goes_on, tell)
        found = finished(world)
        written = world.feed.written
    if not found.broken and not (found.lost or found.doubled or found.past_limit):
        shutil.rmtree(root)
    counted = Counter(blow.fault.name for blow in blows)
    return Storm(counted, written, time.monotonic() - began, world.starts, found)


def goes_on(world: World) -> None:
    """See that the query goes on and that its driver tells nothing that is not so."""
    world.wait_for_commit(world.committed)
    tells_the_truth(world)


def tells_the_truth(world: World) -> None:
    """See that no more is said to be pending than can be, and no generation in force but the last.

    It is given time: pending records are those of the last commit, and a generation is in force from the next
    planning, so both wait for the batch that runs.
    """

    def is_so() -> bool:
        read = world.read
        told = {topic: pending_of(world, topic) for topic in read}
        most = {topic: written - read[topic] for topic, written in world.feed.handed_over.items()}
        generation = world.driver.metric("headgate_control_generation")
        return all(told[t] is None or 0 <= told[t] <= most[t] for t in told) and generation in (
            None,
            world.generation,
        )

    world.wait_for(is_so, "a driver that tells what is so of pending records and of its document")


def pending_of(world: World, topic: str) -> float | None:
    """Return how many records of a topic the driver says are pending; `None`: it says nothing."""
    return world.driver.metric("headgate_source_pending_records", source=topic)


def finished(world: World) -> Audit:
    """Let everything be read, stop the driver in order, and judge."""
    ends = world.feed.finish()
    written = dict(world.feed.handed_over)
    world.wait_for(lambda: world.read == written, "the end of the topics", DRAINED_SECONDS)
    world.wait_for(
        lambda: all(pending_of(world, topic) == 0.0 for topic in written), "a word that nothing is pending"
    )
    world.stop()
    return audit(
        checkpoint=world.checkpoint,
        query=QUERY,
        out=world.out,
        journal=world.journal,
        events=[folder / "events" for folder in world.driver_folders],
        ends=ends,
        history=world.feed.history,
        unheard=world.unheard,
        limits=LIMITS,
    )
