"""The port `Metrics` of one application, answered from what was published last."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from headgate.adapters.metrics.prometheus.columns import Scraped, Scrapes
from headgate.adapters.metrics.prometheus.details import Details
from headgate.adapters.metrics.prometheus.expressions import Answer
from headgate.adapters.metrics.prometheus.targets import Pod, Targets
from headgate.adapters.metrics.watched import Watched
from headgate.api.annotations import SourceId
from headgate.key import Key
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import MOST_QUERIES, MOST_SOURCES, Answered, Column, DriverMetrics
from headgate.reconcile.times import moment

_TOO_MANY = (
    f"the driver has series of {MOST_QUERIES} queries or of {MOST_SOURCES:,} sources, and no more are read; let its "
    "queries and sources keep their names over restarts"
)
_LATE = (
    "is asked less often than once in metrics.staleAfter, because it takes long or its namespace has many; its last "
    "answer stands meanwhile. Make it cheaper, write fewer, or raise backlogQueriesPerTick"
)
NOT_ASKED_YET = Outage(OutageReason.NOT_ASKED_YET, "Prometheus has not been asked yet")
_LEFT_OUT = (
    "Prometheus has so many series of drivers of namespace {} that those of no other one could be read; they are "
    "left out, and asked for again every ten minutes. See what its drivers serve (queries and sources whose names "
    "change, series of the jobs' own), and limit that (monitoring.podMonitor.limits of the chart)"
)
LONGEST_SHOWN = 120
"""Characters of an expression in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What is known of all drivers after one tick."""

    targets: Targets = field(default_factory=Targets)
    scrapes: Scrapes = field(default_factory=dict)
    """By pod; also of pods that are in no target any more, until they are stale."""
    details: Mapping[Pod, Details] = field(default_factory=dict)
    outage: Outage | None = NOT_ASKED_YET
    """Why nothing new is known of anybody."""
    failed: Mapping[Column, Outage] = field(default_factory=dict)
    """Why a column has nothing new."""
    no_details: Outage | None = None
    """Why the details that were asked for last did not come."""
    left_out: frozenset[str] = frozenset()
    """Namespaces of which nothing was asked for, since there is too much of them."""

    def silence(self, key: Key) -> OutageReason:
        """Return why nothing is known of an application's driver, where that is so."""
        if self.outage is not None:
            return self.outage.reason
        if key.namespace in self.left_out:
            return OutageReason.MALFORMED
        driver = f"{key.name}-driver-"
        contradicting = (pod for pod in self.targets.contradictions if pod.namespace == key.namespace)
        is_contradicted = any(pod.name.startswith(driver) for pod in contradicting)
        return OutageReason.CONTRADICTORY_SERIES if is_contradicted else OutageReason.NO_SERIES

    def standing_details(self, pod: Pod) -> DriverMetrics | None:
        """Return the details of a driver; `None`: there are none that are not too old."""
        details, scraped = self.details.get(pod), self.scrapes.get(pod)
        stand = details is not None and (scraped is None or details.stand_for(scraped.driver))
        return details.driver if details is not None and stand else None

    def since(self, oldest: Mapping[Key, float]) -> "Published":
        """Return it without what was scraped of an application before a Unix time of its own."""
        too_old = {
            pod
            for pod, (target, driver) in (self.scrapes.items() if oldest else ())
            if driver.at < oldest.get(target.run.key, -math.inf)
        }
        if not too_old:
            return self
        by_pod = {pod: one for pod, one in self.targets.by_pod.items() if pod not in too_old}
        return dataclasses.replace(
            self,
            targets=dataclasses.replace(self.targets, by_pod=by_pod),
            scrapes={pod: one for pod, one in self.scrapes.items() if pod not in too_old},
            details={pod: one for pod, one in self.details.items() if pod not in too_old},
        )


