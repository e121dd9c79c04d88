"""What `headgate doctor` looks at: each check is a function that yields findings, and nothing of it changes anything.

What cannot be seen, for want of a right or because nothing runs, is a finding of its own: it is not taken for good.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from headgate.api.status import QueryStatus
from headgate.cli.view.words import whose
from headgate.reconcile.readings import QueryMetrics


class Level(StrEnum):
    """How a check has come out."""

    OK = "ok"
    """All is well there."""
    UNKNOWN = "unknown"
    """It could not be looked at."""
    WARNING = "warning"
    """It works, and somebody should know of it."""
    PROBLEM = "problem"
    """It does not work."""


RUNBOOK: Final = "docs/runbook.md has a page on it"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check has found of one object."""

    check: str
    """The name of the check: `rights`, `metrics` and the like."""
    of: str
    """The object that it is about: `cluster`, `team/flights`, `this machine`."""
    level: Level
    says: str
    """What was found, in a sentence."""
    remedy: str = ""
    """What to do; empty where all is well."""


Said = Iterator[tuple[Level, str] | tuple[Level, str, str]]
"""What one check finds of one object: level, sentence and, where there is something to do, remedy."""


def found(check: str, of: str, said: Said) -> Iterator[CheckResult]:
    return (CheckResult(check, of, *each) for each in said)


def unmet(query: str, told: QueryStatus | QueryMetrics, snapshots: Mapping[str, str | None]) -> Iterator[str]:
    """Yield what a query is declared to do and does not. `snapshots` is by source what it cannot tell of its own."""
    query = whose(query, told.owner)
    if told.trigger_problem is not None:
        yield f"query {query} reacts no faster than its own trigger: {told.trigger_problem}"
    if told.real_time_refused is not None:
        yield f"query {query} stays in micro-batches though live.mode is RealTime: {told.real_time_refused}"
    for source, problem in snapshots.items():
        if problem is not None:
            yield f"source {source} of query {query} does not tell where its snapshot ends: {problem}"


def exit_code(findings: Iterable[CheckResult]) -> int:
    """Return 1 where something does not work, else 0."""
    return int(any(finding.level is Level.PROBLEM for finding in findings))
