"""What a batch costs that has next to nothing to do: one row, no state.

A governed driver of which nobody has said anything plans each trigger and writes its checkpoint as `headgate-run` has
it written; the other one is Spark's own. Both run the same query for as many batches, in turns, and Spark's own
record says how long each trigger took. The checkpoint is in one of three places (`Opened`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.alternatives.slow_store import SlowDoor, requests_of_a_batch
from benchmarks.backlog.rounds import interval
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.session import Session, documented_session, plain_session
from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.local.statistics import divided, rotated
from headgate_contract import ControlDocument
from support import faulty_files, object_store
from support.http_server import serving

WARM_UPS = 3
"""Runs of each before anything counts: a JVM compiles what it runs. A store takes no time for these, where it can."""
PLAIN, GOVERNED = "plain", "headgate"
ABORTABLE = "plain_abortable"
"""Plain, with the manager of Spark's module for clouds, which renames nothing: what one may choose on S3."""
NOTHING_SAID = ControlDocument(generation=1, queries={})
FAR_MILLIS = 50


@dataclass(frozen=True)
class Store:
    """Where the checkpoint of one driver is."""

    before: str = ""
    """What stands before its path."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark properties of the driver."""
    door: SlowDoor | None = None
    """What its requests go through, where it is a server."""


Opened = AbstractContextManager[Mapping[str, Store]]
"""The stores of two drivers, by their names."""


@contextmanager
def local(_directory: Path, names: Sequence[str]) -> Iterator[Mapping[str, Store]]:
    """Have both checkpoints on a local disk."""
    yield dict.fromkeys(names, Store())


@contextmanager
def far_by_hadoop(_directory: Path, names: Sequence[str]) -> Iterator[Mapping[str, Store]]:
    """Have both in a store of ours in which each call of Hadoop's takes 50 ms.

    Renames are a copy and a delete there, and it writes a name only if it is absent where that is asked for, as S3
    does. What S3A asks beyond these calls (it probes before it writes) is not in it.
    """
    slow = faulty_files.conf(latency=FAR_MILLIS, put_if_absent=False, conditional_writes=True)
    jar = {"spark.driver.extraClassPath": str(faulty_files.jar())}
    yield dict.fromkeys(names, Store("faulty:", {**slow, **jar}))


@contextmanager
def far_by_s3a(directory: Path, names: Sequence[str], millis: int) -> Iterator[Mapping[str, Store]]:
    """Have both on one S3 server of this machine, each behind a door that keeps each request for so long."""
    with ExitStack() as opened:
        port = opened.enter_context(object_store.server(directory))
        stores = {}
        for which in names:
            door = SlowDoor(port, millis / 1000)
            at = opened.enter_context(serving(door.handler())).server_port
            conf = object_store.conf(at, abortable=which == ABORTABLE)
            stores[which] = Store(f"s3a://{object_store.BUCKET}", conf, door)
        yield stores


@dataclass(frozen=True)
class Place:
    """Where the checkpoints are, and how often it is measured there."""

    figure: Figure
    batches: int
    """Of a run."""
    rounds: int
    """At the most."""
    opened: Callable[[Path, Sequence[str]], Opened] = local
    against: str = PLAIN
    """What a governed driver is compared with."""

    def measure(self, bench: Bench) -> Mapping[str, Measured]:
        """Run both in turns, each the first and the last of a pair; returns the ratio of each pair."""
        batches = max(10, round(self.batches * bench.scale))
        with self.runs(bench, batches) as runs:
            took: dict[str, list[float]] = {which: [] for which in runs}
            requests: dict[str, Mapping[str, float]] = {}
            for turn in range(min(bench.rounds, self.rounds)):
                first, second = rotated(tuple(runs), turn)
                of_pair: dict[str, list[float]] = {which: [] for which in runs}
                for which in (first, second, second, first):
                    seconds, requests[which] = runs[which].make()
                    of_pair[which].append(seconds)
                for which, found in of_pair.items():
                    took[which].append(median(found))
                bench.tell(
                    f"pair {turn + 1}: " + ", ".join(f"{n} {t[-1] * 1000:.0f} ms" for n, t in took.items())
                )
        ratios = divided(took[GOVERNED], took[self.against])
        details: dict[str, Any] = {**interval(ratios), "batches": batches, "seconds": took}
        if any(requests.values()):
            details["requests_of_a_batch"] = {
                which: {"all": round(sum(found.values()), 2), **found} for which, found in requests.items()
            }
        return {self.figure.id: Measured(ratios, details)}

    @contextmanager
    def runs(self, bench: Bench, batches: int) -> Iterator[Mapping[str, Runs]]:
        """Start both drivers, and have them warm."""
        name = self.figure.id
        with (
            self.opened(bench.place(f"{name}-store").directory, (self.against, GOVERNED)) as stores,
            plain_session(bench, f"{name}-plain", stores[self.against].conf) as plain,
            documented_session(bench, f"{name}-governed", NOTHING_SAID, stores[GOVERNED].conf) as governed,
        ):
            sessions = {self.against: plain, GOVERNED: governed}
            runs = {which: Runs(sessions[which], stores[which], batches) for which in sessions}
            for each in list(runs.values()) * WARM_UPS:
                each.make(warms_up=True)
            yield runs

    @property
    def scenario(self) -> Scenario:
        """What measures it."""
        return Scenario(self.figure.id, (self.figure,), self.measure)


@dataclass(frozen=True)
class Runs:
    """One driver, and what it is asked for again and again."""

    session: Session
    store: Store
    batches: int

    def make(self, *, warms_up: bool = False) -> tuple[float, Mapping[str, float]]:
        """Return how long a trigger took, as the median of one run, and what a batch asked, where a door knows.

        A door lets through at once what a run asks that only warms up.
        """
        door = self.store.door
        if door is not None:
            door.open_for_a_run(at_once=warms_up)
        asked = {"workload": "", "mode": "small", "batches": self.batches, "store": self.store.before}
        seconds = median(self.session.answer(self.session.ask(asked))["seconds"])
        return seconds, requests_of_a_batch(door.passed) if door is not None else {}


def at_s3(millis: int, batches: int, rounds: int) -> tuple[Place, Place]:
    """Return the places of an S3 server far away, beside plain drivers by default and with `ABORTABLE`."""
    place, opened = f"_at_{millis}ms_s3", partial(far_by_s3a, millis=millis)
    plain = Figure(f"fixed_batch_cost_vs_plain{place}", "ratio", Goal("<=", 0.8))
    abortable = Figure(f"fixed_batch_cost_vs_abortable{place}", "ratio", Report())
    return Place(plain, batches, rounds, opened), Place(abortable, batches, rounds, opened, ABORTABLE)


PLACES = (
    Place(Figure("fixed_batch_cost_vs_plain", "ratio", Goal("<=", 0.6)), batches=100, rounds=10),
    Place(
        Figure("fixed_batch_cost_vs_plain_at_50ms_store", "ratio", Goal("<=", 0.8)),
        batches=20,
        rounds=6,
        opened=far_by_hadoop,
    ),
    *at_s3(30, batches=20, rounds=4),
    *at_s3(100, batches=10, rounds=3),
)
SCENARIOS = tuple(place.scenario for place in PLACES)
