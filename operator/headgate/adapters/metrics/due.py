"""Which applications are worth a reconcile now.

A reconcile reads, decides and compares for a few milliseconds; ten thousand of them do not fit into a tick. But what
a reconcile would decide depends on little: on the inputs of its verdicts (`decision.inputs`), on the attempt and on
the control document that the driver has. And people are told at once of a query that has ended, of what holds a
source, and of a source that is out of reach, declared or not. All that is the *signature* of an application. While
it stays as it was at the last reconcile, another reconcile would decide the same. What else a driver complains of is
among its details, which are read less often, and is told when it is read: executors that are missing, above all.

Two things change with time alone. A re-entry clock may run while a value is above its re-entry threshold: the
reconcile that left it running says when the next one has to come, and that one is told until when every look has
found the value where it was. And numbers in a status grow old: an application is reconciled when one has moved by
more than a factor of two. When they are told again though they have not moved, the reconciles know themselves.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from headgate.adapters.metrics.complaints import Complaints, complaints_in
from headgate.adapters.metrics.watched import Watched, watched
from headgate.api.annotations import SourceId
from headgate.api.application import SparkApplication
from headgate.decision.inputs import SourceInputs, Steps, inputs_of
from headgate.key import Key
from headgate.reconcile.metric_table import since
from headgate.reconcile.observe import observation_of
from headgate.reconcile.readings import DriverMetrics, QueryMetrics, SourceMetrics
from headgate.reconcile.significance import FACTOR, SMALL_LAG_SECONDS, SMALL_PENDING_RECORDS
from headgate.reconcile.track import longest_hold

EARLY_SECONDS = 1.0
"""A reconcile runs a moment after its tick: a clock that runs out by then is worth a reconcile already."""

Signature = tuple[object, ...]
Answers = Callable[[Key, str, float], float | None]
"""Gives the value of an application's expression that is not from before a Unix time; `None`: there is none."""
Silence = Callable[[Key], str | None]
"""Gives the reason for which nothing is known of an application's driver."""
Range = tuple[float, float]
"""The smallest and the largest value that have not moved; a value outside has."""


@dataclass(slots=True)
class _Looked:
    """One application, and what it was like at its last reconcile."""

    key: Key
    watched: Watched
    signature: Signature | None = None
    """As of the last reconcile, or of the one that it was found worth since; `None`: there has been neither."""
    seen: Signature | None = None
    """As of the last tick."""
    looked_at: DriverMetrics | None = None
    """What `seen` was made of, where it was made of nothing else."""
    read: Signature | None = None
    """As the reconcile under way has read it; `None` once a look has found another."""
    judged: Signature | None = None
    """As the last reconcile that has ended had read it; `None` once a look has found another."""
    unchanged_until: float | None = None
    """Unix time of the last look that has found what that reconcile had read, and each look between."""
    clock_at: float | None = None
    """Unix time from which a look is worth a reconcile for the sake of a re-entry clock, as the last one has said."""
    details: DriverMetrics | None = None
    """As of the last tick, or of a reconcile since."""
    complaints: Complaints | None = None
    """What is in them; `None`: they are not known."""
    told: Complaints | None = None
    """The complaints as of the last reconcile, or of the one that it was found worth since."""
    silence: str | None = None
    """Why nothing is known of its driver, as of the last tick; `None`: something is."""
    silence_since: float = -math.inf
    silence_told: str | None = None
    """The same as of the last reconcile, or of the one that it was found worth since."""
    ranges: Mapping[SourceId, tuple[Range, Range]] = field(default_factory=dict)
    """The ranges of lag and pending records, by query and source."""
    within: DriverMetrics | None = None
    """A driver all of whose numbers are in these ranges."""
    queued_at: float = -math.inf


