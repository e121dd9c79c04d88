"""Metrics straight from the driver, without a Prometheus in between.

The driver tells where it serves them (its announcement names the port that it got). What is served there is in the
hands of the job, and one process reads the pages of everybody. So one deadline is over the whole exchange, from the
connection to the last byte, however slowly they come, and a page has a largest size, a largest number of samples and
a longest time of processor; what nobody asked for is not even read. It is HTTP/1.0, in which a body has no parts and
ends with the connection. What goes wrong is an `Outage` with a reason, never an exception: the loop goes on.
"""

import re
import socket
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple, TextIO, cast

from prometheus_client.parser import text_fd_to_metric_families

from headgate.adapters.address import Address
from headgate.reconcile.metric_table import BY_SAMPLE
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import DriverMetrics
from headgate_contract.metrics import SOURCE_HELD_BACK

TIMEOUT_SECONDS = 2.0
"""A scrape on a healthy driver takes milliseconds; longer than this and the tick would suffer."""
LARGEST_BYTES = 1024 * 1024
LONGEST_LINE = 4096
LARGEST_HEADER = 16 * 1024
MOST_SAMPLES = 8000
"""That anybody reads: some 300 sources have as many."""
LONG_LINE = 200
"""Characters; one that has more counts as several samples, since its texts are kept."""
PROCESSOR_SECONDS = 0.5
"""Seconds of processor time for one page: several times what the largest takes that a driver of ours may serve."""
_CHUNK_BYTES = 65536

READ: Final = BY_SAMPLE.keys() - {SOURCE_HELD_BACK.name}
"""What is read of a page. For how long a source was held in the last minute is asked of a Prometheus, which is looked
at less often than a page; between two pages the counter of held seconds tells what holds it now."""
_NAME = re.compile(rb"headgate_[a-z_]+")
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: ([ -~]{0,80})[ -~]*)?")


@dataclass(frozen=True, slots=True)
class DriverScrape:
    """The port `Metrics` by HTTP. `locate` returns the driver's address, or why there is none yet."""

    locate: Callable[[], Address | Outage]
    timeout_seconds: float = TIMEOUT_SECONDS

    def sample(self, now: float, attempt: int) -> DriverMetrics | Outage:  # noqa: ARG002  there is one
        address = self.locate()
        if isinstance(address, Outage):
            return address
        page = scrape(address, now, self.timeout_seconds)
        return page if isinstance(page, Outage) else page.driver


class Page(NamedTuple):
    """What a driver serves."""

    driver: DriverMetrics
    samples: int
    """How many values it was made of, or as many as take so much room: what is kept of it goes by that."""


class _Unusable(Exception):  # noqa: N818  no error of ours: it becomes an `Outage`
    """An answer that is no page, and why."""

    def __init__(self, message: str, reason: OutageReason = OutageReason.MALFORMED) -> None:
        super().__init__(message)
        self.reason = reason


def scrape(
    address: Address,
    now: float,
    timeout_seconds: float,
    called: Collection[str] | None = None,
    lineage: str | None = None,
) -> Page | Outage:
    """Return what a driver serves at `address`, as of `now`; one that is of this lineage, and calls itself so.

    The address of a pod that is gone is given to another one, which may be a driver. One that says neither is taken.
    """
    deadline = time.monotonic() + timeout_seconds
    try:
        with socket.create_connection((address.host, address.port), timeout=timeout_seconds) as connection:
            lines = _lines(connection, deadline)
            host = f"[{address.host}]" if ":" in address.host else address.host
            request = f"GET /metrics HTTP/1.0\r\nHost: {host}:{address.port}\r\nAccept: text/plain\r\n\r\n"
            connection.sendall(request.encode())
            length = _length(lines)
            return _page(_body(lines, length), now, called, lineage)
    except TimeoutError:
        return Outage(
            OutageReason.SCRAPE_TIMEOUT,
            f"{address} did not answer within {timeout_seconds:g} s: "
            "the driver hangs, its machine is overloaded, or a network policy keeps its port closed",
        )
    except OSError as error:
        return Outage(
            OutageReason.CONNECTION_FAILED, f"{address} cannot be reached: {error.strerror or error}"
        )
    except _Unusable as problem:
        return Outage(problem.reason, f"{address} {problem}")


