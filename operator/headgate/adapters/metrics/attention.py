"""Which applications are worth a turn of the loop now.

A turn reads, decides and compares for a few milliseconds; ten thousand of them do not fit into a tick. But what a
turn would decide depends on little: on which side of its thresholds each number is, whether it is known, which
attempt and which control document it belongs to. And people are told at once of a query that has ended, and of a
source that is out of reach, declared or not. All that is the *signature* of an application. While it stays as it was
at the last turn, another turn would decide the same; `tests/prometheus/test_attention_laws.py` holds this against a
loop that is turned at every tick.

Two things change with time alone. A re-entry clock may run while a value is above its re-entry threshold: the turn
that left it running says when the next one has to come, and that one is told until when every look has found the
value where it was. And numbers in a status grow old: an application gets a turn when one has moved by more than a
factor of two. When they are told again though they have not moved, the turns know themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from headgate.adapters.metrics.pulse import DriverPulse, SourcePulse
from headgate.adapters.metrics.rules import Bounds, Rule, SourceRule, rule_of
from headgate.api.application import SparkApplication
from headgate.key import Key
from headgate.reconcile.moves import FACTOR, SMALL_LAG_SECONDS, SMALL_PENDING_RECORDS

EARLY_SECONDS = 1.0
"""A turn runs a moment after its tick: a clock that runs out by then is worth a turn already."""

Signature = tuple[object, ...]
Answers = Callable[[Key, str, float], float | None]
"""Gives the value of an application's expression that is not from before a Unix time; `None`: there is none."""
_Answers = Callable[[str, float], float | None]
"""The same of one application."""
Range = tuple[float, float]
"""The smallest and the largest value that have not moved; a value outside has."""


@dataclass(slots=True)
class _Watched:
    """One application, and what it was like at its last turn."""

    rule: Rule
    signature: Signature | None = None
    """As of the last turn, or of the one that it was found worth since; `None`: there has been neither."""
    seen: Signature | None = None
    """As of the last tick."""
    looked_at: DriverPulse | None = None
    """What `seen` was made of, where it was made of nothing else."""
    read: Signature | None = None
    """As the turn under way has read it; `None` once a look has found another."""
    judged: Signature | None = None
    """As the last turn that has ended had read it; `None` once a look has found another."""
    unchanged_until: float | None = None
    """Unix time of the last look that has found what that turn had read, and each look between."""
    clock_at: float | None = None
    """Unix time from which a look is worth a turn for the sake of a re-entry clock, as that turn has said."""
    ranges: Mapping[tuple[str, str], tuple[Range, Range]] = field(default_factory=dict)
    """Of lag and pending, by query and source."""
    within: DriverPulse | None = None
    """A pulse all of which is in these ranges."""
    turned_at: float = -math.inf


