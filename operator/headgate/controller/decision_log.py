"""Keeps track of what the reconciles decide: a line of the log for each decision, and the operator's metrics of them.

A decision is worth a line when it differs from the one before. The first reconcile of an application in this process
has none before it: what it decides is a decision only as far as the loop itself tells of it (`Outcome.events`
compares with the status that is on record), so that a restart of the operator does not read like a thousand
decisions.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from headgate.decision.driver import State, StepReason
from headgate.decision.verdict import Verdict
from headgate.decision.voters import Reason
from headgate.key import Key
from headgate.metrics import OperatorMetrics
from headgate.reconcile.events import BACKLOG_ENTERED, BACKLOG_LEFT
from headgate.reconcile.loop import Outcome
from headgate_contract.generations import is_later

REFUSED = "Refused"
"""The state that is counted for an application whose resource cannot be acted on."""

log = structlog.get_logger("headgate.decisions")

NOT_IN_BACKLOG = "Normal"
"""The reason that is counted for a verdict of a query that is not in backlog."""

_SAID_BY_DECISIONS = frozenset({BACKLOG_ENTERED, BACKLOG_LEFT, *StepReason})


@dataclass(frozen=True, slots=True)
class _Before:
    """What was decided last for an application."""

    state: State
    reason: str
    verdicts: Mapping[str, str]
    """By query: the reason of its backlog, or `NOT_IN_BACKLOG`."""


@dataclass(slots=True)
class DecisionLog:
    """Told of the outcome of each reconcile, and of applications that are gone."""

    metrics: OperatorMetrics
    _before: dict[Key, _Before] = field(default_factory=dict)
    _refused: set[Key] = field(default_factory=set)
    _published: dict[Key, tuple[int, float]] = field(default_factory=dict)
    """Generations of documents that a running driver was given and does not report yet, and when (Unix time)."""
    _unheard: set[Key] = field(default_factory=set)
    """Of whose drivers nobody knows what they have in force."""

    def __post_init__(self) -> None:
        for kind, reasons in (("verdict", (NOT_IN_BACKLOG, *Reason)), ("driver", StepReason)):
            for reason in reasons:
                self.metrics.decisions.labels(kind, reason)

    def decided(self, key: Key, outcome: Outcome) -> None:
        self._refused.discard(key)
        before = self._before.get(key)
        verdicts = {name: _reason(verdict) for name, verdict in outcome.plan.verdicts.items()}
        step = outcome.plan.step
        if before is not None:
            for query, reason in verdicts.items():
                if reason != before.verdicts.get(query, NOT_IN_BACKLOG):
                    self._verdict(key, query, outcome.plan.verdicts[query])
            if (step.state, str(step.reason)) != (before.state, before.reason):
                self.metrics.decisions.labels("driver", str(step.reason)).inc()
                log.info(step.message, application=str(key), state=str(step.state), reason=str(step.reason))
        for event in outcome.events:
            if before is None or event.reason not in _SAID_BY_DECISIONS:
                line = log.warning if event.is_warning else log.info
                line(event.message, application=str(key), reason=event.reason)
        self._before[key] = _Before(step.state, str(step.reason), verdicts)
        self._follow_document(key, outcome)

    def refused(self, key: Key) -> None:
        """Take in that a reconcile could not act on the resource; what it decides once it can is news again."""
        self._before.pop(key, None)
        self._refused.add(key)
        self._await_no_more(key)

    def gone(self, key: Key) -> None:
        self._refused.discard(key)
        if self._before.pop(key, None) is not None:
            log.info("the application is gone", application=str(key))
        self._await_no_more(key)

    def states(self) -> Mapping[str, int]:
        """Return how many applications are in each state; may be asked from any thread."""
        counts = Counter(one.state for one in list(self._before.values()))
        return {**{str(state): counts[state] for state in State}, REFUSED: len(self._refused)}

    def longest_pending(self, now: float) -> float:
        """Return for how long a running driver that is heard has not reported its document; any thread may ask.

        `now` is Unix time. A driver that nobody hears may have it.
        """
        heard = (at for key, (_, at) in list(self._published.items()) if key not in self._unheard)
        return max((now - at for at in heard), default=0.0)

    def _verdict(self, key: Key, query: str, verdict: Verdict) -> None:
        reason = _reason(verdict)
        self.metrics.decisions.labels("verdict", reason).inc()
        log.info(
            f"in backlog by {reason}" if verdict.backlog else "not in backlog",
            application=str(key),
            query=query,
            reason=reason,
            interval_seconds=verdict.interval_seconds,
            eta_seconds=verdict.eta_seconds,
        )

    def _follow_document(self, key: Key, outcome: Outcome) -> None:
        """Measure how long a running driver takes to report the document that it was given."""
        seen, document = outcome.seen, outcome.plan.document
        if outcome.plan.step.state is not State.RUNNING:
            self._await_no_more(key)  # one that starts reads it when it has started
            return
        reported = None if seen.metrics is None else seen.metrics.control_generation
        (self._unheard.add if reported is None else self._unheard.discard)(key)
        awaited, since = self._published.get(key, (None, seen.now))
        if awaited is not None and reported is not None and not is_later(awaited, reported):
            heard_at = seen.metrics.at if seen.metrics else seen.now
            self.metrics.acknowledged.observe(max(0.0, heard_at - since))
            del self._published[key]
            awaited = None
        is_new = seen.published is None or seen.published.generation != document.generation
        if awaited is None and reported is not None:  # an operator before this one may have published it
            is_new |= is_later(document.generation, reported)
        if is_new and awaited != document.generation:
            self._published[key] = document.generation, seen.now

    def _await_no_more(self, key: Key) -> None:
        self._published.pop(key, None)
        self._unheard.discard(key)


def _reason(verdict: Verdict) -> str:
    return str(verdict.reason) if verdict.backlog else NOT_IN_BACKLOG
