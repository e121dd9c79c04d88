"""Metrics straight from the driver, without a Prometheus in between.

The driver tells where it serves them (its announcement names the port that it got). A driver that hangs
still accepts connections, and may send one byte a second: so the whole exchange has one deadline, and the
answer one largest size. What goes wrong is an `Outage` with a reason, never an exception: the loop goes on.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from headgate.reconcile.ports import Outage, OutageReason, Reading

TIMEOUT_SECONDS = 2.0
"""A scrape on a healthy driver takes milliseconds; longer than this and the tick would suffer."""
LARGEST_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Address:
    """Where a driver serves its metrics."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


class DriverScrape:
    """The port `Metrics` by HTTP. `locate` returns the driver's address, or why there is none yet."""

    def __init__(
        self, locate: Callable[[], Address | Outage], *, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._locate = locate
        self._timeout_seconds = timeout_seconds

    def sample(self, now: float, attempt: int) -> Sequence[Reading] | Outage:  # noqa: ARG002  there is one
        """Return what the driver serves, stamped with `now`."""
        address = self._locate()
        return address if isinstance(address, Outage) else scrape(address, now, self._timeout_seconds)


def scrape(address: Address, now: float, timeout_seconds: float) -> Sequence[Reading] | Outage:
    """Return what a driver serves at `address`, stamped with `now`."""
    try:
        text = _get(address, timeout_seconds)
    except TimeoutError:
        return Outage(
            OutageReason.SCRAPE_TIMEOUT,
            f"{address} did not answer within {timeout_seconds:g} s: "
            "the driver hangs, or the machine is overloaded",
        )
    except (OSError, http.client.HTTPException) as error:
        return Outage(OutageReason.CONNECTION_FAILED, f"{address}: {error}")
    return text if isinstance(text, Outage) else _parse(text, address, now)


def _get(address: Address, timeout_seconds: float) -> str | Outage:
    """Fetch the page; raises TimeoutError at the deadline, else what `http.client` raises."""
    deadline = time.monotonic() + timeout_seconds
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout_seconds)
    try:
        connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            return Outage(OutageReason.HTTP_ERROR, f"{address} answered {response.status} {response.reason}")
        body = bytearray()
        while chunk := response.read1(_CHUNK_BYTES):
            body += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(body) > LARGEST_BYTES:
                return Outage(OutageReason.MALFORMED, f"{address} sent more than {LARGEST_BYTES} bytes")
        return body.decode("utf-8", errors="replace")
    finally:
        connection.close()


def _parse(text: str, address: Address, now: float) -> Sequence[Reading] | Outage:
    try:
        return tuple(
            Reading(name=sample.name, labels=sample.labels, value=sample.value, at=now)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        )
    except (ValueError, KeyError, IndexError) as error:
        return Outage(OutageReason.MALFORMED, f"{address} is not in the Prometheus text format: {error}")