class Attention:
    """Keeps what each application was like at its last turn, and compares."""

    def __init__(self, *, numbers_seconds: float = 30.0) -> None:
        self._numbers_seconds = numbers_seconds
        self._watched: dict[Key, _Watched] = {}
        self._looked_at = -math.inf

    def watch(self, key: Key, application: SparkApplication) -> None:
        """Judge an application by what it declares now."""
        rule = rule_of(application)
        watched = self._watched.get(key)
        if watched is None:
            self._watched[key] = _Watched(rule)
        elif watched.rule != rule:
            watched.rule, watched.looked_at = rule, None
            watched.signature = watched.judged = None

    def forget(self, key: Key) -> None:
        """Judge an application no more."""
        self._watched.pop(key, None)

    def rule(self, key: Key) -> Rule | None:
        """Return what is looked at of an application; `None` where it is not watched."""
        watched = self._watched.get(key)
        return None if watched is None else watched.rule

    def rules(self) -> Mapping[Key, Rule]:
        """Return what is looked at of each application."""
        return {key: watched.rule for key, watched in self._watched.copy().items()}

    def due(self, pulses: Mapping[Key, DriverPulse], answers: Answers, now: float) -> list[Key]:
        """Return the applications that are worth a turn, those first of which something has changed.

        They stay due until `turned` is told of them.
        """
        gap, self._looked_at = now - self._looked_at, now
        changed, aged = [], []
        for key, watched in self._watched.copy().items():
            pulse = pulses.get(key)
            fresh = None if pulse is None else pulse.since(now - watched.rule.stale_after_seconds)
            if self._has_changed(watched, fresh, partial(answers, key), now, gap):
                changed.append(key)
            elif self._has_aged(watched, fresh, now):
                aged.append(key)
        return changed + aged

    def turned(self, keys: Collection[Key], pulses: Mapping[Key, DriverPulse], now: float) -> None:
        """Take as known what these applications are like now."""
        for key in keys:
            if (watched := self._watched.get(key)) is None:
                continue
            watched.signature = watched.seen
            watched.turned_at = now
            pulse = pulses.get(key)
            sources = {} if pulse is None else pulse.sources
            watched.within = None
            watched.ranges = {
                rule.key: (
                    _range(source.lag, SMALL_LAG_SECONDS),
                    _range(source.pending, SMALL_PENDING_RECORDS),
                )
                for rule in watched.rule.sources
                if (source := sources.get(rule.key)) is not None
            }

    def judged(self, key: Key, *, clock_at: float | None) -> None:
        """Take note that a turn has ended, and from when on the next look is worth one though nothing is new."""
        if (watched := self._watched.get(key)) is not None:
            watched.judged, watched.read = watched.read, None
            watched.unchanged_until, watched.clock_at = None, clock_at

    def unchanged_until(self, key: Key) -> float | None:
        """Return the Unix time until which each look has found what the last turn had read.

        `None`: there has been no look since that turn, or the first one has found something else.
        """
        watched = self._watched.get(key)
        return None if watched is None else watched.unchanged_until

    def read(self, key: Key, pulse: DriverPulse | None, answers: Answers, now: float) -> None:
        """Take note that a turn reads this at `now`, whoever asked for the turn.

        Between two ticks readings grow stale. A turn that finds them so must be made up for when they are fresh
        again, even if they are then what they were at the tick before.
        """
        watched = self._watched.get(key)
        if watched is None:
            return
        fresh = None if pulse is None else pulse.since(now - watched.rule.stale_after_seconds)
        signature = signature_of(watched.rule, fresh, partial(answers, key), now)
        watched.signature = watched.read = watched.seen if signature == watched.seen else signature

    def _has_changed(
        self, watched: _Watched, pulse: DriverPulse | None, answers: _Answers, now: float, gap: float
    ) -> bool:
        """Return whether a turn could decide otherwise than the last one did."""
        signature = self._look(watched, pulse, answers, now)
        is_gap = not 0 <= gap <= watched.rule.stale_after_seconds
        if is_gap or signature != watched.read:
            watched.read = None
        if is_gap or signature != watched.judged:
            watched.judged = None
        else:
            watched.unchanged_until = now
        if signature != watched.signature:
            return True
        return watched.clock_at is not None and (is_gap or now + EARLY_SECONDS >= watched.clock_at)

    def _look(
        self, watched: _Watched, pulse: DriverPulse | None, answers: _Answers, now: float
    ) -> Signature | None:
        """Return the signature as of now; of what was looked at already it is still known.

        One that is as before stays the same object, which is compared in no time.
        """
        if pulse is None or watched.looked_at is not pulse:
            signature = signature_of(watched.rule, pulse, answers, now)
            watched.seen = watched.seen if signature == watched.seen else signature
            watched.looked_at = None if watched.rule.expressions else pulse
        return watched.seen

    def _has_aged(self, watched: _Watched, pulse: DriverPulse | None, now: float) -> bool:
        if now < watched.turned_at:
            return True
        if pulse is None or pulse is watched.within or now - watched.turned_at < self._numbers_seconds:
            return False
        for key, (lag, pending) in watched.ranges.items():
            source = pulse.sources.get(key)
            if source is not None and (_is_outside(source.lag, lag) or _is_outside(source.pending, pending)):
                return True
        watched.within = pulse
        return False


def signature_of(rule: Rule, pulse: DriverPulse | None, answers: _Answers, now: float) -> Signature:
    """Return the signature of an application as of `now`."""
    oldest = now - rule.stale_after_seconds
    said = tuple([_said(answers(expression, oldest)) for expression in rule.expressions])
    if pulse is None:
        return (said,)
    queries = [pulse.queries.get(name) for name in rule.queries]
    return (
        said,
        pulse.attempt,
        pulse.generation,
        len(pulse.queries),
        len(pulse.sources),
        tuple(sorted([name for name, query in pulse.queries.items() if query.active == 0])),
        tuple(sorted([one.out_of_reach for one in pulse.sources.values() if one.out_of_reach is not None])),
        tuple(
            [None if query is None else (query.active, query.started_at, query.votes) for query in queries]
        ),
        tuple([_source(one, pulse.sources.get(one.key)) for one in rule.sources]),
    )


def _source(rule: SourceRule, pulse: SourcePulse | None) -> tuple[object, ...] | None:
    if pulse is None:
        return None
    pending = pulse.pending
    return (
        _zone(pulse.lag, rule.lag),
        _zone(pending, rule.pending),
        None if pending is None else pending <= 0,
        pulse.phase,
        pulse.votes,
        pulse.paused,
        pulse.finished,
        None if pulse.held is None else max(pulse.held, key=pulse.held.__getitem__),
    )


def _zone(value: float | None, bounds: Bounds) -> int:
    """Return where a value is: -1 unknown, 0 not above its threshold, 1 above it, 2 above re-entry as well."""
    if value is None:
        return -1
    if value > bounds.reentry:
        return 2
    return 1 if value > bounds.threshold else 0


def _said(value: float | None) -> bool | None:
    return None if value is None else value != 0


def _range(value: float | None, floor: float) -> Range:
    """Return what is within a factor of two; values below the floor are all alike."""
    if value is None:
        return (-math.inf, math.inf)
    reference = max(value, floor)
    lowest = reference / FACTOR
    return (lowest if lowest > floor else -math.inf, reference * FACTOR)


def _is_outside(value: float | None, inside: Range) -> bool:
    return value is not None and not inside[0] <= value <= inside[1]
