"""What users wrote in `backlog.query`: any PromQL, so anything may come of it.

Each has its own short time, which Prometheus is told too, and may return few samples. At each tick so many are asked
as `PrometheusOptions` allows, `chosen` says whose. One that fails is asked less and less often, and so is one that
takes long. They are evaluated beside the tick: it waits for them a moment, and takes a late answer with the next one.
Equal expressions are evaluated once for all who wrote them, unless what they read depends on whose each is.

As in a rule of Prometheus, an expression holds while it returns a sample. Returning none is a no, and so are
zeros; only an expression that could not be evaluated is unknown. NaN and an answer that was cut off are unknown
as well, where no other sample decides.

An answer stands until the expression is asked again, for five minutes at most: a verdict must not come and go because
others have expressions, too. Whoever has more than can be asked within that time has some that are never asked.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import TypeVar

import msgspec

from headgate.adapters.metrics.prometheus.answer import QueryFailure, Vector, VectorDecoder
from headgate.adapters.metrics.prometheus.client import PrometheusClient, PrometheusOptions, Queried, ignore
from headgate.adapters.metrics.prometheus.tenant import bound
from headgate.decision.backoff import wait_seconds
from headgate.reconcile.metric_table import LARGEST
from headgate.reconcile.ports import Outage, OutageReason
from headgate.threads import FairThreads

LONGEST = 4096
"""Characters of an expression; the resource refuses more."""
MOST_SAMPLES = 100
LARGEST_BYTES = 1024 * 1024
"""Of an answer: of servers that do not know the limit on samples."""
AT_ONCE = 4
SHARE = 2
"""How many of these may be of one namespace."""
PATIENCE_SECONDS = 0.3
"""How long a tick waits for the expressions that it asked."""
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0
PAUSE_PER_SECOND = 10.0
"""How long an expression is left alone for each second that it took: Prometheus evaluates it a tenth of the time."""
STANDS_SECONDS = 300.0
"""How long an answer stands while the expression waits for its turn."""

_WRONG = frozenset({OutageReason.QUERY_FAILED, OutageReason.MALFORMED})
"""Failures that lie in the expression, so that what it returned before stands no longer."""
_LABELS = re.compile(r"\{.*\}", re.DOTALL)
_DATA = re.compile(r"""\{.*\}|"[^"]*"|(?<=\bgot )\S+""", re.DOTALL)
"""What was read, in a warning. A refusal keeps what it quotes: that is the text of the expression itself."""


class _Labels(msgspec.Struct, gc=False):
    """None are read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of one expression."""

    value: float | None = None
    """The sample that decides; 0 where there is none; `None` where it could not be evaluated."""
    at: float = -math.inf
    """Unix time up to which `value` stands: at which it was asked for, or found to wait for its next turn."""
    failure: Outage | None = None
    """Why the last try failed."""
    asked_at: float = -math.inf
    failures: int = 0
    """Failures in a row."""
    seconds: float = 0.0
    """How long the last one took."""

    @property
    def is_due_at(self) -> float:
        """Unix time from which it may be asked again."""
        if self.failure is None:
            return self.asked_at + min(LONGEST_PAUSE_SECONDS, PAUSE_PER_SECOND * self.seconds)
        return self.asked_at + wait_seconds(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, self.failures, 0.0)

    def by(self, now: float) -> "Answer":
        """Return it with nothing dated in the future: after a clock was set back, that would put off the next try."""
        if self.asked_at <= now and self.at <= now:
            return self
        return replace(self, asked_at=min(self.asked_at, now), at=min(self.at, now))

    def failed(self, failure: Outage, now: float) -> "Answer":
        """Return what is known after a failure: nothing if the expression is wrong, else what was before."""
        failed = replace(self, failure=failure, asked_at=now, failures=self.failures + 1)
        return replace(failed, value=None) if failure.reason in _WRONG else failed

    def standing(self, now: float) -> "Answer":
        """Return what is known at a tick at which it was not asked."""
        if self.failure is not None or self.value is None or now - self.asked_at > STANDS_SECONDS:
            return self
        return replace(self, at=max(self.at, now))


