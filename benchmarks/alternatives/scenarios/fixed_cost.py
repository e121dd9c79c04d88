"""What a batch costs that has next to nothing to do: one row, no state.

A governed driver of which nobody has said anything plans each trigger and writes its checkpoint as `headgate-run` has
it written; the other one is Spark's own. Both run the same query for as many batches, in turns, and Spark's own
record says how long each trigger took. The checkpoint is in one of three places (`Opened`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
PLAIN, GOVERNED = BOTH = "plain", "headgate"
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


@contextmanager
def local(_directory: Path) -> Iterator[Mapping[str, Store]]:
    """Have both checkpoints on a local disk."""
    yield dict.fromkeys(BOTH, Store())


@contextmanager
def far_by_hadoop(_directory: Path) -> Iterator[Mapping[str, Store]]:
    """Have both in a store of ours in which each call of Hadoop's takes 50 ms.

    Renames are a copy and a delete there, and it writes a name only if it is absent where that is asked for, as S3
    does. What S3A asks beyond these calls (it probes before it writes) is not in it.
    """
    slow = faulty_files.conf(latency=FAR_MILLIS, put_if_absent=False, conditional_writes=True)
    jar = {"spark.driver.extraClassPath": str(faulty_files.jar())}
    yield dict.fromkeys(BOTH, Store("faulty:", {**slow, **jar}))


@contextmanager
def far_by_s3a(directory: Path, millis: int) -> Iterator[Mapping[str, Store]]:
    """Have all on one S3 server of this machine, each behind a door that keeps each request for so long."""
    with ExitStack() as opened:
        port = opened.enter_context(object_store.server(directory))
        stores = {}
        for which in (*BOTH, ABORTABLE):
            door = SlowDoor(port, millis / 1000)
            at = opened.enter_context(serving(door.handler())).server_port
            conf = object_store.conf(at, abortable=which == ABORTABLE)
            stores[which] = Store(f"s3a://{object_store.BUCKET}", conf, door)
        yield stores


@dataclass(frozen=True)
class Place:
    """Where the checkpoints are, and how often it is measured there."""

    figures: Mapping[str, Figure]
    """By the name of whom a governed driver is compared with."""
    batches: int
    """Of a run."""
    rounds: int
    """At the most."""
    opened: Callable[[Path], Opened] = local

    @property
    def name(self) -> str:
        """What its first figure is called."""
        return self.figures[PLAIN].id

    def measure(self, bench: Bench) -> Mapping[str, Measured]:
        """Run all in turns, there and back; returns the ratios of each time."""
        batches = max(10, round(self.batches * bench.scale))
        with self.runs(bench, batches) as runs:
            took: dict[str, list[float]] = {which: [] for which in runs}
            requests: dict[str, Mapping[str, float]] = {}
            for turn in range(min(bench.rounds, self.rounds)):
                there = rotated(tuple(runs), turn)
                of_turn: dict[str, list[float]] = {which: [] for which in runs}
                for which in (*there, *reversed(there)):
                    seconds, requests[which] = runs[which].make()
                    of_turn[which].append(seconds)
                for which, found in of_turn.items():
                    took[which].append(median(found))
                bench.tell(
                    f"pair {turn + 1}: " + ", ".join(f"{n} {t[-1] * 1000:.0f} ms" for n, t in took.items())
                )
        details: dict[str, Any] = {"batches": batches, "seconds": took}
        if any(requests.values()):
            details["requests_of_a_batch"] = {
                which: {"all": round(sum(found.values()), 2), **found} for which, found in requests.items()
            }
        ratios = {figure.id: divided(took[GOVERNED], took[which]) for which, figure in self.figures.items()}
        return {name: Measured(found, {**interval(found), **details}) for name, found in ratios.items()}

    @contextmanager
    def runs(self, bench: Bench, batches: int) -> Iterator[Mapping[str, Runs]]:
        """Start all drivers, and have them warm."""
        with ExitStack() as started:
            stores = started.enter_context(self.opened(bench.place(f"{self.name}-store").directory))
            runs = {}
            for which, store in stores.items():
                name = f"{self.name}-{which}"
                session = started.enter_context(
                    documented_session(bench, name, NOTHING_SAID, store.conf)
                    if which == GOVERNED
                    else plain_session(bench, name, store.conf)
                )
                runs[which] = Runs(session, store, batches)
            for each in list(runs.values()) * WARM_UPS:
                each.make(warms_up=True)
            yield runs

    @property
    def scenario(self) -> Scenario:
        """What measures it."""
        return Scenario(self.name, tuple(self.figures.values()), self.measure)


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


def compared(place: str, goal: float) -> dict[str, Figure]:
    """Return the figure of a governed driver against a plain one in a place."""
    return {PLAIN: Figure(f"fixed_batch_cost_vs_plain{place}", "ratio", Goal("<=", goal))}


def at_s3(millis: int, batches: int, rounds: int) -> Place:
    """Return the place of an S3 server that is so far away."""
    place = f"_at_{millis}ms_s3"
    abortable = Figure(f"fixed_batch_cost_vs_abortable{place}", "ratio", Report())
    figures = {**compared(place, 0.8), ABORTABLE: abortable}
    return Place(figures, batches, rounds, partial(far_by_s3a, millis=millis))


PLACES = (
    Place(compared("", 0.6), batches=100, rounds=10),
    Place(compared("_at_50ms_store", 0.8), batches=20, rounds=6, opened=far_by_hadoop),
    at_s3(30, batches=20, rounds=4),
    at_s3(100, batches=10, rounds=3),
)
SCENARIOS = tuple(place.scenario for place in PLACES)
