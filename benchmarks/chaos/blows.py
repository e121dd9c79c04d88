"""Faults over a world that has to go on after each: which comes when is drawn from a seed.

A fault strikes at a point of the query's own life, and not at a time: a batch planned and not committed, or just
committed. What the machine does in between is not drawn: a seed that has failed is run again until it fails again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

LOOK_SECONDS = 0.01
POINT_SECONDS = 5.0
"""For a point to come; where it does not, because there is nothing to read, it strikes all the same."""


class BrokenError(AssertionError):
    """Something that is promised did not hold."""


class Struck(Protocol):
    """What has a query's life in sight."""

    @property
    def where(self) -> str:
        """How far the run is, for the words of a failure."""

    @property
    def committed(self) -> int:
        """How far the query has committed; it only rises."""

    @property
    def is_in_mid_batch(self) -> bool:
        """Whether a batch is planned and not committed."""


World = TypeVar("World", bound=Struck)


@dataclass(frozen=True)
class Fault(Generic[World]):
    """One kind."""

    name: str
    weight: int
    """How often it comes, beside the others."""
    strike: Callable[[World, random.Random], None]


@dataclass(frozen=True)
class Blow(Generic[World]):
    """One fault at its point."""

    fault: Fault[World]
    in_mid_batch: bool
    seed: int

    def strike(self, world: World) -> None:
        """Wait for the point, and let it come."""
        before = world.committed
        if self.in_mid_batch:
            give_time(lambda: world.is_in_mid_batch)
        else:
            give_time(lambda: world.committed > before)
        self.fault.strike(world, random.Random(self.seed))


def struck(
    world: World,
    number: int,
    blow: Blow[World],
    goes_on: Callable[[World], None],
    tell: Callable[[str], None],
) -> None:
    """Let a fault come, and see that everything goes on; raises BrokenError where it does not."""
    began, before = time.monotonic(), world.committed
    try:
        blow.strike(world)
        mended = time.monotonic()
        goes_on(world)
    except AssertionError as error:
        moment = "in mid-batch" if blow.in_mid_batch else "after a commit"
        raise BrokenError(f"fault {number}, {blow.fault.name} {moment}, {world.where}: {error}") from error
    seconds = f"{mended - began:.1f} s, and {time.monotonic() - mended:.1f} s until it goes on"
    tell(f"{number:4} {blow.fault.name}: {seconds}; committed {before:,} to {world.committed:,}")


def awaited(
    look: Callable[[], Any],
    what: str,
    known: Callable[[], str],
    *,
    seconds: float,
    pause: float = LOOK_SECONDS,
) -> Any:
    """Return the first answer of `look` that is true; raises BrokenError, with what is `known`, if there is none."""
    until = time.monotonic() + seconds
    while not (answer := look()):
        if time.monotonic() > until:
            raise BrokenError(f"not within {seconds:g} s: {what}\n{known()}")
        time.sleep(pause)
    return answer


def give_time(look: Callable[[], bool]) -> None:
    """Wait until something is so, but not for long."""
    until = time.monotonic() + POINT_SECONDS
    while time.monotonic() < until and not look():
        time.sleep(LOOK_SECONDS)


def drawn(seed: int, count: int, faults: Sequence[Fault[World]]) -> list[Blow[World]]:
    """Return so many blows: each kind once, as far as they go, and then by weight; in any order."""
    chance = random.Random(seed)
    kinds = chance.sample(faults, min(count, len(faults)))
    kinds += chance.choices(faults, [fault.weight for fault in faults], k=count - len(kinds))
    chance.shuffle(kinds)
    return [Blow(fault, chance.random() < 0.5, chance.getrandbits(32)) for fault in kinds]
