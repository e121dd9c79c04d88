"""The metrics of all applications, read once a tick from one Prometheus.

    1  when was each driver scraped, and by what target            `targets`
    2  beside it, as of the tick before: details of drivers        `details`
       that are reconciled soon, and of some others
    4  a column a query, all as of that moment,                    `columns`
       of the drivers that were scraped since the tick before
    2  details of drivers that are reconciled now; 4 when many are new
    n  expressions of users, at most so many a tick                `expressions`

If the first fails nothing new is known; if another one does, its column grows old. What was known stands until
`metrics.staleAfter`, and whoever asks is told the reason beside it.

`poll` blocks, and is called by one thread at a time. What it found is published in one step, so `metrics` may be
asked by another thread at any time.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median_high

from headgate.adapters.metrics.due import Due
from headgate.adapters.metrics.prometheus import columns
from headgate.adapters.metrics.prometheus.answer import QueryFailure
from headgate.adapters.metrics.prometheus.client import PrometheusOptions, Queried, ignore
from headgate.adapters.metrics.prometheus.columns import Scrapes
from headgate.adapters.metrics.prometheus.details import MOST_PODS, Details, details
from headgate.adapters.metrics.prometheus.expressions import Expressions
from headgate.adapters.metrics.prometheus.fetch import Fetch
from headgate.adapters.metrics.prometheus.port import PrometheusMetrics, Published
from headgate.adapters.metrics.prometheus.refresh_schedule import RefreshSchedule, is_behind
from headgate.adapters.metrics.prometheus.targets import Pod, Target, Targets, targets
from headgate.adapters.metrics.watched import Watched
from headgate.api.application import SparkApplication
from headgate.key import Key
from headgate.reconcile.ports import Metrics, Outage
from headgate.reconcile.readings import Column, DriverMetrics

MOST_AT_ONCE = 2 * MOST_PODS
"""Drivers whose details are fetched at once."""
FORGOTTEN_SECONDS = 3600.0
"""How long it is remembered that an application went: Prometheus answers with its series for minutes."""


class PrometheusPoller:
    """Reads one Prometheus for everybody. `queried` is told how long each query took, and why one failed."""

    def __init__(
        self, options: PrometheusOptions, queried: Queried = ignore, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._due = Due(self._said)
        self._fetch = Fetch(options, queried)
        self._expressions = Expressions(options, queried)
        self._published = Published()
        self._pace = ScrapePace()
        self._polled_at = -math.inf
        self._planned: dict[Key, float] = {}
        """When each application's next reconcile is planned for, at the latest."""
        self._forgotten: dict[Key, float] = {}
        """When applications went, in Unix time. The first driver of one of the same name has the name of theirs."""

    def watch(self, key: Key, application: SparkApplication) -> None:
        self._due.watch(key, application)

    def forget(self, key: Key) -> None:
        self._due.forget(key)
        self._planned.pop(key, None)
        self._forgotten[key] = self._clock()

    def reconciled(self, key: Key, *, clock_at: float | None, again_at: float) -> None:
        self._due.reconciled(key, clock_at=clock_at)
        self._planned[key] = again_at

    def unchanged_until(self, key: Key) -> float | None:
        return self._due.unchanged_until(key)

    def metrics(self, key: Key) -> Metrics:
        def read(driver: DriverMetrics | None, details: DriverMetrics | None, now: float) -> None:
            self._due.read(key, driver, now, details, self._published.silence(key))

        watched = self._due.watched(key)
        answer = partial(self._expressions.answer, key.namespace)
        oldest = self._forgotten.get(key, -math.inf)
        return PrometheusMetrics(key, watched, self._published, answer, read, oldest=oldest)

    def poll(self, now: float) -> Collection[Key]:
        """Read all that is new, and return the applications that are worth a reconcile at `now` (Unix time).

        Takes at most about four times `timeout_seconds`, when each query fails at its end. Raises nothing for
        what a server may do.
        """
        self._remember_who_went(now)
        watched = self._due.all_watched()
        gap, self._polled_at = now - self._polled_at, now
        if not watched:
            self._published = Published()
            return ()
        wanted: dict[str, set[str]] = {}
        for key, one in watched.items():
            if one.expressions:
                wanted.setdefault(key.namespace, set()).update(one.expressions)
        self._expressions.ask(wanted, now)
        published = self._look(watched, RefreshSchedule(now, gap, self._planned))
        self._expressions.take()
        current = _current(published.scrapes)
        drivers = {key: published.scrapes[pod].driver for key, pod in current.items()}
        due = self._due.look(drivers, now, _known(published, current), published.silence)
        behind = [
            (key, pod) for key in due if (pod := current.get(key)) is not None and is_behind(published, pod)
        ]
        published = self._with_details(published, [pod for _, pod in behind[:MOST_AT_ONCE]])
        waiting = {key for key, pod in behind[MOST_AT_ONCE:] if not published.standing_details(pod)}
        queued = [key for key in due if key not in waiting]
        self._published = published = replace(published, left_out=self._fetch.left_out)
        # The last thing: after it nothing may fail to hand them on.
        told = {key: current[key] for key in queued if key in current}
        self._due.queued(queued, drivers, now, _known(published, told))
        return queued

    def close(self) -> None:
        self._fetch.close()
        self._expressions.close()

    def _said(self, key: Key, expression: str, oldest: float) -> float | None:
        answer = self._expressions.answer(key.namespace, expression)
        return answer.value if answer.at >= oldest else None

    def _remember_who_went(self, now: float) -> None:
        """Forget what Prometheus has long forgotten; a clock that was set back makes nobody go in the future."""
        for key, went_at in list(self._forgotten.items()):
            if now - went_at > FORGOTTEN_SECONDS:
                self._forgotten.pop(key, None)
            elif went_at > now:
                self._forgotten[key] = now

    def _look(self, watched: Mapping[Key, Watched], schedule: RefreshSchedule) -> Published:
        now, oldest = schedule.now, self._forgotten.copy()
        self._fetch.begin(len(watched))
        times = self._fetch.scrape_times()
        before = self._published.since(oldest)
        before = self._with_details(before, schedule.next(before, _current(before.scrapes))[:MOST_AT_ONCE])
        if isinstance(answer := times(), QueryFailure):
            return replace(before, outage=answer.outage)
        found = targets(answer.samples, watched, now, oldest)
        self._pace = self._pace.following(before.targets.by_pod, found.by_pod)
        scrapes = columns.unchanged(found.by_pod, before.scrapes)
        scraped = {pod: target for pod, target in found.by_pod.items() if pod not in scrapes}
        fresh = columns.begin(scraped)
        failed: dict[Column, Outage] = {}
        if found.evaluated_at is not None and fresh:
            since = min(target.scraped_at for target in scraped.values())
            failed = self._fill(fresh, before.scrapes, found.evaluated_at, since)
            fresh = {pod: one for pod, one in fresh.items() if pod.namespace not in self._fetch.left_out}
        scrapes |= fresh | _lost(before.scrapes, found, watched, now)
        kept = {pod: one for pod, one in before.details.items() if pod in scrapes}
        scrapes |= _unmeasured(fresh, kept)
        return replace(before, targets=found, scrapes=scrapes, details=kept, outage=None, failed=failed)

    def _fill(self, scrapes: Scrapes, before: Scrapes, at: float, since: float) -> dict[Column, Outage]:
        """Put every column into the scrapes, of scrapes from `since` to `at`; returns why some are not."""
        failed: dict[Column, Outage] = {}
        for column, answer in self._fetch.columns(at, since):
            if isinstance(answer, QueryFailure):
                failed[column] = answer.outage
                columns.take_over(column, before, scrapes, failed=True)
                continue
            columns.add(column, answer.samples, scrapes)
            if answer.warnings:
                columns.take_over(column, before, scrapes, failed=False)
            elif column is Column.EXCEPTIONS:
                missed = columns.unanswered(answer.samples, scrapes)
                columns.take_over(column, before, missed, failed=True)
                columns.complete({pod: one for pod, one in scrapes.items() if pod not in missed})
        return failed

    def _with_details(self, published: Published, chosen: Sequence[Pod]) -> Published:
        """Fetch the details of some drivers, as of the look that has found the rest."""
        at = published.targets.evaluated_at
        if published.outage is not None or at is None or not chosen:
            return published
        found = dict(published.details)
        for first in range(0, len(chosen), MOST_PODS):
            scrapes = {pod: published.scrapes[pod] for pod in chosen[first : first + MOST_PODS]}
            answer = self._fetch.details(scrapes, at, self._pace.window_seconds)
            if isinstance(answer, QueryFailure):
                outage = answer.outage
                told = f"only votes are known, and all the rest is missing or old: {outage.message}"
                published = replace(published, no_details=replace(outage, message=told))
                break
            published = replace(published, no_details=None)
            fresh = details(answer[0].samples, answer[1].samples, scrapes)
            if answer[0].warnings or answer[1].warnings:
                fresh = {pod: one.filled_up(found.get(pod)) for pod, one in fresh.items()}
            found |= fresh
        more = {pod: published.scrapes[pod] for pod in chosen}
        scrapes = published.scrapes | _unmeasured(more, found)
        return replace(published, scrapes=scrapes, details=found)