def _lines(connection: socket.socket, deadline: float) -> Iterator[bytes]:
    """Yield the lines that come, with their ends; raises TimeoutError at the deadline."""
    began = time.thread_time()
    size, rest = 0, b""
    while True:
        if (remaining := deadline - time.monotonic()) <= 0:
            raise TimeoutError
        connection.settimeout(remaining)
        chunk = connection.recv(_CHUNK_BYTES)
        size += len(chunk)
        if size > LARGEST_BYTES + LARGEST_HEADER:
            raise _Unusable(f"sent more than {LARGEST_BYTES:,} bytes: {_TOO_MUCH}")
        if not chunk:
            break
        *complete, rest = (rest + chunk).split(b"\n")
        for line in (*complete, rest):
            if len(line) > LONGEST_LINE:
                raise _Unusable(f"sent a line of more than {LONGEST_LINE:,} bytes")
        for line in complete:
            yield line + b"\n"
            if time.thread_time() - began > PROCESSOR_SECONDS:
                raise _Unusable(f"takes more than {PROCESSOR_SECONDS:g} s of processor time: {_TOO_MUCH}")
    if rest:
        raise _Unusable("is not whole: its last line has no end")


_TOO_MUCH = "have Prometheus read it (metrics.source: Prometheus)"


def _length(lines: Iterator[bytes]) -> int | None:
    """Read the status and the header; returns how long the body is, where that is told."""
    status = _STATUS.fullmatch(next(lines, b"").rstrip(b"\r\n"))
    if status is None:
        raise _Unusable("does not speak HTTP", OutageReason.CONNECTION_FAILED)
    if int(status[1]) != HTTPStatus.OK:
        said = f"answered {int(status[1])} {(status[2] or b'').decode('ascii')}".rstrip()
        raise _Unusable(said, OutageReason.HTTP_ERROR)
    size, length = 0, None
    for line in lines:
        size += len(line)
        name, _, value = line.strip().partition(b":")
        if not name:
            return length
        if size > LARGEST_HEADER:
            raise _Unusable(f"sent a header of more than {LARGEST_HEADER:,} bytes")
        if name.lower() == b"transfer-encoding":
            raise _Unusable("answers HTTP/1.0 in parts, which nobody asked for")
        if name.lower() == b"content-length" and re.fullmatch(rb"[0-9]{1,9}", value.strip()):
            length = int(value)
    raise _Unusable("ended within its header", OutageReason.CONNECTION_FAILED)


def _body(lines: Iterator[bytes], length: int | None) -> Iterator[str]:
    """Yield the lines that somebody reads; raises _Unusable where the body is not as long as was told."""
    size = samples = 0
    for line in lines:
        size += len(line)
        if (name := _NAME.match(line)) is None or name[0].decode() not in READ:
            continue
        samples += 1
        if samples > MOST_SAMPLES:
            raise _Unusable(f"serves more than {MOST_SAMPLES:,} samples: {_TOO_MUCH}")
        yield line.decode("utf-8", errors="replace")
    if length is not None and size != length:
        raise _Unusable(f"is not whole: {size:,} bytes came of {length:,}")


def _of_another(whose: str) -> _Unusable:
    return _Unusable(
        f"serves metrics of {whose}: the address of its pod is another pod's now",
        OutageReason.CONNECTION_FAILED,
    )


def _page(
    lines: Iterator[str], now: float, called: Collection[str] | None = None, lineage: str | None = None
) -> Page:
    driver, samples, room = DriverMetrics(at=now), 0, 0

    def weighed() -> Iterator[str]:
        nonlocal room
        for line in lines:
            room += len(line)
            yield line

    try:
        for family in text_fd_to_metric_families(cast("TextIO", weighed())):  # any lines will do
            for sample in family.samples:
                samples += 1
                who = sample.labels.get("application")
                if called is not None and who is not None and who not in called:
                    raise _of_another(f"application {who!r:.80}, not of {' or '.join(sorted(called))}")
                which = sample.labels.get("lineage")
                if lineage is not None and which and which != lineage:
                    raise _of_another(f"a driver of lineage {which!r:.80}, not {lineage}")
                row = BY_SAMPLE.get(sample.name)
                if row is not None and row.can_be(sample.value):
                    query, source = (sample.labels.get(name, "") for name in ("query", "source"))
                    row.take(driver, query, source, row.detail(sample.labels.get), sample.value)
    except (ValueError, KeyError, IndexError) as error:
        raise _Unusable(f"is not in the Prometheus text format: {error!s:.200}") from error
    return Page(driver, max(samples, room // LONG_LINE))
