"""A door to an S3 server of this machine that keeps each request for a while, as if the server were far away.

It notes what was asked for, so that one sees what a batch asks a store.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from support.object_store import Answer, Door

PLACE = re.compile(r"\.checkpoint(?P<beside>\.headgate)?(?:/(?P<folder>[a-z]+))?")
OFFSETS = re.compile(r"\.checkpoint/offsets/\.?(?P<batch>\d+)")


class Request(NamedTuple):
    """One request of a driver."""

    kind: str
    """What it does, and in which folder of the checkpoint: `PUT offsets`."""
    begins: int | None = None
    """The batch whose offsets it writes."""

    @classmethod
    def read(cls, command: str, path: str, *, copies: bool) -> Request:
        """Read it as HTTP has it."""
        path, does = unquote(path), command
        if "list-type=" in path:
            does = "LIST"
        elif copies:
            does = "COPY"
        where = PLACE.search(path)
        folder = f"{where['beside'] or ''} {where['folder'] or ''}".strip() if where else ""
        written = OFFSETS.search(path) if command == "PUT" else None
        return cls(f"{does} {folder or 'several'}", int(written["batch"]) if written else None)


@dataclass
class SlowDoor:
    """The door of one driver to the server at `port`, which keeps each request for so many seconds."""

    port: int
    seconds: float
    passed: list[Request] = field(default_factory=list)
    """What has come since it was last opened for a run."""
    _keeps: float = 0.0

    def open_for_a_run(self, *, at_once: bool) -> None:
        """Begin to note anew; requests are let through `at_once` where the run does not count."""
        self.passed = []
        self._keeps = 0.0 if at_once else self.seconds

    def handler(self) -> type[Door]:
        """Return what answers its requests."""
        door = self

        class Slow(Door):
            to = door.port

            def hand_on(self, body: bytes) -> Answer:
                copies = "x-amz-copy-source" in self.headers
                door.passed.append(Request.read(self.command, self.path, copies=copies))
                time.sleep(door._keeps)
                return super().hand_on(body)

        return Slow


def requests_of_a_batch(passed: Sequence[Request]) -> Mapping[str, float]:
    """Return how many requests of each kind a batch of a run made, the most frequent first.

    They count from the first write of the offsets of its second batch to that of its last one: in the first one a
    query begins. Raises ValueError where there are not as many batches.
    """
    begun: dict[int, int] = {}
    for at, request in enumerate(passed):
        if request.begins is not None:
            begun.setdefault(request.begins, at)
    if len(begun) < 3:
        raise ValueError(f"a run wrote the offsets of batches {sorted(begun)}; it needs three of them")
    first, last = sorted(begun)[1], max(begun)
    kinds = Counter(request.kind for request in passed[begun[first] : begun[last]])
    return {kind: round(count / (last - first), 2) for kind, count in kinds.most_common()}