def _current(scrapes: Scrapes) -> dict[Key, Pod]:
    """Return the driver pod of each application; of several, that of the newest attempt."""
    newest: dict[Key, Pod] = {}
    for pod, (target, _) in scrapes.items():
        other = newest.get(target.run.key)
        if other is None or scrapes[other].target.run.attempt < target.run.attempt:
            newest[target.run.key] = pod
    return newest


def _known(published: Published, current: Mapping[Key, Pod]) -> dict[Key, DriverMetrics]:
    """Return the details of each application's driver, as far as they are known."""
    scrapes, details = published.scrapes, published.details
    return {
        key: found.driver
        for key, pod in current.items()
        if (found := details.get(pod)) is not None and found.stand_for(scrapes[pod].driver)
    }


def _unmeasured(scrapes: Scrapes, known: Mapping[Pod, Details]) -> Scrapes:
    """Return the drivers that have sources of which only their details tell, with these."""
    return {
        pod: columns.with_unmeasured(scraped, details.unmeasured)
        for pod, scraped in scrapes.items()
        if (details := known.get(pod)) is not None and details.unmeasured
    }


def _lost(before: Scrapes, found: Targets, watched: Mapping[Key, Watched], now: float) -> Scrapes:
    """Return the drivers that Prometheus has lost sight of, as far as they are not stale."""
    return {
        pod: scraped
        for pod, scraped in before.items()
        if pod not in found.by_pod
        and pod not in found.contradictions
        and (one := watched.get(scraped.target.run.key)) is not None
        and now - scraped.driver.at <= one.stale_after_seconds
    }


SHORTEST_SECONDS = 60.0
"""Of a window: with scrapes every 15 s, four of them."""
LONGEST_SECONDS = 1200.0
SCRAPES = 4
"""Of a window, where scrapes are further apart: one may be lost, and one come late."""


@dataclass(frozen=True, slots=True)
class ScrapePace:
    """The usual time between two scrapes of a driver."""

    seconds: float | None = None
    """`None`: nothing has been scraped twice yet."""

    def following(self, before: Mapping[Pod, Target], now: Mapping[Pod, Target]) -> "ScrapePace":
        """Return the pace after another look; that of most drivers, so that one with its own says nothing."""
        gaps = [
            gap
            for pod, target in now.items()
            if (known := before.get(pod)) is not None and (gap := target.scraped_at - known.scraped_at) > 0
        ]
        return ScrapePace(median_high(gaps)) if gaps else self

    @property
    def window_seconds(self) -> int:
        """The time over which a rate is taken, in whole seconds."""
        if self.seconds is None:
            return int(SHORTEST_SECONDS)
        return math.ceil(min(LONGEST_SECONDS, max(SHORTEST_SECONDS, SCRAPES * self.seconds)))
