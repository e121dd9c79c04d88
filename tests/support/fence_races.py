"""Races of two real drivers for one checkpoint, on a store that nobody can lock, and the laws that each must keep.

The store is one of ours (`faulty:`), unless another one is given.

A race is a function of its seed: at which entry the first driver stands still between its look and its write, how far
the second one comes until it goes on, and how the store keeps two writers apart. What the machine does in between is
not: a seed that failed is run again until it fails again.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from laws.cover import audit_checkpoint

TESTS = Path(__file__).parents[1]
DEADLINE_SECONDS = 120.0
LOOK_SECONDS = 0.1
FIRST, SECOND = "first", "second"
CHECKPOINT, PAUSES, JOURNAL = "ck", "pauses", "journal"
"""In the folder of a race."""
ENDS = {"stopped", "fenced", "refused", "taken", "not empty"}


class RaceError(AssertionError):
    """A race has broken a law."""


@dataclass(frozen=True)
class Race:
    """What a seed says of a race."""

    seed: int
    point: str | None
    """The entry at which the first driver stands still; `None`: both start at once."""
    second_commits: int
    """How many batches the second one commits before the first goes on."""
    by_conditional_write: bool
    take_over_after: str

    @classmethod
    def drawn(cls, seed: int) -> Race:
        """Return the race of a seed."""
        drawn = random.Random(seed)
        point = drawn.choice(
            [None, *(f"{log}.{batch}" for log in ("offsets", "commits") for batch in range(4))]
        )
        return cls(
            seed, point, drawn.randint(0, 3), drawn.random() < 0.5, drawn.choice(["0s", "0s", "0s", "1s"])
        )


class Store(Protocol):
    """Where checkpoints of races are. It heeds `PAUSES` and writes `JOURNAL` in the folder of each, as `faulty:`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What a driver is started with besides."""

    def checkpoint(self, folder: Path) -> str:
        """Return where the checkpoint of the race in `folder` is."""

    def settings(self, race: Race, name: str, folder: Path) -> Mapping[str, str]:
        """Return Hadoop's settings for the driver of a name."""

    def fetch(self, folder: Path) -> None:
        """Have the checkpoint of a race that is over in `folder`, in `CHECKPOINT`."""


class Faulty:
    """This machine's files, as a store that is not this machine's."""

    environment: Mapping[str, str] = MappingProxyType({})

    def checkpoint(self, folder: Path) -> str:
        """Return where it is."""
        return f"faulty:{folder / CHECKPOINT}"

    def settings(self, race: Race, name: str, folder: Path) -> Mapping[str, str]:
        """Return how it keeps two writers apart, and where it tells who has written what."""
        said = {
            "name": name,
            "pauses": str(folder / PAUSES),
            "journal": str(folder / JOURNAL),
            "put-if-absent": str(not race.by_conditional_write).lower(),
            "conditional-writes": str(race.by_conditional_write).lower(),
        }
        return {f"fs.faulty.{setting}": value for setting, value in said.items()}

    def fetch(self, folder: Path) -> None:
        """It is there."""


FAULTY = Faulty()


class Racer:
    """One of the two drivers."""

    def __init__(self, name: str, directory: Path, store: Store = FAULTY) -> None:
        self.name = name
        self._lock = threading.Lock()
        directory.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": str(TESTS), **store.environment}
        self.log = directory / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.fence_racer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=directory,
                text=True,
            )

    def do(self, what: str, **more: Any) -> dict[str, Any]:
        """Have it do something; returns how its query is then."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps({"do": what, **more}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} has ended: {self.log.read_text(errors='replace')[-2000:]}")
        return dict(json.loads(line))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended by itself, and whoever asked it last was told so
            self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def racers(directory: Path, store: Store = FAULTY) -> Iterator[tuple[Racer, Racer]]:
    """Start two drivers."""
    both = Racer(FIRST, directory, store), Racer(SECOND, directory, store)
    try:
        yield both
    finally:
        for each in both:
            each.close()


def run(
    race: Race, first: Racer, second: Racer, folder: Path, lane: int = 0, store: Store = FAULTY
) -> tuple[str, str]:
    """Run a race in a new folder; return how the two have ended. Raises `RaceError`.

    No other race may be run in this lane meanwhile, nor one with another `take_over_after` in any.
    """
    pauses = folder / PAUSES
    pauses.mkdir(parents=True)
    reached = pauses / f"{race.point}.reached"
    if race.point is not None:
        (pauses / race.point).touch()

    def begin(racer: Racer, rows: int) -> None:
        racer.do(
            "start",
            lane=lane,
            rows=rows,
            checkpoint=store.checkpoint(folder),
            takeOverAfter=race.take_over_after,
            store=dict(store.settings(race, racer.name, folder)),
        )

    def has_ended(racer: Racer) -> bool:
        return bool(racer.do("how", lane=lane)["end"] != "running")

    begin(first, 10)
    if race.point is not None:
        _await(lambda: reached.exists() or has_ended(first), f"{race.point} of the first")
    begin(second, 7)
    _await(
        lambda: _commits_of(SECOND, folder) >= race.second_commits or has_ended(second),
        "what the second was to commit",
    )
    reached.unlink(missing_ok=True)
    _await(lambda: has_ended(first) or has_ended(second), "the end of one of them")
    ends = [racer.do("stop", lane=lane) for racer in (first, second)]
    store.fetch(folder)
    _check(folder, folder / CHECKPOINT, ends)
    return ends[0]["end"], ends[1]["end"]


def _check(folder: Path, checkpoint: Path, ends: list[dict[str, Any]]) -> None:
    for each in ends:
        if each["end"] not in ENDS:
            raise RaceError(f"ended otherwise: {each['end'][:500]}")
    audit_checkpoint(checkpoint)
    committed = sorted((batch, name) for name, log, batch in _journal(folder) if log == "commits")
    if len({batch for batch, _ in committed}) != len(committed):
        raise RaceError(f"a batch was committed twice: {committed}")
    names = [name for _, name in committed]
    if names != sorted(names) and names != sorted(names, reverse=True):
        raise RaceError(f"a driver has committed after the one that took its checkpoint: {committed}")
    for name, each in zip((FIRST, SECOND), ends, strict=True):
        for batch, start, end in each["batches"]:
            planned = checkpoint / "offsets" / str(batch)
            if (batch, name) in committed and planned.exists() and end != _end(planned):
                raise RaceError(
                    f"{name} has run batch {batch} from {start} to {end}; its entry says {_end(planned)}"
                )


def _end(entry: Path) -> int:
    return int(json.loads(entry.read_text().splitlines()[2])["offset"])


def _journal(folder: Path) -> list[tuple[str, str, int]]:
    journal = folder / JOURNAL
    lines = journal.read_text().splitlines() if journal.exists() else []
    told = (line.split(" ") for line in lines)
    return [
        (name, log, int(entry))
        for name, log, entry in told
        if log in ("offsets", "commits") and entry.isdigit()
    ]


def _commits_of(name: str, folder: Path) -> int:
    return sum(1 for who, log, _ in _journal(folder) if (who, log) == (name, "commits"))


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RaceError(f"not in {DEADLINE_SECONDS:g} s: {what}")
        time.sleep(LOOK_SECONDS)
