"""The result file: one row per figure, with its goal, what it came to, and the runs behind it.

A call may measure a part of the figures only; their rows replace those of an earlier call, and the others stay
with the date on which they were measured. Documents quote from this file alone.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import psutil

from benchmarks.local.statistics import median

COMMAND = "make bench-local"
PACKAGES = ("pyspark", "pandas", "pyarrow", "headgate")
SIGNIFICANT_DIGITS = 4


@dataclass(frozen=True)
class Goal:
    """What a figure has to reach."""

    relation: Literal["<=", ">="]
    bound: float

    def holds(self, value: float) -> bool:
        """Tell whether `value` reaches the goal."""
        return value <= self.bound if self.relation == "<=" else value >= self.bound

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g}"


@dataclass(frozen=True)
class Report:
    """Nothing to reach: the figure is there to be read, most often beside another one."""

    def holds(self, value: float) -> bool:  # noqa: ARG002  whatever it is
        """Tell that nothing was missed."""
        return True

    def __str__(self) -> str:
        return REPORT


REPORT: Final = "report"
"""The goal of a row that has none."""


@dataclass(frozen=True)
class Figure:
    """What is measured under one id."""

    id: str
    unit: str
    goal: Goal | Report


@dataclass(frozen=True)
class Measured:
    """What came out for one figure."""

    runs: Sequence[float]
    """The figure of each run; its value is their median."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What stands behind it, for whoever doubts it."""


@dataclass(frozen=True)
class Origin:
    """What writes a result file, and with what."""

    command: str
    versions: Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class Call:
    """What all rows of one call of one scenario share."""

    command: str
    load_average: float
    """Processes that wanted to run in the minute before: above 0.5, somebody else was busy."""
    processor_speed: float
    """As `processor_speed` told it before."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


def processor_speed() -> float:
    """Return how many millions of turns of an empty loop one core makes in a second, at its best of five times.

    A machine that is shared is now quicker, now slower by half. Times of two runs compare only where this is alike.
    """

    def seconds() -> float:
        began = time.perf_counter()
        for _ in range(1_000_000):
            pass
        return time.perf_counter() - began

    return 1 / min(seconds() for _ in range(5))


def row(figure: Figure, measured: Measured, call: Call) -> dict[str, Any]:
    """Return the row of a figure that was measured."""
    value = median(measured.runs)
    return {
        "id": figure.id,
        "value": rounded(value),
        "unit": figure.unit,
        "goal": str(figure.goal),
        "holds": figure.goal.holds(value),
        "runs": [rounded(run) for run in measured.runs],
        "details": rounded_all(measured.details),
        **origin(call),
    }


def failed_row(figure: Figure, reason: str, call: Call) -> dict[str, Any]:
    """Return the row of a figure that could not be measured: without a value, which is not 0."""
    return {
        "id": figure.id,
        "value": None,
        "unit": figure.unit,
        "goal": str(figure.goal),
        "holds": False,
        "runs": [],
        "error": reason,
        **origin(call),
    }


def origin(call: Call) -> dict[str, Any]:
    """Return the members of a row that say where it comes from."""
    return {
        "command": call.command,
        "date": call.date,
        "load_average": rounded(call.load_average),
        "processor_speed": rounded(call.processor_speed),
    }


def merged(
    before: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]], order: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the rows with `new` in place of those of the same id, in `order`; ids not in it are dropped."""
    by_id = {found["id"]: found for found in [*before, *new]}
    return [by_id[name] for name in order if name in by_id]


def write(
    file: Path, new: Iterable[Mapping[str, Any]], order: Sequence[str], by: Origin | None = None
) -> None:
    """Merge rows into the result file; it is replaced in one step."""
    by = by or LOCAL
    before = json.loads(file.read_text(encoding="utf-8"))["results"] if file.exists() else []
    document = {
        "command": by.command,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": by.versions(),
        "results": merged(before, new, order),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(file)


def machine() -> dict[str, Any]:
    """Return what is measured on."""
    memory = psutil.virtual_memory().total / 2**30
    found = {"cores": os.cpu_count(), "memory_gib": round(memory), "system": platform.system()}
    model = processor()
    return found | {"processor": model} if model else found


def processor() -> str | None:
    """Return the model of the processor, where Linux tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def versions() -> dict[str, str]:
    """Return what is measured with."""
    return {name: version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "java": java_version(),
    }


LOCAL = Origin(COMMAND, versions)


def java_version() -> str:
    """Return the version that `java -version` names, which it writes in quotes."""
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=30, check=True)
    return answer.stderr.split('"')[1]


def rounded(value: float) -> float:
    """Return `value` to four significant digits: more would be noise."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def rounded_all(value: Any) -> Any:
    """Return `value` with every number with a fraction in it rounded."""
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, Mapping):
        return {key: rounded_all(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [rounded_all(member) for member in value]
    return value
