"""The metrics of an operator that has no Prometheus: none, and every application is told so.

It runs drivers all the same; what depends on metrics stays unknown, which ends no backlog and begins none.
"""

from __future__ import annotations

from collections.abc import Collection

from headgate.api.application import SparkApplication
from headgate.key import Key
from headgate.reconcile.ports import Metrics, Outage, OutageReason

NOBODY_TO_ASK = Outage(OutageReason.NOT_ASKED, "the operator has no Prometheus to ask; set prometheusUrl")


class Unmeasured:
    """Stands where a poller would, and is the port of every application as well."""

    def watch(self, key: Key, application: SparkApplication) -> None:
        """Do nothing: there is nobody to ask."""

    def forget(self, key: Key) -> None:
        """Do nothing."""

    def judged(self, key: Key, *, clock_at: float | None, again_at: float) -> None:
        """Do nothing: no tick brings a turn."""

    def unchanged_until(self, key: Key) -> float | None:  # noqa: ARG002
        """Return that nobody has looked."""
        return None

    def metrics(self, key: Key) -> Metrics:  # noqa: ARG002
        """Return the port."""
        return self

    def sample(self, now: float, attempt: int) -> Outage:  # noqa: ARG002
        """Return why there are none."""
        return NOBODY_TO_ASK

    def poll(self, now: float) -> Collection[Key]:  # noqa: ARG002
        """Return that nothing is new."""
        return ()

    def close(self) -> None:
        """Do nothing."""
