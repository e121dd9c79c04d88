"""Where a driver pod serves its metrics."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.adapters.address import Address, Located
from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import METRICS_PORT
from headgate.adapters.kubernetes.pods import attempt_of, is_ended


def located(pods: Iterable[Manifest]) -> Located | None:
    """Return where the newest driver that has not ended is; `None` while none has an address."""
    found = [
        Located(attempt, Address(address, METRICS_PORT))
        for pod in pods
        if not is_ended(pod)
        and (attempt := attempt_of(pod)) is not None
        and (address := pod.get("status", {}).get("podIP"))
    ]
    return max(found, key=lambda one: one.attempt, default=None)
