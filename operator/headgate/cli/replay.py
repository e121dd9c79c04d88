"""`headgate replay`: what would have been decided on recorded observations.

The rules of a verdict are best understood, and best argued about, on one's own history. Replay runs the
decision core of the running system over a recording, line by line, and prints what it would have done; memory
carries over from one line of a query to its next. Nothing is started, and nothing but two files is read.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from headgate.decision.memory import Memory
from headgate.decision.observation import Observation
from headgate.decision.policy import QueryPolicy
from headgate.decision.verdict import Verdict, decide
from headgate.decision.voters import Reason
from headgate.errors import InvalidInputError, UsageError

if TYPE_CHECKING:
    from headgate.cli.recording import Line, LinePosition


def replay(
    app: Annotated[Path, typer.Option(help="The resource: a YAML file with one SparkApplication.")],
    observations: Annotated[str, typer.Option(help="The recording: one JSON object a line; - reads stdin.")],
) -> None:
    """Print what would have been decided on recorded observations, one JSON object for each.

    A line of a recording: {"t": 12.5, "query": "delays", "sources": {"flights": {"pendingRecords": 1000000}}}.
    docs/decision.md has all members, and says how a run of headgate local becomes a recording.

    Exit code 0: all are decided. 2: a file cannot be read, is not of its form, or holds no observation.
    """
    from headgate.api.load import load_application
    from headgate.reconcile.policy import query_policies

    try:
        policies = query_policies(load_application(app))
    except InvalidInputError as error:
        raise UsageError(str(error)) from None
    file = "standard input" if observations == "-" else observations
    with _opened(observations) as recording:
        for document in verdicts(recording, file, policies):
            typer.echo(json.dumps(document))


def verdicts(
    recording: Iterable[bytes], file: str, policies: dict[str, QueryPolicy]
) -> Iterator[dict[str, Any]]:
    """Yield the verdict on each line of a recording, as the object that is printed.

    Raises UsageError, with line and field, at the first line that cannot be decided on, and where there is none.
    """
    from headgate.cli.recording import LinePosition, read_line

    replays = {name: _Replay(policy) for name, policy in policies.items()}
    for number, raw in enumerate(recording, start=1):
        line = read_line(raw, file, number)
        if line is None:
            continue
        place, query = LinePosition(file, number), line.observation.query
        if query not in replays:
            raise place.unknown(query, replays, "the queries of the resource", "query")
        yield _document(*replays[query].decide(line, place))
    if not any(each.last for each in replays.values()):
        raise UsageError(f"{file}: there is no observation in it; record one JSON object a line")


@dataclass(slots=True)
class _Replay:
    """One query on its way through the recording."""

    policy: QueryPolicy
    memory: Memory = field(default_factory=Memory)
    last: "Line | None" = None

    def decide(self, line: "Line", place: "LinePosition") -> tuple[Observation, Verdict]:
        self._check(line.observation, place)
        seen = line.observation
        if not line.has_attempt and self.last is not None:
            seen = replace(seen, attempt=self.last.observation.attempt)  # of the attempt before it
        verdict, self.memory = decide(seen, self._policy(seen), self.memory)
        self.last = replace(line, observation=seen)
        return seen, verdict

    def _check(self, seen: Observation, place: "LinePosition") -> None:
        known = [source.name for source in self.policy.sources]
        for name in seen.sources:
            if name not in known:
                raise place.unknown(name, known, f"the sources of query {seen.query}", "sources", name)
        if self.last is not None and seen.t < self.last.observation.t:
            before = f"{self.last.observation.t:g} on line {self.last.number}"
            raise place.error(f"{seen.t:g} is before {before}; sort the lines of a query by t", "t")

    def _policy(self, seen: Observation) -> QueryPolicy:
        """Leave out sources that cannot vote by a metric and that the line does not mention.

        Not one that said `Phase` last: leaving it out would end its backlog, and silence ends none.
        """
        memory = self.memory.for_attempt(seen.attempt, kept=False)
        awaited = (
            source
            for source in self.policy.sources
            if source.has_metric_voter
            or source.name in seen.sources
            or memory.latch(source.name, Reason.PHASE).answer
        )
        return replace(self.policy, sources=tuple(awaited))


def _opened(observations: str) -> AbstractContextManager[BinaryIO]:
    if observations == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(observations).open("rb")
    except OSError as error:
        message = f"{observations}: {error.strerror or error}; give the path of a recording, or - for stdin"
        raise UsageError(message) from None


def _document(seen: Observation, verdict: Verdict) -> dict[str, Any]:
    eta = verdict.eta_seconds
    return {
        "t": seen.t,
        "query": seen.query,
        "backlog": verdict.backlog,
        "reason": verdict.reason,
        # Without an interval the job's own trigger would hold; a recording has no job, and so none.
        "intervalSeconds": float(verdict.interval_seconds or 0),
        "etaSeconds": round(eta, 1) if isinstance(eta, float) else eta,  # it is not better known than that
        "voters": verdict.voters,
    }
