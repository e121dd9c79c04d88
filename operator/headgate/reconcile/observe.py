"""Observe: ask every port what is, and turn the answers into what the decision core reads.

Nothing is changed here. A scrape that fails leaves what was known before standing until that is older than
`metrics.staleAfter`; those of a driver that is gone are dropped at once, since they say nothing of the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from headgate.api.annotations import SourceId
from headgate.api.application import SparkApplication
from headgate.api.query import Query
from headgate.decision.driver import Obstacle, SeenDriver
from headgate.decision.observation import UNSEEN, Observation, SourceObservation
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.metric_table import since
from headgate.reconcile.ports import Outage, OutageReason, Ports, Problem
from headgate.reconcile.readings import Column, DriverMetrics, QueryMetrics, SourceMetrics
from headgate.reconcile.track import Track
from headgate_contract import ControlDocument
from headgate_contract.codec import LARGEST_WHOLE
from headgate_contract.generations import is_later
from headgate_contract.held import HeldBy
from headgate_contract.lag_votes import IDLE_SECONDS

NO_DRIVER = Outage(OutageReason.DRIVER_NOT_RUNNING, "no driver is running")
NOT_RUN = 0
"""The attempt of a query that has never been seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The world of one application at one moment."""

    now: float
    driver: SeenDriver | None
    obstacle: Obstacle | None
    """What keeps the next driver from being started."""
    deletion_asked_at: float | None
    metrics: DriverMetrics | None
    """What is known and not stale; `None`: nothing is."""
    knows_exceptions: bool
    """Whether what is listed only where it is so, as holds and sources out of reach, is known and not stale."""
    outage: Outage | None
    """Why the last try to read metrics failed; what is in `metrics` is then from before."""
    published: ControlDocument | None
    observations: Mapping[str, Observation]
    """By query of the resource."""
    hindrance: Problem | None
    """What keeps executors away, by what their pods show."""
    has_seen_executors: bool
    """Whether this process has looked at those pods."""

    @property
    def living_driver(self) -> SeenDriver | None:
        """The driver, unless it has ended."""
        return self.driver if self.driver is not None and self.driver.exit is None else None

    @property
    def reported_generation(self) -> int | None:
        """The generation of the document that the living driver has in force, as far as it is known."""
        if self.living_driver is None or self.metrics is None:
            return None
        reported = self.metrics.control_generation
        return reported if reported is not None and 0 <= reported <= LARGEST_WHOLE else None

    @property
    def is_put_back(self) -> bool:
        """Whether the driver has a later document in force than is published: the cluster has forgotten that one."""
        reported = self.reported_generation
        return (
            reported is not None
            and self.published is not None
            and is_later(reported, self.published.generation)
        )

    @property
    def knows_all(self) -> bool:
        """Whether more is known of the driver than votes depend on: what is missing is not so, then.

        That whether it is stopping is in every scrape, and is asked for together with the rest.
        """
        return self.metrics is not None and self.metrics.stopping is not None

    def query(self, name: str) -> QueryMetrics | None:
        return None if self.metrics is None else self.metrics.queries.get(name)


def observe(
    application: SparkApplication, ports: Ports, memory: LoopMemory, now: float
) -> tuple[Seen, LoopMemory]:
    """Return what is to be seen, and the memory with what was learned by looking."""
    driver = ports.drivers.observe(now)
    memory = _with_metrics(memory, driver, ports, now)
    oldest = now - application.spec.metrics.stale_after.total_seconds()
    metrics = None if memory.metrics is None else since(memory.metrics, oldest)
    knows_exceptions = metrics is not None and metrics.at_of(Column.EXCEPTIONS) >= oldest
    answers = {} if memory.metrics is None else memory.metrics.answers_since(oldest)
    if metrics is not None:
        tracks = {
            name: memory.tracks.get(name, Track()).following(
                found, attempt=_attempt(name, found, memory), at=metrics.at
            )
            for name in (query.name for query in application.spec.queries)
            if (found := metrics.queries.get(name)) is not None
        }
        memory = replace(memory, tracks=tracks)
    seen = Seen(
        now=now,
        driver=driver,
        obstacle=ports.drivers.obstacle(now),
        deletion_asked_at=ports.finalizer.deletion_asked_at(),
        metrics=metrics,
        knows_exceptions=knows_exceptions,
        outage=memory.outage,
        published=ports.controls.published(),
        observations={
            query.name: _observation(
                query, metrics, memory, answers, now=now, holds_are_stale=not knows_exceptions
            )
            for query in application.spec.queries
        },
        hindrance=ports.executors.hindrance(),
        has_seen_executors=ports.executors.were_seen(),
    )
    return seen, memory


def _with_metrics(memory: LoopMemory, driver: SeenDriver | None, ports: Ports, now: float) -> LoopMemory:
    if driver is None or driver.exit is not None:
        return replace(memory, metrics=None, metrics_of_attempt=None, outage=NO_DRIVER)
    if driver.attempt != memory.metrics_of_attempt:
        memory = replace(memory, metrics=None, metrics_of_attempt=driver.attempt)
    sample = ports.metrics.sample(now, driver.attempt)
    if isinstance(sample, Outage):
        known = memory.metrics if sample.known is None else sample.known
        return replace(memory, outage=replace(sample, known=None), metrics=known)
    return replace(memory, outage=None, metrics=sample)


def _attempt(name: str, query: QueryMetrics | None, memory: LoopMemory) -> int:
    """Return the run of the query by its start, in milliseconds of Unix time.

    While it is not known, it is the run that was known last: silence starts nothing afresh.
    """
    if query is not None and query.started_at is not None:
        return round(query.started_at * 1000)
    latches = memory.kept.latches.get(name)
    return NOT_RUN if latches is None or latches.attempt is None else latches.attempt


def _observation(  # noqa: PLR0913  what is heard, remembered and answered, and when
    query: Query,
    metrics: DriverMetrics | None,
    memory: LoopMemory,
    answers: Mapping[SourceId, float],
    *,
    now: float,
    holds_are_stale: bool,
) -> Observation:
    found = None if metrics is None else metrics.queries.get(query.name)
    track = memory.tracks.get(query.name, Track())
    sources: dict[str, SourceObservation] = {}
    if found is not None and metrics is not None:
        for name, reported in found.sources.items():
            held_by, ended = track.held_by.get(name), found.active is False
            sources[name] = observation_of(reported, held_by=held_by, query_ended=ended, at=metrics.at)
    # the driver need not have been heard for what their own expressions returned
    for source in query.sources:
        if (answer := answers.get((query.name, source.name))) is not None:
            sources[source.name] = with_fields(sources.get(source.name, UNSEEN), query_value=answer)
    heard = found or QueryMetrics()
    return Observation(
        t=now,
        query=query.name,
        attempt=_attempt(query.name, found, memory),
        sources=sources,
        throughput=heard.throughput,
        driver_votes=None if heard.started_at is None else heard.votes is True,
        arrival_rate=track.arrival_rate if found and found.arrival_rate is None else heard.arrival_rate,
        holds_are_stale=holds_are_stale,
    )


def observation_of(
    reported: SourceMetrics, *, held_by: str | None, query_ended: bool, at: float
) -> SourceObservation:
    """Return what a decision reads of a source; `held_by` is what holds it back, if anything does."""
    idle_seconds, lag = reported.idle_seconds, reported.watermark_lag_seconds
    if lag is None and reported.watermark is not None:
        lag = at - reported.watermark
    return SourceObservation(
        watermark_lag_seconds=lag,
        pending_records=reported.pending_records,
        phase=reported.phase,
        driver_votes=None if reported.phase is None else reported.votes,  # told of together
        idle=None if idle_seconds is None else idle_seconds >= IDLE_SECONDS,
        finished=True if query_ended else reported.finished,
        paused=reported.paused,
        held_by_alignment=held_by in (HeldBy.ALIGNMENT, HeldBy.EVENT_TIME),
    )
