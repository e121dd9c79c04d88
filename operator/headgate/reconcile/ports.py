"""What the loop needs of the world: a few small ports, each bound to one application.

The loop itself knows neither processes nor pods. On one machine the ports are a subprocess, an HTTP scrape
and a few files (`headgate.adapters`); in a cluster they are pods, Prometheus and annotations. Whatever only
one of them could know stays behind the port.

All calls are synchronous and bounded in time. They raise nothing for what the world may do (a driver that
died, a metric that is late): such things are values. They raise `headgate.errors` for what nobody can go on
from, such as a disk that cannot be written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from headgate.api.status import SparkApplicationStatus
from headgate.decision.driver import Obstacle, SeenDriver
from headgate.reconcile.launch import Launch
from headgate.reconcile.readings import DriverMetrics
from headgate_contract import ControlDocument


class Drivers(Protocol):
    """Starts and stops the driver. There is never more than one."""

    def observe(self, now: float) -> SeenDriver | None:
        """Return the driver that is there, alive or dead; `None` when there is none.

        It counts as alive while any part of it may still write to a checkpoint.
        """

    def obstacle(self, now: float) -> Obstacle | None:
        """Return what keeps the next driver from being started; `None` when nothing is known to."""

    def start(self, launch: Launch, attempt: int, now: float, *, follows_oom_kill: bool = False) -> None:
        """Start the driver of `attempt` in place of one that has ended; asked twice for one, start one.

        What is left of drivers from before is cleared away first, if need be over several calls. The driver is told
        whether all of the one before it was killed for want of memory (`follows_oom_kill`).
        """

    def stop(self, grace_seconds: float) -> None:
        """Ask the driver to end at a batch boundary; asked again, it changes nothing.

        It may be given up on, by whoever can, once `grace_seconds` have passed.
        """

    def kill(self) -> None:
        """End the driver at once, with all that it started."""


class OutageReason(StrEnum):
    """Why there are no metrics; the reason of condition `MetricsAvailable`."""

    DRIVER_NOT_RUNNING = "DriverNotRunning"
    """There is no driver to ask."""
    DRIVER_STARTING = "DriverStarting"
    """The driver has not yet told where it serves its metrics."""
    SCRAPE_TIMEOUT = "ScrapeTimeout"
    """The driver did not answer in time: it hangs, or the machine is overloaded."""
    CONNECTION_FAILED = "ConnectionFailed"
    """Nobody answers where the driver said it would."""
    HTTP_ERROR = "HttpError"
    """The answer was not 200."""
    MALFORMED = "Malformed"
    """The answer is not in the form that was asked for: the Prometheus text format, or its API's JSON."""
    NO_SERIES = "NoSeries"
    """Prometheus answers, and has nothing from the driver: it does not scrape it, or not yet."""
    CONTRADICTORY_SERIES = "ContradictorySeries"
    """Prometheus has series of two drivers under one name, and none can be preferred."""
    QUERY_TIMEOUT = "QueryTimeout"
    """Prometheus did not answer in time."""
    QUERY_FAILED = "QueryFailed"
    """Prometheus did not evaluate a query, and says why."""
    BACKLOG_QUERY_NOT_ASKED = "BacklogQueryNotAsked"
    """A `backlog.query` is not asked, or not often enough: there are more of them than the operator may ask."""
    CREDENTIALS_UNREADABLE = "CredentialsUnreadable"
    """The file with the token or the password for Prometheus cannot be read."""
    NOT_ASKED = "NotAsked"
    """The operator has nobody to ask."""
    NOT_ASKED_YET = "NotAskedYet"
    """The operator has just started, or has just heard of the application."""
    STALE = "Stale"
    """Readings came, but all of them are older than `metrics.staleAfter`."""


OF_ONE_QUERY: Final = (
    OutageReason.CONNECTION_FAILED,
    OutageReason.HTTP_ERROR,
    OutageReason.MALFORMED,
    OutageReason.QUERY_TIMEOUT,
    OutageReason.QUERY_FAILED,
    OutageReason.CREDENTIALS_UNREADABLE,
)
"""Why a query to Prometheus brings nothing."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Not all is known, and why."""

    reason: OutageReason
    message: str
    known: DriverMetrics | None = None
    """What is known all the same; `None`: what was known before, as far as the loop remembers it."""


class Problem(NamedTuple):
    """What is not as a person has asked for."""

    reason: str
    """PascalCase, as in conditions."""
    message: str
    """What it is, in the words of whoever says so, and the remedy."""


