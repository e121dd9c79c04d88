"""What people want to know of a driver and no vote depends on: its interval, its grant, how fast records arrive.

Fetching that for everybody at each tick would cost several times what the columns do. It is fetched for drivers
whose application is reconciled now or soon, and for all others in a slow schedule, for reconciles that nobody could
foresee.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.columns import Scrapes, Unmeasured
from headgate.adapters.metrics.prometheus.targets import Pod
from headgate.reconcile.metric_table import BY_SAMPLE, LARGEST, Asked, with_details
from headgate.reconcile.readings import DriverMetrics

MOST_PODS = 2000
"""In one query: their names have 70 kB, and the answer a quarter of what the columns of ten thousand have."""

MOST_SAMPLES = 20_000
"""Of one driver: what 1,024 sources have."""

KEPT_SECONDS = 300.0
"""How much older than its last scrape the details of a driver may be: they are shown, and no vote depends on them."""


@dataclass(frozen=True, slots=True)
class Details:
    """The details of one driver, as of one scrape."""

    at: float
    """Unix time of the scrape, by the operator's clock."""
    driver: DriverMetrics
    """What no column has."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """Sources that the columns do not show by themselves."""
    oldest: float | None = None
    """Unix time of the scrape of what was taken over from before; `None`: nothing was."""

    def filled_up(self, before: "Details | None") -> "Details":
        """Return them, of an answer that may not be complete, with what it lacks as it was known before.

        Whoever answers in part for ever has nothing stand for longer than details may.
        """
        if before is None:
            return self
        oldest = min(before.at if before.oldest is None else before.oldest, self.at)
        if oldest < self.at - KEPT_SECONDS:
            return self
        unmeasured = tuple(dict.fromkeys((*before.unmeasured, *self.unmeasured)))
        return Details(self.at, with_details(before.driver, self.driver), unmeasured, oldest)

    def added_to(self, driver: DriverMetrics) -> DriverMetrics:
        """Return a driver with its details.

        While it is heard they stand, and nothing is left of them long after.
        """
        return with_details(driver, self.driver) if self.stand_for(driver) else driver

    def stand_for(self, driver: DriverMetrics) -> bool:
        """Return whether they are not too old for a driver that was heard as this one was."""
        return self.at >= driver.at - KEPT_SECONDS


def details(
    samples: Iterable[Sample[Labels]], arrivals: Iterable[Sample[Labels]], scrapes: Scrapes
) -> dict[Pod, Details]:
    """Return the details of each driver in `scrapes`, empty where there are none."""
    found = {pod: DriverMetrics() for pod in scrapes}
    counts = dict.fromkeys(scrapes, 0)
    for pod, labels, value in _placed(samples, scrapes):
        row = BY_SAMPLE.get(labels.name)
        if row is None or row.asked is not Asked.FOR_DETAILS or not row.can_be(value):
            continue
        counts[pod] += 1
        if counts[pod] <= MOST_SAMPLES:
            query, source, detail = map(sys.intern, (labels.query, labels.source, row.detail(labels.get)))
            row.take(found[pod], query, source, detail, value)
    rates: dict[tuple[Pod, str], list[float]] = {}
    for pod, labels, value in _placed(arrivals, scrapes):
        if abs(value) <= LARGEST:
            rates.setdefault((pod, labels.query), []).append(value)
    for (pod, query), each in rates.items():  # of its sources; of a query all of whose are known
        if len(each) == len(_named(found[pod], query)):
            found[pod].query(query).arrival_rate = max(0.0, sum(each))
    return {pod: _details(scrapes[pod].driver, driver) for pod, driver in found.items()}


def _details(driver: DriverMetrics, details: DriverMetrics) -> Details:
    unmeasured = [
        Unmeasured(query, source, run.started_at)
        for query in details.queries
        if (run := driver.queries.get(query)) is not None
        for source in _named(details, query)
        if (known := run.sources.get(source)) is None
        or (known.watermark_lag_seconds is None and known.pending_records is None)
    ]
    return Details(driver.at, details, tuple(unmeasured))


def _placed(samples: Iterable[Sample[Labels]], scrapes: Scrapes) -> Iterator[tuple[Pod, Labels, float]]:
    for sample in samples:
        pod = Pod(sample.metric.namespace, sample.metric.pod)
        scraped = scrapes.get(pod)
        if scraped is not None and scraped.target.serves(sample.metric):
            yield pod, sample.metric, sample.number


def _named(details: DriverMetrics, query: str) -> list[str]:
    """Return the sources of a query that say how their batches are bounded, as each does."""
    found = details.queries.get(query)
    sources = {} if found is None else found.sources
    return [name for name, one in sources.items() if one.read_limit is not None]