UNASKED = Answer()
LEFT_OUT = Answer(
    failure=Outage(
        OutageReason.BACKLOG_QUERY_NOT_ASKED,
        "it is not asked: this namespace has more of them than its share of what the operator asks; write fewer, use "
        "the same one in several resources, or raise backlogQueriesPerTick",
    )
)
"""The answer for an expression that there is no room for."""

Question = tuple[str, str]
"""Whose an expression is as far as what it reads depends on that, and the expression."""


class Expressions:
    """The answers to all expressions. One thread asks and takes them; any may read them."""

    def __init__(
        self,
        options: PrometheusOptions,
        queried: Queried = ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._client = PrometheusClient(
            options,
            timeout_seconds=options.expression_timeout_seconds,
            largest_bytes=LARGEST_BYTES,
            queried=queried,
        )
        self._most = options.expressions_per_tick
        self._room = max(1, int(self._most * STANDS_SECONDS / options.tick_seconds))
        self._tenant_header = options.tenant_header
        self._namespace_label = options.namespace_label
        self._bound = lru_cache(maxsize=self._room)(bound)
        self._decoder = VectorDecoder(_Labels)
        self._threads = FairThreads(AT_ONCE, "backlog-query", share=SHARE)
        self._answers: dict[Question, Answer] = {}
        self._left_out: frozenset[Question] = frozenset()
        self._running: dict[Question, tuple[str, Future[tuple[float, float]], float]] = {}
        """Of whom, its answer with how long it took, and when it was asked for."""
        self._turn_at: dict[str, float] = {}
        """When one of each namespace was asked last."""

    def answer(self, namespace: str, expression: str) -> Answer:
        question = self._question(namespace, expression)
        return LEFT_OUT if question in self._left_out else self._answers.get(question, UNASKED)

    def ask(self, wanted: Mapping[str, Collection[str]], now: float) -> None:
        """Begin to evaluate what is due of `wanted`, by namespace; the answers to all else are forgotten."""
        questions = {
            namespace: sorted({self._question(namespace, one) for one in expressions})
            for namespace, expressions in wanted.items()
            if expressions
        }
        within = admitted(questions, self._room)
        known = {question for group in within.values() for question in group}
        self._left_out = frozenset(question for group in questions.values() for question in group) - known
        self._answers = {question: self._answers.get(question, UNASKED).by(now) for question in known}
        self._turn_at = {name: min(self._turn_at.get(name, -math.inf), now) for name in questions}
        waiting = {
            namespace: sorted(
                (
                    question
                    for question in group
                    if question not in self._running and self._answers[question].is_due_at <= now
                ),
                key=lambda question: self._answers[question].asked_at,
            )
            for namespace, group in within.items()
        }
        under_way = [namespace for namespace, _, _ in self._running.values()]
        for namespace, question in chosen(waiting, under_way, self._turn_at, self._most):
            future = self._threads.call(namespace, self._evaluate, question)
            self._running[question] = (namespace, future, now)
            self._turn_at[namespace] = now
        for question in known - {
            question for question, (_, _, asked_at) in self._running.items() if asked_at == now
        }:
            self._answers[question] = self._answers[question].standing(now)

    def take(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Take the answers that come within a moment."""
        wait([future for _, future, _ in self._running.values()], timeout=patience_seconds)
        for question, (_, future, asked_at) in list(self._running.items()):
            if not future.done():
                continue
            del self._running[question]
            if question not in self._answers:
                continue
            try:
                value, seconds = future.result()
                self._answers[question] = Answer(value, asked_at, asked_at=asked_at, seconds=seconds)
            except QueryFailure as failure:
                self._answers[question] = self._answers[question].failed(failure.outage, asked_at)

    def close(self) -> None:
        self._threads.close()
        self._client.close()

    def _question(self, namespace: str, expression: str) -> Question:
        return (namespace if self._tenant_header or self._namespace_label else "", expression)

    def _evaluate(self, question: Question) -> tuple[float, float]:
        tenant, expression = question
        if len(expression) > LONGEST:
            raise QueryFailure(OutageReason.QUERY_FAILED, f"it is longer than {LONGEST} characters")
        if self._namespace_label:
            expression = self._bound(expression, self._namespace_label, tenant)
        headers = {self._tenant_header: tenant} if self._tenant_header else {}
        began = self._clock()
        try:
            found = self._client.ask(expression, self._decoder, limit=MOST_SAMPLES, headers=headers)
        except QueryFailure as failure:
            outage = failure.outage
            raise QueryFailure(outage.reason, _LABELS.sub("{…}", outage.message)) from failure
        return deciding(found), self._clock() - began


def deciding(vector: Vector[_Labels]) -> float:
    """Return the first sample that is not zero, else 0; raises QueryFailure where one might be missing.

    Neither here nor where it was refused is told what the expression has read: that may be somebody else's.
    """
    values = [sample.number for sample in vector.samples]
    numbers = [value for value in values if not math.isnan(value)]
    found = next((value for value in numbers if value != 0), None)
    if found is not None:
        return max(-LARGEST, min(LARGEST, found))
    if vector.warnings:
        warnings = _DATA.sub("…", "; ".join(vector.warnings))
        raise QueryFailure(OutageReason.QUERY_FAILED, f"it may not be complete: {warnings}")
    if len(numbers) < len(values):
        raise QueryFailure(OutageReason.QUERY_FAILED, "it returns NaN")
    return 0.0


T = TypeVar("T")


def admitted(wanted: Mapping[str, Sequence[T]], room: int) -> dict[str, list[T]]:
    """Return the first ones of each namespace, as many as there is room for; the least of a namespace is one.

    What several namespaces want takes room once. The choice is the same each time, as long as `wanted` is.
    """
    if len({one for group in wanted.values() for one in group}) <= room:
        return {namespace: list(group) for namespace, group in wanted.items()}
    found: dict[str, list[T]] = {namespace: [] for namespace in wanted}
    taken: set[T] = set()
    for _, namespace, one in _in_turn({name: (0, group) for name, group in sorted(wanted.items())}):
        if one in taken or len(taken) < room or not found[namespace]:
            taken.add(one)
            found[namespace].append(one)
    return found


def chosen(
    waiting: Mapping[str, Sequence[T]], under_way: Iterable[str], turn_at: Mapping[str, float], most: int
) -> list[tuple[str, T]]:
    """Return what is asked now, the most urgent first, each once.

    `waiting` is what each namespace would have asked, in order; `under_way` names those that have something asked
    already, once for each; `turn_at` is when each had its last turn. Namespaces that have waited longest come first.
    As many are under way in the end as `most`; a namespace that has nothing under way gets its turn even so.
    """
    running = Counter(under_way)
    total = running.total()
    found: list[tuple[str, T]] = []
    known: set[T] = set()
    order = sorted(waiting, key=lambda namespace: turn_at.get(namespace, 0.0))
    for turn, namespace, one in _in_turn({name: (running[name], waiting[name]) for name in order}):
        if len(found) >= most:
            break
        if one in known or (turn > 0 and total + len(found) >= most):
            continue
        known.add(one)
        found.append((namespace, one))
    return found


def _in_turn(groups: Mapping[str, tuple[int, Sequence[T]]]) -> Iterator[tuple[int, str, T]]:
    """Yield the members of all groups by the number of their turn; each group counts from a number of its own."""
    left = {name: (first, iter(group)) for name, (first, group) in groups.items()}
    for turn in count():
        if not left:
            return
        for name, (first, group) in list(left.items()):
            if first > turn:
                continue
            try:
                yield turn, name, next(group)
            except StopIteration:
                del left[name]
