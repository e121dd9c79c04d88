"""What is written of a figure: its goal, what it came to, the runs behind it, and where it comes from.

How it is kept, beside all earlier attempts, says `benchmarks.result_file`.
"""

import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final, Literal, Self, get_args

from benchmarks.local.statistics import median
from benchmarks.provenance import commit, machine

COMMAND = "make bench-local"
PACKAGES = ("pyspark", "pandas", "pyarrow", "headgate")
SIGNIFICANT_DIGITS = 4


Relation = Literal["<=", ">="]


@dataclass(frozen=True)
class Goal:
    """What a figure has to reach."""

    relation: Relation
    bound: float

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a goal as rows have it. Raises ValueError where it is none."""
        relation, _, bound = text.partition(" ")
        known = {one: one for one in get_args(Relation)}
        if relation not in known:
            raise ValueError(f"{text!r} is no goal: one is a relation ({', '.join(known)}) and a number")
        return cls(known[relation], float(bound))

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
class Since:
    """When figures began to measure something else, as where a default changed."""

    commit: str
    day: str
    """The first day on which every attempt was made with it, of the form YYYY-MM-DD: those count that do not name it,
    because they are older than this note of it."""


COLUMNS: Final = Since("85090e77", "2026-11-28")
"""A governed query reads Kafka in columns by default; before, by Spark's reader, as `*_by_rows_*` does."""


@dataclass(frozen=True)
class Figure:
    """What is measured under one id."""

    id: str
    unit: str
    goal: Goal | Report
    since: Since | None = None
    """With what it began to measure what it does; None: it always has."""


@dataclass(frozen=True)
class Measured:
    """What came out for one figure."""

    runs: Sequence[float]
    """The figure of each run; its value is their median."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What stands behind it, for whoever doubts it."""


def pooled(times: Sequence[Measured]) -> Measured:
    """Return the runs of all times that a figure was measured, with the details of each; of one time, that."""
    if len(times) == 1:
        return times[0]
    runs = [run for measured in times for run in measured.runs]
    return Measured(runs, {"repeats": [dict(measured.details) for measured in times]})


DRIVER: Final = (
    "spark_jobs/headgate_contract",
    "spark_jobs/headgate_spark",
    "spark_jobs/shim/src",
    "benchmarks/local.yaml",
)
"""What runs in a driver, and how Spark is set there."""
OPERATOR: Final = ("operator/headgate", "spark_jobs/headgate_contract")
RECORDED: Final = (
    *DRIVER,
    "operator/headgate/cli/local",
    "operator/headgate/decision",
    *(f":(exclude)spark_jobs/headgate_spark/{unused}" for unused in ("backfill", "kafka")),
    ":(exclude)spark_jobs/shim/src/dev/headgate/spark/kafka",
)
"""What runs where a query under `headgate local` reads a recording: nothing of Kafka."""


@dataclass(frozen=True)
class Origin:
    """What writes a result file, and with what."""

    command: str
    versions: Callable[[], Mapping[str, str]]
    measures: tuple[str, ...] = DRIVER
    """Paths of what is measured in processes of its own, beside what measures it; some may be excluded."""


@dataclass(frozen=True)
class Call:
    """What all rows of one call of one scenario share."""

    command: str
    load_average: float
    """Processes that wanted to run in the minute before: above 0.5, somebody else was busy."""
    processor_speed: float
    """As `provenance.processor_speed` told it before."""
    versions: Mapping[str, str]
    """Of what is measured, by name."""
    commit: str = field(default_factory=commit)
    machine: Mapping[str, Any] = field(default_factory=machine)
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


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
        **series(figure),
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
        **series(figure),
        **origin(call),
    }


def series(figure: Figure) -> dict[str, Any]:
    """Return the member by which attempts that measured one thing are told from those that measured another."""
    return {"since": figure.since.commit} if figure.since else {}


def origin(call: Call) -> dict[str, Any]:
    """Return the members of a row that say where it comes from."""
    return {
        "command": call.command,
        "date": call.date,
        "commit": call.commit,
        "machine": dict(call.machine),
        "versions": dict(call.versions),
        "load_average": rounded(call.load_average),
        "processor_speed": rounded(call.processor_speed),
    }


def versions() -> dict[str, str]:
    """Return what is measured with."""
    return {name: version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "java": java_version(),
    }


LOCAL = Origin(COMMAND, versions, RECORDED)


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
