"""Two drivers race for a checkpoint on an S3 server, and both write one entry of it at the same moment.

Each driver asks the server through a door of its own, which knows who it is. Whoever comes with the entry of a race
stands still before it, until the other one, which has taken the checkpoint over meanwhile, comes with the same entry;
then both go on at once. What becomes of it is judged as in the races on a store of ours (`support.fence_races`).
"""

from __future__ import annotations

import re
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from xml.etree import ElementTree as Xml

from benchmarks.fence_races import Raced, raced
from support.fence_races import CHECKPOINT, FIRST, JOURNAL, PAUSES, SECOND, Race
from support.http_server import serving
from support.object_store import Answer, Door

ENTRY = re.compile(r"/bucket(?P<folder>/.+)/ck/(?P<log>offsets|commits)/(?P<batch>\d+)")
STANDS_SECONDS, QUIET_SECONDS = 0.0005, 60.0


def drawn(seed: int) -> Race:
    """Return the race of a seed: one in which the second driver comes to where the first one stands."""
    race = Race.drawn(seed)
    return replace(
        race, second_commits=max(1, race.second_commits), by_conditional_write=True, take_over_after="0s"
    )


@dataclass
class Doors:
    """The ways of the two drivers to the server at `port`; a `Store` of races."""

    port: int
    """The server's."""
    environment: Mapping[str, str]
    s3a: Mapping[str, str]
    """Hadoop's settings, but for the endpoint."""
    ports: dict[str, int] = field(default_factory=dict)
    """The door of each driver."""
    met: list[str] = field(default_factory=list)
    """Entries that both have written at once."""
    _under_way: Counter[str] = field(default_factory=Counter)
    """Entries that are being written, by the folder of their race: one that is stopped does not take back its own."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def checkpoint(self, folder: Path) -> str:
        """Return where it is: keys of the bucket are paths of this machine."""
        return f"s3a://bucket{folder / CHECKPOINT}"

    def settings(self, race: Race, name: str, folder: Path) -> Mapping[str, str]:
        """Return those of S3A, by the door of this driver."""
        return {**self.s3a, "fs.s3a.endpoint": f"http://127.0.0.1:{self.ports[name]}"}

    def fetch(self, folder: Path) -> None:
        """Copy it to this machine, once nothing of it is being written any more."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._under_way[str(folder)], QUIET_SECONDS), folder
        prefix = urllib.parse.quote(f"{folder / CHECKPOINT}/".lstrip("/"))
        url = f"http://127.0.0.1:{self.port}/bucket"
        listed = Xml.fromstring(fetched(f"{url}?list-type=2&prefix={prefix}"))
        for element in listed.iter():
            key = element.text or ""
            if element.tag.rpartition("}")[2] == "Key" and not key.endswith("/"):
                (copy := Path(f"/{key}")).parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(fetched(f"{url}/{urllib.parse.quote(key)}"))

    @contextmanager
    def entry(self, entry: re.Match[str] | None) -> Iterator[None]:
        """Hold the writing of an entry until it is its turn; of anything else there is nothing to hold."""
        if entry is None:
            yield
            return
        self._count(entry["folder"], 1)
        try:
            self._stand(entry)
            yield
        finally:
            self._count(entry["folder"], -1)

    def _count(self, folder: str, more: int) -> None:
        with self._changed:
            self._under_way[folder] += more
            self._changed.notify_all()

    def _stand(self, entry: re.Match[str]) -> None:
        """Wait for the other driver where this one is to; where the other one stands, have it go on."""
        point = Path(entry["folder"]) / PAUSES / f"{entry['log']}.{entry['batch']}"
        reached = point.with_name(f"{point.name}.reached")
        try:
            point.rename(reached)
        except FileNotFoundError:
            if reached.exists():
                self.met.append(entry[0])
                reached.unlink(missing_ok=True)
            return
        while reached.exists():
            time.sleep(STANDS_SECONDS)


@contextmanager
def doors(port: int, environment: Mapping[str, str], s3a: Mapping[str, str]) -> Iterator[Doors]:
    """Open a door for each of the two drivers to the server at a port."""
    made = Doors(port, environment, s3a)
    with ExitStack() as opened:
        for name in (FIRST, SECOND):
            made.ports[name] = opened.enter_context(serving(door(made, name))).server_port
        yield made


def door(doors: Doors, name: str) -> type[Door]:
    """Return what hands on the requests of a driver, and tells which entries it has written."""

    class OfADriver(Door):
        to = doors.port

        def hand_on(self, body: bytes) -> Answer:
            entry = ENTRY.fullmatch(self.path.partition("?")[0]) if self.command == "PUT" else None
            with doors.entry(entry):
                answer = super().hand_on(body)
                if entry and answer.status == HTTPStatus.OK:
                    wrote(name, entry)
            return answer

    return OfADriver


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        content: bytes = answer.read()
        return content


def wrote(name: str, entry: re.Match[str]) -> None:
    """Note that a driver has written an entry."""
    with (Path(entry["folder"]) / JOURNAL).open("a") as journal:
        journal.write(f"{name} {entry['log']} {entry['batch']}\n")


def race(doors: Doors, races: int, first_seed: int) -> Raced:
    """Run races; fails with each that broke a law, and where no two drivers have met."""
    found = raced(races, first_seed, doors, drawn)
    for seed, what in found.broken.items():
        print(f"{what}\n  python tests/object_store/run.py --races 1 --seed {seed}", flush=True)
    assert not found.broken, f"{len(found.broken)} of {races} races broke a law"
    assert doors.met, "no two drivers have written one entry at the same moment"
    return found