class Due:
    """Keeps what each application was like at its last reconcile, and compares.

    Without `answers` nothing is known of expressions: there is no Prometheus to evaluate them.
    """

    def __init__(
        self, answers: Answers = lambda _key, _text, _oldest: None, *, numbers_seconds: float = 30.0
    ) -> None:
        self._answers = answers
        self._numbers_seconds = numbers_seconds
        self._looked: dict[Key, _Looked] = {}
        self._looked_at = -math.inf

    def watch(self, key: Key, application: SparkApplication) -> None:
        now = watched(application)
        looked = self._looked.get(key)
        if looked is None:
            self._looked[key] = _Looked(key, now)
        elif looked.watched != now:
            looked.watched, looked.looked_at, looked.details, looked.complaints = now, None, None, None
            looked.signature = looked.judged = None

    def forget(self, key: Key) -> None:
        self._looked.pop(key, None)

    def watched(self, key: Key) -> Watched | None:
        looked = self._looked.get(key)
        return None if looked is None else looked.watched

    def all_watched(self) -> Mapping[Key, Watched]:
        return {key: looked.watched for key, looked in self._looked.copy().items()}

    def look(
        self,
        drivers: Mapping[Key, DriverMetrics],
        now: float,
        details: Mapping[Key, DriverMetrics],
        silence: Silence = lambda _: None,
    ) -> list[Key]:
        """Return the applications that are worth a reconcile, those first of which something has changed.

        They stay due until `queued` is told of them. `details` has what a driver says that no vote depends on.
        """
        gap, self._looked_at = now - self._looked_at, now
        changed, aged = [], []
        for key, looked in self._looked.copy().items():
            driver = drivers.get(key)
            fresh = None if driver is None else since(driver, now - looked.watched.stale_after_seconds)
            has_changed = self._has_changed(looked, fresh, now, gap)
            said = _complaints(looked, details.get(key), driver)
            is_known = said is not None or fresh is not None
            if has_changed or (is_known and said != looked.told):
                changed.append(key)
            elif self._has_aged(looked, fresh, now) | self._is_silent_otherwise(looked, fresh, silence, now):
                aged.append(key)
        return changed + aged

    def queued(
        self,
        keys: Collection[Key],
        drivers: Mapping[Key, DriverMetrics],
        now: float,
        details: Mapping[Key, DriverMetrics],
    ) -> None:
        """Take as known what these applications are like now."""
        for key in keys:
            if (looked := self._looked.get(key)) is None:
                continue
            driver = drivers.get(key)
            looked.signature, looked.told = looked.seen, _complaints(looked, details.get(key), driver)
            looked.queued_at, looked.silence_told = now, looked.silence
            looked.within = None
            looked.ranges = {
                one.id: (
                    _range(source.watermark_lag_seconds, SMALL_LAG_SECONDS),
                    _range(source.pending_records, SMALL_PENDING_RECORDS),
                )
                for one in looked.watched.sources
                if (source := _source_at(driver, one.id)) is not None
            }

    def reconciled(self, key: Key, *, clock_at: float | None) -> None:
        """Take note that a reconcile has ended, and from when on the next look is worth one though nothing is new."""
        if (looked := self._looked.get(key)) is not None:
            looked.judged, looked.read = looked.read, None
            looked.unchanged_until, looked.clock_at = None, clock_at

    def unchanged_until(self, key: Key) -> float | None:
        """Return the Unix time until which each look has found what the last reconcile had read.

        `None`: there has been no look since that reconcile, or the first one has found something else.
        """
        looked = self._looked.get(key)
        return None if looked is None else looked.unchanged_until

    def read(
        self,
        key: Key,
        driver: DriverMetrics | None,
        now: float,
        details: DriverMetrics | None,
        silence: str | None = None,
    ) -> None:
        """Take note that a reconcile reads this at `now`, whoever asked for the reconcile.

        Between two ticks readings grow stale. A reconcile that finds them so must be made up for when they are fresh
        again, even if they are then what they were at the tick before. `silence` is why nothing is known of the
        driver, if nothing is: the reconcile tells it.
        """
        looked = self._looked.get(key)
        if looked is None:
            return
        fresh = None if driver is None else since(driver, now - looked.watched.stale_after_seconds)
        looked.told, looked.silence_told = _complaints(looked, details, driver), silence
        signature = signature_of(looked.watched, fresh, key, self._answers, now)
        looked.signature = looked.read = looked.seen if signature == looked.seen else signature

    def _has_changed(self, looked: _Looked, driver: DriverMetrics | None, now: float, gap: float) -> bool:
        """Return whether a reconcile could decide otherwise than the last one did."""
        signature = self._signature(looked, driver, now)
        is_gap = not 0 <= gap <= looked.watched.stale_after_seconds
        if is_gap or signature != looked.read:
            looked.read = None
        if is_gap or signature != looked.judged:
            looked.judged = None
        else:
            looked.unchanged_until = now
        if signature != looked.signature:
            return True
        return looked.clock_at is not None and (is_gap or now + EARLY_SECONDS >= looked.clock_at)

    def _signature(self, looked: _Looked, driver: DriverMetrics | None, now: float) -> Signature | None:
        """Return the signature as of now; of what was looked at already it is still known.

        One that is as before stays the same object, which is compared in no time.
        """
        if driver is None or looked.looked_at is not driver:
            signature = signature_of(looked.watched, driver, looked.key, self._answers, now)
            looked.seen = looked.seen if signature == looked.seen else signature
            looked.looked_at = None if looked.watched.expressions else driver
        return looked.seen

    def _is_silent_otherwise(
        self, looked: _Looked, driver: DriverMetrics | None, silence: Silence, now: float
    ) -> bool:
        """Return whether nothing is known for another reason than was told, and has not been for a while.

        A Prometheus that is back has no series for a moment, and one that has too much to do answers now and then:
        of all its applications at once, none of which is worth a write for that.
        """
        reason = None if driver is not None else silence(looked.key)
        if reason != looked.silence:
            looked.silence, looked.silence_since = reason, now
        if reason is None or reason == looked.silence_told:
            return False
        return not 0 <= now - looked.silence_since < self._numbers_seconds

    def _has_aged(self, looked: _Looked, driver: DriverMetrics | None, now: float) -> bool:
        if now < looked.queued_at:
            return True
        if driver is None or driver is looked.within or now - looked.queued_at < self._numbers_seconds:
            return False
        for place, (lag, pending) in looked.ranges.items():
            source = _source_at(driver, place)
            if source is not None and (
                _is_outside(source.watermark_lag_seconds, lag) or _is_outside(source.pending_records, pending)
            ):
                return True
        looked.within = driver
        return False


