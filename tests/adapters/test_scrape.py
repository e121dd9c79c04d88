"""What a driver may serve, however badly: the scrape ends in time, and tells what is wrong."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from headgate.adapters.address import Address
from headgate.adapters.metrics.scrape import (
    LARGEST_BYTES,
    LONG_LINE,
    LONGEST_LINE,
    MOST_SAMPLES,
    READ,
    Page,
    scrape,
)
from headgate.reconcile.metric_table import BY_SAMPLE
from headgate.reconcile.ports import Outage, OutageReason
from headgate_contract import metrics
from support.reported import reported

OK = b"HTTP/1.0 200 OK\r\n"
PAGE = b'# HELP x y\nheadgate_source_pending_records{query="q",source="s"} 7\n'
Serve = Callable[[socket.socket, threading.Event], None]


@contextmanager
def served(serve: Serve) -> Iterator[Address]:
    """A server of one answer to each connection; `over` is set when the test has ended."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)

        def answer() -> None:
            while not over.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    with connection:
                        connection.settimeout(60)
                        connection.recv(65536)
                        serve(connection, over)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield Address("127.0.0.1", listening.getsockname()[1])
        finally:
            over.set()
            thread.join()


def says(answer: bytes) -> Serve:
    return lambda connection, _: connection.sendall(answer)


def drips(start: bytes, then: bytes) -> Serve:
    """A byte now and then, for a minute."""

    def serve(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(start)
        for _ in range(1200):
            if over.wait(0.05):
                return
            connection.sendall(then)

    return serve


def scraped(serve: Serve, timeout_seconds: float = 60.0) -> Page | Outage:
    with served(serve) as address:
        return scrape(address, 5.0, timeout_seconds)


def page(body: bytes, header: bytes = b"") -> bytes:
    return OK + header + b"\r\n" + body


@pytest.mark.parametrize(
    "answer",
    [
        page(PAGE),
        page(PAGE, b"Content-Length: %d\r\n" % len(PAGE)),
        page(PAGE, b"content-length:%d\r\nServer: x\r\n" % len(PAGE)),
        page(PAGE + b"python_info{a=\"b\"} 1\nheadgate_no_such 1\nheadgate_planner_duration_seconds_bucket 1\n"),
        b"HTTP/1.1 200\n\n" + PAGE,
    ],
)  # fmt: skip
def test_what_somebody_reads_of_a_page_is_returned(answer: bytes) -> None:
    values = [("headgate_source_pending_records", {"query": "q", "source": "s"}, 7.0)]
    assert scraped(says(answer)) == Page(reported(values, at=5.0), samples=1)


def test_every_name_that_the_operator_has_a_field_for_is_read() -> None:
    names = sorted(BY_SAMPLE.keys() - {metrics.SOURCE_HELD_BACK.name})
    text = "".join(f'{name}{{query="q",source="s"}} 1\n' for name in names)
    found = scraped(says(page(text.encode())))
    assert not isinstance(found, Outage)
    assert found.samples == len(names)
    assert set(names) == READ


def test_an_older_driver_that_does_not_tell_its_headgate_has_none_that_is_known() -> None:
    found = scraped(says(page(b'headgate_driver_info{application="flights",lineage="a1/1"} 1\n')))
    assert not isinstance(found, Outage)
    assert found.driver.headgate_version is None
    assert found.driver.says_nothing


def test_texts_that_are_long_count_as_more_samples() -> None:
    lines = (f'headgate_source_pending_records{{query="q",source="{n}{"x" * 4000}"}} 7\n' for n in range(10))
    found = scraped(says(page("".join(lines).encode())))
    assert not isinstance(found, Outage)
    assert found.samples > 10 * 4000 // LONG_LINE


LATE = {
    "status": drips(b"HTTP/1.0 200 ", b"O"),
    "a header": drips(OK + b"X: ", b"x"),
    "headers": drips(OK, b"X: y\r\n"),
    "size of a part": drips(b"HTTP/1.1 200 OK\r\n\r\n5;", b"x"),
    "body": drips(page(b""), b"#"),
    "lines": drips(page(b""), b"\n"),
}


@pytest.mark.parametrize("serve", LATE.values(), ids=LATE.keys())
def test_the_deadline_is_over_all_of_it(serve: Serve) -> None:
    found = scraped(serve, timeout_seconds=0.3)
    assert isinstance(found, Outage)
    assert found.reason is OutageReason.SCRAPE_TIMEOUT
    assert "a network policy keeps its port closed" in found.message


WRONG = {
    "parts": (page(b"", b"Transfer-Encoding: chunked\r\n"), "in parts"),
    "shorter": (page(PAGE, b"Content-Length: 1000\r\n"), f"{len(PAGE)} bytes came of 1,000"),
    "longer": (page(PAGE, b"Content-Length: 10\r\n"), f"{len(PAGE)} bytes came of 10"),
    "cut": (page(PAGE[:-3]), "its last line has no end"),
    "large": (page(b"a 1\n" * (LARGEST_BYTES // 4 + 8192)), "sent more than 1,048,576 bytes"),
    "wide": (page(b"headgate_executors" + b" " * LONGEST_LINE + b"1\n"), "sent a line of more than 4,096 bytes"),
    "many": (page(b"headgate_executors 1\n" * (MOST_SAMPLES + 1)), "serves more than 8,000 samples"),
    "headers": (OK + b"a: b\r\n" * 4000, "a header of more than 16,384 bytes"),
    "text": (page(b"headgate_executors one\n"), "is not in the Prometheus text format"),
    "labels": (page(b'headgate_executors{a="b} 1\n'), "is not in the Prometheus text format"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_page_that_cannot_be_taken_is_malformed_and_says_why(answer: bytes, why: str) -> None:
    found = scraped(says(answer))
    assert isinstance(found, Outage)
    assert found.reason is OutageReason.MALFORMED
    assert why in found.message


def test_a_page_that_takes_too_much_processor_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.adapters.metrics.scrape.PROCESSOR_SECONDS", 0.0)
    found = scraped(says(page(PAGE * 1000)))
    assert isinstance(found, Outage)
    assert "of processor time: have Prometheus read it" in found.message


@pytest.mark.parametrize(
    ("answer", "reason", "why"),
    [
        (b"", OutageReason.CONNECTION_FAILED, "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", OutageReason.CONNECTION_FAILED, "does not speak HTTP"),
        (OK + b"Server: x\r\n", OutageReason.CONNECTION_FAILED, "ended within its header"),
        (b"HTTP/1.0 503 Not\x1b now\r\n\r\n", OutageReason.CONNECTION_FAILED, "does not speak HTTP"),
        (b"HTTP/1.0 503 Not now\r\n\r\n", OutageReason.HTTP_ERROR, "answered 503 Not now"),
        (b"HTTP/1.0 404 " + b"x" * 999 + b"\r\n\r\n", OutageReason.HTTP_ERROR, "answered 404 " + "x" * 80),
    ],
)
def test_what_is_no_page_is_told(answer: bytes, reason: OutageReason, why: str) -> None:
    found = scraped(says(answer))
    assert isinstance(found, Outage)
    assert (found.reason, found.message.partition("/metrics ")[2]) == (reason, why)


def test_nobody_there_is_told() -> None:
    with ExitStack() as stack:
        address = stack.enter_context(served(says(b"")))
    found = scrape(address, 5.0, 60.0)
    assert found == Outage(OutageReason.CONNECTION_FAILED, f"{address} cannot be reached: Connection refused")
