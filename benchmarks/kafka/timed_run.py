"""`headgate-run` that notes how long each planning took, in FILE.

    python -m benchmarks.kafka.timed_run FILE [options of headgate-run] app.py …

Headgate is asked twice in a trigger: whether to look at what there is, and then for the plan. A planning is both
calls together, for the one source of the query, from their arrival in the planner's process to the answer. (The
exporter's histogram has each call alone, and in buckets.)
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

from headgate_spark.engine.governor import Governor
from headgate_spark.launch.command import main as headgate_run
from headgate_spark.runtime.main import main as plan

AS_PLANNER = "--as-planner"
"""In the place of the file, which comes next: this is the planner's process."""


@dataclass(frozen=True)
class Planning:
    """One planning that led to a batch."""

    at: float
    """When it ended, in seconds since 1970."""
    seconds: float
    first_seconds: float
    """Of them in the first call, in which the batch before is taken in."""


class Notes:
    """The file, and the planning that is going on."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", encoding="utf-8", buffering=1)
        self._calls: list[float] = []

    def begin(self) -> None:
        """A trigger has come."""
        self._calls.clear()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Surround one call."""
        began = time.perf_counter()
        yield
        self._calls.append(time.perf_counter() - began)

    def end(self, answer: str) -> None:
        """The planning has come to this; held sources are not noted."""
        if answer.startswith("offset:"):
            planning = Planning(time.time(), sum(self._calls), self._calls[0])
            self._file.write(json.dumps(asdict(planning)) + "\n")


def read(file: Path) -> list[Planning]:
    """Return the plannings noted so far."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [Planning(**json.loads(line)) for line in lines]


def timed(notes: Notes) -> type[Governor]:
    """Return a governor that notes what it takes."""

    class TimedGovernor(Governor):
        """Asks itself, with a watch."""

        def admit(self, handle: int, trigger: str, start: str | None) -> str:
            """First step of a planning."""
            notes.begin()
            with notes.call():
                return super().admit(handle, trigger, start)

        def plan(self, handle: int, trigger: str, latest: Mapping[int, str | None]) -> str:
            """Second step of a planning."""
            with notes.call():
                answer = super().plan(handle, trigger, latest)
            notes.end(answer)
            return answer

    return TimedGovernor


def main() -> None:
    """Run the command, or, as it starts it, its planner's process."""
    if sys.argv[1] == AS_PLANNER:
        with patch("headgate_spark.runtime.driver.Governor", timed(Notes(Path(sys.argv[2])))):
            plan()
    planner = [
        sys.executable,
        "-m",
        "benchmarks.kafka.timed_run",
        AS_PLANNER,
        str(Path(sys.argv[1]).absolute()),
    ]
    with patch("headgate_spark.launch.planner.COMMAND", planner):
        headgate_run(sys.argv[2:])


if __name__ == "__main__":
    main()
