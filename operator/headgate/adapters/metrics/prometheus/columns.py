"""From the samples of a tick to what each driver has reported, a column at a time.

A driver is put together anew once it was scraped anew: a tick comes several times as often as a scrape does,
and between two of them Prometheus can only say the same again. What a query did not bring, because it failed or its
answer was not complete, is taken over from the one before, with the time that it had there: what is known stays
known, and grows old.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar, cast

from msgspec.structs import replace

from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.targets import Pod, Target
from headgate.reconcile.metric_table import BY_SAMPLE, IN_EVERY_SCRAPE, LARGEST, fields
from headgate.reconcile.readings import Column, DriverMetrics, QueryMetrics, SourceMetrics


class Unmeasured(NamedTuple):
    """A source that has neither lag nor pending, in a run of its query."""

    query: str
    source: str
    started_at: float | None
    """When the run started, by the driver's clock."""


class Scraped(NamedTuple):
    """A driver that Prometheus scrapes: where its series come from, and what they say."""

    target: Target
    driver: DriverMetrics


Scrapes = dict[Pod, Scraped]

CLOCK_SECONDS = 1.0
"""By how much the time of one scrape may differ from tick to tick: answers take their time. More is a clock that
was set."""


def begin(targets: Mapping[Pod, Target]) -> Scrapes:
    return {
        pod: Scraped(target, DriverMetrics(attempt=target.run.attempt, at=target.at))
        for pod, target in targets.items()
    }


def unchanged(targets: Mapping[Pod, Target], before: Scrapes) -> Scrapes:
    """Return the drivers of which there is nothing new, as they are known: complete ones alone."""
    return {
        pod: known
        if abs(known.target.at - target.at) < CLOCK_SECONDS
        else Scraped(target, replace(known.driver, at=target.at))
        for pod, target in targets.items()
        if (known := before.get(pod)) is not None
        and target.is_of_the_scrape(known.target)
        and not known.driver.older
    }


def add(column: Column, samples: Iterable[Sample[Labels]], scrapes: Scrapes) -> None:
    """Put the samples of one column into the drivers that they come from.

    Histograms and values that cannot be say nothing.
    """
    by_name = _by_name(scrapes)
    name, row = "", BY_SAMPLE.get("")
    namespace, pod, scraped = "", "", by_name.get(("", ""))
    for sample in samples:
        labels = sample.metric
        if labels.pod != pod or labels.namespace != namespace:  # series of one scrape stand together
            namespace, pod = labels.namespace, labels.pod
            scraped = by_name.get((namespace, pod))
        if labels.name != name:
            name, row = labels.name, BY_SAMPLE.get(labels.name)
        if scraped is None or row is None or row.asked is not column:
            continue
        target, driver = scraped
        if not target.serves(labels) or not row.lowest <= (value := sample.number) <= LARGEST:
            continue
        row.take(driver, labels.query, labels.source, getattr(labels, row.label) if row.label else "", value)


def _by_name(scrapes: Scrapes) -> Mapping[tuple[str, str], Scraped]:
    """Return them by namespace and name: to make a `Pod` of each sample's takes longer than all else."""
    return cast("Mapping[tuple[str, str], Scraped]", scrapes)


def unanswered(samples: Iterable[Sample[Labels]], scrapes: Scrapes) -> Scrapes:
    """Return the drivers of which a list of exceptions says nothing: whoever answered does not have their scrape."""
    by_name = _by_name(scrapes)
    told = {
        name
        for sample in samples
        if (labels := sample.metric).name == IN_EVERY_SCRAPE.name
        and (scraped := by_name.get(name := (labels.namespace, labels.pod))) is not None
        and scraped.target.serves(labels)
    }
    return {pod: scraped for pod, scraped in scrapes.items() if pod not in told}


def complete(scrapes: Scrapes) -> None:
    """Say of the sources that no exception lists that they are none; the answer was whole."""
    for _, driver in scrapes.values():
        for query in driver.queries.values():
            for source in query.sources.values():
                _complete(source)


def _complete(source: SourceMetrics) -> None:
    if source.phase is None:
        source.phase = False
    if source.paused is None:
        source.paused = False
    if source.finished is None:
        source.finished = False
    if source.held_lately is None:
        source.held_lately = {}


def with_unmeasured(scraped: Scraped, unmeasured: Iterable[Unmeasured]) -> Scraped:
    """Return a driver with sources that have neither lag nor pending, which only its details tell of.

    They are those of the run that is under way, and are in no phase of backlog: else they would be listed.
    """
    driver = scraped.driver
    if Column.EXCEPTIONS in driver.older:
        return scraped
    queries, count = dict(driver.queries), driver.source_count
    for one in unmeasured:
        query = queries.get(one.query)
        if query is not None and one.source not in query.sources and query.started_at == one.started_at:
            more = SourceMetrics()
            _complete(more)
            queries[one.query] = replace(query, sources={**query.sources, one.source: more})
            count += 1
    if count == driver.source_count:
        return scraped
    return Scraped(scraped.target, replace(driver, queries=queries, source_count=count))


def take_over(column: Column, before: Scrapes, scrapes: Scrapes, *, failed: bool) -> None:
    """Fill what a column did not bring with what was known before, and its time.

    With `failed` the query brought nothing at all. Else it was answered in part, so that whatever is missing may
    be missing by accident.
    """
    for pod, (_, driver) in scrapes.items():
        previous = before.get(pod)
        if previous is None:
            if failed:
                driver.older[column] = -math.inf
        elif _fill(column, previous.driver, driver) or failed:
            driver.older[column] = previous.driver.at_of(column)


def _fill(column: Column, previous: DriverMetrics, driver: DriverMetrics) -> bool:
    """Copy values of a column that are missing; returns whether there were any."""
    filled = _filled(column, previous, driver)
    missing = fields(column, SourceMetrics)
    for name, query in previous.queries.items():
        if _is_of(column, query) and driver.query(name).active is None:
            run = driver.query(name)
            run.active, run.started_at, run.votes = query.active, query.started_at, query.votes
            filled = True
        for place, source in query.sources.items():
            if any(getattr(source, field) != nothing for field, nothing in missing.items()):
                filled |= _filled(column, source, driver.source(name, place))
    return filled


T = TypeVar("T", DriverMetrics, SourceMetrics)


def _filled(column: Column, old: T, new: T) -> bool:
    """Copy the fields of a column that are missing; returns whether there were any."""
    filled = False
    for field, nothing in fields(column, type(old)).items():
        value = getattr(old, field)
        if value != nothing and getattr(new, field) == nothing:
            setattr(new, field, value)
            filled = True
    return filled


def _is_of(column: Column, query: QueryMetrics) -> bool:
    """Return whether a query is listed in a column: those that run in one, those that have ended in another."""
    if column is Column.DRIVERS:
        return query.started_at is not None
    return column is Column.EXCEPTIONS and query.active is False
