"""Feeds a surface with inputs: one after the other, each within its bounds.

PYTHONPATH=tests:. python -m support.fuzzing SURFACE FILE    one input that was kept
"""

from __future__ import annotations

import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from support.mutations import drawn, mutated
from support.surfaces import SURFACES, Surface

PROCESSOR_SECONDS = 2.0
"""Of one input of at most 64 KiB, on however busy a machine; what takes longer hangs."""


class HangError(Exception):
    """An input has taken more than its processor time."""


@dataclass(frozen=True)
class Defect:
    """An input that was neither read nor refused."""

    surface: str
    content: bytes
    told: str


def kept(folder: Path, surface: str, content: bytes) -> Path:
    """Write an input to a file of its own, and return that."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{surface}-{sha256(content).hexdigest()[:16]}"
    file.write_bytes(content)
    return file


def tried(surface: Surface, content: bytes) -> Defect | None:
    """Feed one input; return what is wrong, if anything is."""
    try:
        with _bounded():
            surface.feed(content)
    except surface.refusals:
        return None
    except (Exception, RecursionError):
        return Defect(surface.name, content, traceback.format_exc(limit=-4))
    return None


@contextmanager
def _bounded() -> Iterator[None]:
    """End with `HangError` once so much processor time has passed in this process."""

    def over(*_: object) -> None:
        raise HangError(f"it takes more than {PROCESSOR_SECONDS:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, PROCESSOR_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@dataclass
class Fed:
    """What came of a long run of one surface."""

    inputs: int = 0
    slowest_seconds: float = 0.0
    """Of processor time, of the input that takes longest whenever it is fed. What takes long only once is the
    first use of something, or a collection of garbage."""
    slowest: bytes = b""
    """That input."""
    grown_mib: float = 0.0
    """By how much the largest memory of the process has grown meanwhile."""
    defects: tuple[Defect, ...] = ()


def feed(surface: Surface, count: int, seed: int, most_defects: int = 5) -> Fed:
    """Feed so many inputs, drawn from the seed."""
    chance = random.Random(f"{surface.name} {seed}")
    examples = surface.examples
    fed, defects = Fed(), []
    before = _largest_mib()
    for example in examples:
        if (defect := tried(surface, example)) is not None:
            defects.append(defect)
    while fed.inputs < count and len(defects) < most_defects:
        content = mutated(chance.choice(examples), drawn(chance))
        defect, took = _timed(surface, content)
        if defect is None and took > fed.slowest_seconds:
            took = min(took, *(_timed(surface, content)[1] for _ in range(2)))
            if took > fed.slowest_seconds:
                fed.slowest_seconds, fed.slowest = took, content
        fed.inputs += 1
        if defect is not None:
            defects.append(defect)
    fed.grown_mib = _largest_mib() - before
    fed.defects = tuple(defects)
    return fed


def _timed(surface: Surface, content: bytes) -> tuple[Defect | None, float]:
    """Feed one input; return what is wrong, and the seconds of processor time that it took."""
    began = time.process_time()
    defect = tried(surface, content)
    return defect, time.process_time() - began


def _largest_mib() -> float:
    """Return the most memory that this program has had; `ru_maxrss` counts what had started it, too."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def main() -> int:
    """Feed one input that was kept; returns 1 where it is neither read nor refused."""
    name, file = sys.argv[1:]
    (surface,) = (one for one in SURFACES if one.name == name)
    defect, took = _timed(surface, Path(file).read_bytes())
    print(f"read or refused in {took:.3f} s of processor time" if defect is None else defect.told)
    return int(defect is not None)


if __name__ == "__main__":
    sys.exit(main())