@dataclass(frozen=True, slots=True)
class PrometheusMetrics:
    """What Prometheus knows of one application."""

    key: Key
    watched: Watched | None
    published: Published
    answers: Callable[[str], Answer]
    read: Callable[[DriverMetrics | None, DriverMetrics | None, float], None]
    """Told of driver and details, and when."""
    oldest: float = -math.inf
    """What was scraped before (Unix time) is of another application of this name."""

    def sample(self, now: float, attempt: int) -> DriverMetrics | Outage:
        """Return what the last tick found; where it did not find all, the reason, with what is known."""
        pod = Pod.of(self.key, attempt)
        scraped = self._scraped(pod)
        self.read(None if scraped is None else scraped.driver, self.published.standing_details(pod), now)
        known = self._known(pod)
        outage = self._outage(pod) or self._late_expression(now)
        return known if outage is None else Outage(outage.reason, outage.message, known)

    def _scraped(self, pod: Pod) -> Scraped | None:
        found = self.published.scrapes.get(pod)
        return None if found is None or found.driver.at < self.oldest else found

    def _expressions(self) -> Iterator[tuple[SourceId, str, Answer]]:
        for source in () if self.watched is None else self.watched.sources:
            if source.expression is not None:
                yield source.id, source.expression, self.answers(source.expression)

    def _known(self, pod: Pod) -> DriverMetrics:
        driver = DriverMetrics()
        if (scraped := self._scraped(pod)) is not None:
            details = self.published.details.get(pod)
            driver = scraped.driver if details is None else details.added_to(scraped.driver)
        answers = {
            place: Answered(answer.value, answer.at)
            for place, _, answer in self._expressions()
            if answer.value is not None
        }
        return replace(driver, answers=answers) if answers else driver

    def _outage(self, pod: Pod) -> Outage | None:
        published = self.published
        if published.outage is not None:
            return published.outage
        if self.key.namespace in published.left_out:
            return Outage(OutageReason.MALFORMED, _LEFT_OUT.format(self.key.namespace))
        if (why := published.targets.contradictions.get(pod)) is not None:
            message = f"Prometheus has two drivers called {pod.name} in {pod.namespace}; they differ in {why}"
            return Outage(OutageReason.CONTRADICTORY_SERIES, message)
        if pod not in published.targets.by_pod or self._scraped(pod) is None:
            return self._unseen(pod)
        if published.scrapes[pod].driver.is_full:
            return Outage(OutageReason.MALFORMED, _TOO_MANY)
        failed = next(iter(published.failed.values()), None)
        return failed or self._wrong_expression() or published.no_details

    def _unseen(self, pod: Pod) -> Outage:
        message = f"Prometheus has no series of the pod {pod.name} in {pod.namespace}"
        if self.key.name in self.published.targets.unplaced:
            message += f"; it has some of an application {self.key.name} without the labels that name a pod"
        elif (scraped := self._scraped(pod)) is None:
            message += ": it has not scraped it yet, or is not configured to (PodMonitor, port 8090)"
        else:
            message += f" any more; it was scraped last at {moment(scraped.driver.at).isoformat()}"
        return Outage(OutageReason.NO_SERIES, message)

    def _wrong_expression(self) -> Outage | None:
        for (query, source), expression, answer in self._expressions():
            if (failure := answer.failure) is not None:
                text = expression if len(expression) <= LONGEST_SHOWN else f"{expression[:LONGEST_SHOWN]}…"
                where = f"query {query}, source {source}: backlog.query `{text}`"
                return Outage(failure.reason, f"{where}: {failure.message}")
        return None

    def _late_expression(self, now: float) -> Outage | None:
        """Return that an answer stands only because others are asked meanwhile."""
        oldest = -math.inf if self.watched is None else now - self.watched.stale_after_seconds
        for (query, source), _, answer in self._expressions():
            if answer.failure is None and answer.value is not None and answer.asked_at < oldest:
                where = f"query {query}, source {source}: backlog.query"
                return Outage(OutageReason.BACKLOG_QUERY_NOT_ASKED, f"{where} {_LATE}")
        return None
