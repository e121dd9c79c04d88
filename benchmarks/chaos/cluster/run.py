"""A whole run: faults one after the other over an application on real nodes, and the audit when it is suspended."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from benchmarks.chaos.blows import Fault, drawn, struck
from benchmarks.chaos.cluster.faults import FAULTS, suspend
from benchmarks.chaos.cluster.world import (
    BURST_SECONDS,
    FASTEST,
    RECORDS_PER_CHECKPOINT,
    World,
    world_in,
)
from benchmarks.chaos.end_to_end.audit import Limits, cover, too_fast
from benchmarks.event_log import Batch, EventLog
from support.copies import NAME, QUERY
from support.requirements import need_namespaces

LIMITS = Limits(RECORDS_PER_CHECKPOINT, FASTEST, BURST_SECONDS)
"""The widest that was asked for at any time."""


@dataclass
class Found:
    """What came of a run."""

    faults: Counter[str]
    rows: int
    batches: int
    lost: int
    """Rows that were committed and are not in the output."""
    doubled: int
    past_limit: int
    seconds: float
    broken: list[str] = field(default_factory=list)
    """Everything else that is not as it must be, a sentence each."""


def storm(
    root: Path,
    *,
    seed: int,
    faults: int,
    tell: Callable[[str], None],
    of: Sequence[Fault[World]] = FAULTS,
) -> Found:
    """Let so many faults come, in a folder that is removed if all is well.

    Raises BrokenError at the first thing that does not come about, with what was done last.
    """
    need_namespaces()
    shutil.rmtree(root, ignore_errors=True)
    began = time.monotonic()
    blows = drawn(seed, faults, of)
    with world_in(root.resolve(), tell) as world:
        for number, blow in enumerate(blows, 1):
            struck(world, number, blow, World.goes_on, tell)
        suspend(world, True)
        world.wait_for(lambda: not world.person.pods("driver"), "the end of the driver")
        found = audited(world, Counter(blow.fault.name for blow in blows), time.monotonic() - began)
    if not (found.broken or found.lost or found.doubled or found.past_limit):
        shutil.rmtree(root)
    return found


def audited(world: World, faults: Counter[str], seconds: float) -> Found:
    """Judge a run whose driver was stopped in order."""
    rows, copied, batches = world.committed, Counter(world.volume.copied), world.volume.batches
    return Found(
        faults,
        rows,
        len(batches),
        lost=sum(1 for row in range(rows) if row not in copied),
        doubled=sum(count - 1 for count in copied.values()),
        past_limit=sum(max(0, len(batch) - RECORDS_PER_CHECKPOINT) for batch in batches),
        seconds=seconds,
        broken=list(untold(world, copied, rows)),
    )


def untold(world: World, copied: Counter[int], rows: int) -> Iterator[str]:
    """Yield what checkpoint and event logs break, and what is in the output beyond the checkpoint."""
    if not world.volume.is_between_batches:
        yield "a driver that was asked to stop left a batch that it has planned"
    if beyond := sum(1 for row in copied if row >= rows):
        yield f"{beyond} rows of {QUERY} are in the output of {NAME} and were not committed"
    yield from cover(world.volume.folder / "checkpoint")
    logs = [batches for folder in world.events if (batches := EventLog(folder).of(QUERY))]
    if not logs:
        yield "no driver has told what it has run: there is no event log"
    drivers = dict(enumerate(sorted(logs, key=lambda batches: batches[0].started), 1))
    yield from two_at_once(drivers)
    yield from too_fast(drivers, LIMITS)


def two_at_once(drivers: Mapping[int, Sequence[Batch]]) -> Iterator[str]:
    """Yield each driver that has committed what the one before it had, or after the next had begun to."""
    for (before, ran), (after, next_ran) in pairwise(drivers.items()):
        if ran[-1].number >= next_ran[0].number:
            yield (
                f"driver {before} has committed batch {ran[-1].number}, and driver {after} "
                f"has begun with batch {next_ran[0].number}"
            )