class ExecutorPods(Protocol):
    """Looks after the pods of executors that have not registered."""

    def hindrance(self) -> Problem | None:
        """Return what keeps them from it; `None` where nothing is known to."""

    def were_seen(self) -> bool:
        """Return whether they were looked at since this process runs."""


class NoExecutorPods(ExecutorPods):
    """There are none where the driver does all the work itself: nothing is known of them."""

    def were_seen(self) -> bool:
        return True


class Metrics(Protocol):
    """Reads what the driver measured."""

    def sample(self, now: float, attempt: int) -> DriverMetrics | Outage:
        """Return what the application's driver reports at `now`, of this attempt and no other."""


class Controls(Protocol):
    """Brings the control document to the driver."""

    def published(self) -> ControlDocument | None:
        """Return the document that the driver can see; `None` if there is none, or none that can be read."""

    def publish(self, document: ControlDocument) -> None:
        """Replace the document, all of it at once."""


class Store(Protocol):
    """Keeps the loop's memory over its own restarts."""

    def load(self) -> Mapping[str, Any] | None:
        """Return what was saved last, as JSON types; `None` if nothing was, or what was is damaged."""

    def save(self, document: Mapping[str, Any]) -> None:
        """Keep `document`; when this returns, it survives a crash of the loop."""


Topic: TypeAlias = tuple[str | int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something happened that a person would want to know."""

    at: float
    reason: str
    """PascalCase, as in conditions."""
    message: str
    topic: Topic | None = None
    """What it is about, beyond its reason; `None`: what its message says. Of one topic it is said again, whatever the
    message."""
    is_warning: bool = False
    is_minor: bool = False
    """Whether it may be lost where thousands of applications have something to tell at once."""


class Reports(Protocol):
    """Tells people."""

    def last(self) -> SparkApplicationStatus | None:
        """Return the status written last."""

    def write(self, status: SparkApplicationStatus) -> None:
        """Replace the status."""

    def tell(self, event: Event) -> None:
        """Record an event."""


class Finalizer(Protocol):
    """Holds on to the resource, so that it does not go before its driver."""

    def deletion_asked_at(self) -> float | None:
        """Return the Unix time at which somebody asked for its deletion; `None` if nobody has."""

    def release(self) -> None:
        """Let it go; asked again, it changes nothing."""

    def remove(self) -> None:
        """Ask for its deletion."""


class NoFinalizer(Finalizer):
    """A resource that lies in a file comes and goes as its owner likes: nobody asks, and nothing is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePolicy:
    """What is written again although little of it has changed, and how often.

    On one machine a write costs nothing. An API server serves ten thousand applications.
    """

    numbers_seconds: float = 30.0
    """How old the numbers in a written status may be while they move."""
    small_changes_seconds: float = 30.0
    """How old they may be while none of them has moved by more than a factor of two."""
    flapping_seconds: float = 0.0
    """How far apart writes are for what comes and goes, as a source that is held by its rate limit, if it goes on."""
    dwell_share: float = 0.0
    """How much older than now the dwell clocks in the store may be, as a share of `metrics.staleAfter`."""
    phase: float | None = None
    """In which part of a period this application has its turn, in 0..1; `None`: it is alone."""

    def again_at(self, last: float, period_seconds: float) -> float:
        """Return when what was done at `last`, and is done once a period, is done again (Unix time).

        Many applications may have done it together: after a restart, or when their metrics came back. So each has a
        moment of the period to itself, and does it at the first one that is at least half a period away.
        """
        if self.phase is None:
            return last + period_seconds
        return self._moment(last + period_seconds / 2, period_seconds)

    def _moment(self, earliest: float, period_seconds: float) -> float:
        return earliest + ((self.phase or 0.0) * period_seconds - earliest) % period_seconds

    def refresh_at(self, written_at: float) -> float:
        """Return when a status that was written at `written_at` is written again for its numbers alone."""
        return max(written_at + self.numbers_seconds, self.again_at(written_at, self.small_changes_seconds))

    def refresh_after_restart_at(self, now: float) -> float:
        """Return when a status is written again that was written nobody knows when: at its next moment."""
        return max(now + self.numbers_seconds, self._moment(now, self.small_changes_seconds))


@dataclass(frozen=True, slots=True)
class Ports:
    """The world of one application."""

    drivers: Drivers
    metrics: Metrics
    controls: Controls
    store: Store
    reports: Reports
    finalizer: Finalizer = field(default_factory=NoFinalizer)
    executors: ExecutorPods = field(default_factory=NoExecutorPods)
    write_policy: WritePolicy = field(default_factory=WritePolicy)