def _complaints(
    looked: _Looked, details: DriverMetrics | None, driver: DriverMetrics | None
) -> Complaints | None:
    """Return what conditions and Events tell of these details; numbers that merely move are not in it."""
    if details is not looked.details:
        looked.details = details
        looked.complaints = None if details is None else complaints_in(details, driver, looked.watched)
    return looked.complaints


def signature_of(
    watched: Watched, driver: DriverMetrics | None, key: Key, answers: Answers, now: float
) -> Signature:
    oldest = now - watched.stale_after_seconds
    values = [answers(key, expression, oldest) for expression in watched.expressions]
    said = tuple([None if value is None else value != 0 for value in values])
    if driver is None:
        return (said,)
    queries = driver.queries
    runs = [queries.get(name) for name in watched.queries]
    out_of_reach = [
        source.out_of_reach
        for query in queries.values()
        for source in query.sources.values()
        if source.out_of_reach is not None
    ]
    return (
        said,
        driver.attempt,
        driver.control_generation,
        len(queries),
        driver.source_count,
        tuple(sorted([name for name, query in queries.items() if query.active is False])),
        tuple(sorted(out_of_reach)),
        tuple([None if one is None else (one.active, one.started_at, one.votes is True) for one in runs]),
        tuple([_inputs(queries.get(one.id[0]), one.id[1], one.steps, driver.at) for one in watched.sources]),
    )


def _inputs(query: QueryMetrics | None, name: str, steps: Steps, at: float) -> SourceInputs | None:
    source = None if query is None else query.sources.get(name)
    if query is None or source is None:
        return None
    held_by = longest_hold(source.held_lately) if source.held_lately else None
    seen = observation_of(source, held_by=held_by, query_ended=query.active is False, at=at)
    return (held_by, inputs_of(seen, steps))


def _source_at(driver: DriverMetrics | None, source: SourceId) -> SourceMetrics | None:
    query = None if driver is None else driver.queries.get(source[0])
    return None if query is None else query.sources.get(source[1])


def _range(value: float | None, floor: float) -> Range:
    """Return what is within a factor of two; values below the floor are all alike."""
    if value is None:
        return (-math.inf, math.inf)
    reference = max(value, floor)
    lowest = reference / FACTOR
    return (lowest if lowest > floor else -math.inf, reference * FACTOR)


def _is_outside(value: float | None, inside: Range) -> bool:
    return value is not None and not inside[0] <= value <= inside[1]
