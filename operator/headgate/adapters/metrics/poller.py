"""Metrics from where each application says: from Prometheus, or straight from its driver."""

from collections.abc import Collection, Mapping
from typing import Protocol

from headgate.api.application import MetricsSource, SparkApplication
from headgate.key import Key
from headgate.reconcile.ports import Metrics, Outage, OutageReason


class Measurements(Protocol):
    """Has the metrics of all applications that it watches, and answers from what was read last."""

    def watch(self, key: Key, application: SparkApplication) -> None:
        """Read what this application asks for, from now on."""

    def forget(self, key: Key) -> None:
        """Read nothing more of this application; what was read of it does not count for another of its name."""

    def reconciled(self, key: Key, *, clock_at: float | None, again_at: float) -> None:
        """A reconcile has ended; from `clock_at` (Unix time) on a look is worth one though nothing is new.

        The next one is planned for `again_at` (Unix time).
        """

    def unchanged_until(self, key: Key) -> float | None:
        """Return the Unix time until which each look has found what the last reconcile had read, if any has."""

    def metrics(self, key: Key) -> Metrics:
        """Return the port that answers from what was read last."""


class Poller(Measurements, Protocol):
    """Reads them."""

    def poll(self, now: float) -> Collection[Key]:
        """Read, and return the applications that are worth a reconcile at `now` (Unix time)."""

    def close(self) -> None:
        """Read nothing any more; may be called while `poll` runs in another thread."""


NOBODY_TO_ASK = Outage(OutageReason.NOT_ASKED, "the operator has no Prometheus to ask; set prometheusUrl")


class NoPrometheus(Metrics):
    """The port where there is no Prometheus to ask.

    Drivers run all the same; what depends on metrics stays unknown, which ends no backlog and begins none.
    """

    def sample(self, now: float, attempt: int) -> Outage:  # noqa: ARG002
        return NOBODY_TO_ASK


class ChosenPoller:
    """Sends each application to the poller that its `metrics.source` names; each of them polls for itself."""

    def __init__(self, prometheus: Poller | None, drivers: Poller) -> None:
        """`prometheus` is `None` where there is none to ask: applications that name it are told so."""
        both = ((MetricsSource.PROMETHEUS, prometheus), (MetricsSource.DRIVER, drivers))
        self._pollers = {source: poller for source, poller in both if poller is not None}
        self._chosen: dict[Key, Poller] = {}

    def watch(self, key: Key, application: SparkApplication) -> None:
        """Read from where the application says; what was read elsewhere before counts no more."""
        chosen = self._pollers.get(application.spec.metrics.source)
        if self._chosen.get(key) is not chosen:
            self.forget(key)
        if chosen is not None:
            self._chosen[key] = chosen
            chosen.watch(key, application)

    def forget(self, key: Key) -> None:
        if (chosen := self._chosen.pop(key, None)) is not None:
            chosen.forget(key)

    def reconciled(self, key: Key, *, clock_at: float | None, again_at: float) -> None:
        if (chosen := self._chosen.get(key)) is not None:
            chosen.reconciled(key, clock_at=clock_at, again_at=again_at)

    def unchanged_until(self, key: Key) -> float | None:
        chosen = self._chosen.get(key)
        return None if chosen is None else chosen.unchanged_until(key)

    def metrics(self, key: Key) -> Metrics:
        chosen = self._chosen.get(key, self._pollers.get(MetricsSource.PROMETHEUS))
        return NoPrometheus() if chosen is None else chosen.metrics(key)

    @property
    def pollers(self) -> Mapping[str, Poller]:
        """All of them, by what they read."""
        return {str(source): poller for source, poller in self._pollers.items()}

    def close(self) -> None:
        for poller in self._pollers.values():
            poller.close()
