"""What users wrote in `backlog.query`: any PromQL, so anything may come of it.

Equal expressions are evaluated once for all who wrote them. Each has its own short time, which Prometheus is told
too, and may return few samples. At each tick so many are asked as `PrometheusOptions` allows, those first that
were asked longest ago; one that fails is asked less and less often. They are evaluated beside the tick: it waits
for them a moment, and takes a late answer with the next one.

As in a rule of Prometheus, an expression holds while it returns a sample. Returning none is a no, and so are
zeros; only an expression that could not be evaluated is unknown. NaN and an answer that was cut off are unknown
as well, where no other sample decides.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace

import msgspec

from headgate.adapters.prometheus.answer import Vector, VectorDecoder
from headgate.adapters.prometheus.client import PrometheusClient, Queried, ignore
from headgate.adapters.prometheus.failure import QueryFailure
from headgate.adapters.prometheus.options import PrometheusOptions
from headgate.adapters.threads import DaemonThreads
from headgate.reconcile.ports import Outage, OutageReason

LONGEST = 4096
"""Characters of an expression; the resource refuses more."""
MOST_SAMPLES = 100
LARGEST_BYTES = 1024 * 1024
"""Of an answer: of servers that do not know the limit on samples."""
AT_ONCE = 4
PATIENCE_SECONDS = 0.3
"""How long a tick waits for the expressions that it asked."""
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0

_WRONG = frozenset({OutageReason.QUERY_FAILED, OutageReason.MALFORMED})
"""Failures that lie in the expression, so that what it returned before stands no longer."""


class _Labels(msgspec.Struct, gc=False):
    """None are read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of one expression."""

    value: float | None = None
    """The sample that decides; 0 where there is none; `None` where it could not be evaluated."""
    at: float = -math.inf
    """Unix time at which `value` was asked for."""
    failure: Outage | None = None
    """Why the last try failed."""
    asked_at: float = -math.inf
    failures: int = 0
    """In a row."""

    @property
    def is_due_at(self) -> float:
        """Unix time from which it may be asked again."""
        if self.failure is None:
            return self.asked_at
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(self.failures - 1, 16))
        return self.asked_at + pause

    def followed_by(self, value: float, now: float) -> Answer:
        """Return what is known after a success."""
        return Answer(value=value, at=now, asked_at=now)

    def failed(self, failure: Outage, now: float) -> Answer:
        """Return what is known after a failure: nothing if the expression is wrong, else what was before."""
        failed = replace(self, failure=failure, asked_at=now, failures=self.failures + 1)
        return replace(failed, value=None) if failure.reason in _WRONG else failed


UNASKED = Answer()


class Expressions:
    """The answers to all expressions. One thread asks and takes them; any may read them."""

    def __init__(self, options: PrometheusOptions, queried: Queried = ignore) -> None:
        self._client = PrometheusClient(
            options,
            timeout_seconds=options.expression_timeout_seconds,
            largest_bytes=LARGEST_BYTES,
            queried=queried,
        )
        self._most = options.expressions_per_tick
        self._decoder = VectorDecoder(_Labels)
        self._threads = DaemonThreads(AT_ONCE, "backlog-query")
        self._answers: dict[str, Answer] = {}
        self._running: dict[str, tuple[Future[float], float]] = {}

    def answer(self, expression: str) -> Answer:
        """Return what is known of an expression."""
        return self._answers.get(expression, UNASKED)

    def ask(self, wanted: Collection[str], now: float) -> None:
        """Begin to evaluate what is due of `wanted`; the answers to all else are forgotten."""
        self._answers = {expression: self.answer(expression) for expression in wanted}
        for expression in self._due(now)[: max(0, self._most - len(self._running))]:
            self._running[expression] = (self._threads.call(self._evaluate, expression), now)

    def take(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Take the answers that come within a moment."""
        wait([future for future, _ in self._running.values()], timeout=patience_seconds)
        self._collect()

    def close(self) -> None:
        """Ask nothing any more."""
        self._threads.close()
        self._client.close()

    def _due(self, now: float) -> list[str]:
        due = [
            (answer.asked_at, expression)
            for expression, answer in self._answers.items()
            if expression not in self._running and answer.is_due_at <= now
        ]
        return [expression for _, expression in sorted(due)]

    def _collect(self) -> None:
        for expression, (future, asked_at) in list(self._running.items()):
            if not future.done():
                continue
            del self._running[expression]
            if expression not in self._answers:
                continue
            before = self._answers[expression]
            try:
                self._answers[expression] = before.followed_by(future.result(), asked_at)
            except QueryFailure as failure:
                self._answers[expression] = before.failed(failure.outage, asked_at)

    def _evaluate(self, expression: str) -> float:
        if len(expression) > LONGEST:
            raise QueryFailure(OutageReason.QUERY_FAILED, f"it is longer than {LONGEST} characters")
        return deciding(self._client.ask(expression, self._decoder, limit=MOST_SAMPLES))


def deciding(vector: Vector[_Labels]) -> float:
    """Return the first sample that is not zero, else 0; raises QueryFailure where one might be missing."""
    values = [sample.number for sample in vector.samples]
    numbers = [value for value in values if not math.isnan(value)]
    found = next((value for value in numbers if value != 0), None)
    if found is not None:
        return found
    if vector.warnings:
        raise QueryFailure(OutageReason.QUERY_FAILED, f"it may not be complete: {'; '.join(vector.warnings)}")
    if len(numbers) < len(values):
        raise QueryFailure(OutageReason.QUERY_FAILED, "it returns NaN")
    return 0.0
