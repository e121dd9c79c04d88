"""A Prometheus that answers whatever a test says, however badly: the real one never does most of it.

with fake_prometheus(vector([({"pod": "a"}, 1.0)])) as server: ...
with fake_prometheus(lambda query: refused(400, "bad_data", "parse error")) as server: ...
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from support.certificates import Certificate
from support.http_server import LOOPBACK, Handler, HttpServer

NOW = 1_800_000_000.0
"""What its clock says, always."""
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """One answer. With `drip`, its body comes a byte at a time until the test is over."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    drip: bool = False
    hang: bool = False
    """Nothing comes at all."""


@dataclass
class FakePrometheus:
    """What was asked, by whom, and what is answered."""

    url: str
    answer: Callable[[Mapping[str, str]], Answer]
    """Of the parameters of a query, `query` among them."""
    parameters: list[dict[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


def vector(samples: Sequence[tuple[Mapping[str, str], float | str]], **more: Any) -> Answer:
    """An instant vector; keywords are members beside `data`."""
    result = [{"metric": dict(labels), "value": [NOW, text(value)]} for labels, value in samples]
    data = {"resultType": "vector", "result": result}
    return Answer(json.dumps({"status": "success", "data": data, **more}).encode())


def text(value: float | str) -> str:
    """A value as Prometheus writes it."""
    return value if isinstance(value, str) else repr(value)


def refused(status: int, kind: str, message: str) -> Answer:
    """An error of the API."""
    body = {"status": "error", "errorType": kind, "error": message}
    return Answer(json.dumps(body).encode(), status)


@contextmanager
def fake_prometheus(
    answer: Answer | Callable[[Mapping[str, str]], Answer],
    certificate: Certificate | None = None,
    port: int = 0,
) -> Iterator[FakePrometheus]:
    """Run one on the loopback address; with a certificate it speaks TLS."""

    connections: list[socket.socket] = []

    class Asked(Handler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            parameters = {name: values[0] for name, values in parse_qs(body).items()}
            fake.parameters.append({"path": self.path, **parameters})
            fake.headers.append(dict(self.headers))
            self._send(fake.answer(parameters))

        def do_GET(self) -> None:
            self.do_POST()

        def _send(self, answer: Answer) -> None:
            if answer.hang:
                fake.over.wait()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            try:
                self._write(answer)
            except OSError:
                self.close_connection = True  # whoever asked has lost patience

        def _write(self, answer: Answer) -> None:
            if not answer.drip:
                self.wfile.write(answer.body)
                return
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                if fake.over.wait(0.05):
                    return

    class Server(HttpServer):
        def handle_error(self, *about: object) -> None:
            """Say nothing: that whoever answers in its place has failed is what some tests are about."""

    with Server((LOOPBACK, port), Asked) as server:
        constant = answer if isinstance(answer, Answer) else None
        asked = answer if not isinstance(answer, Answer) else lambda _: constant
        scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.certificate, certificate.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        fake = FakePrometheus(f"{scheme}://127.0.0.1:{server.server_port}", asked)
        thread = server.start()
        try:
            yield fake
        finally:
            fake.over.set()
            server.shutdown()
            thread.join()
            for connection in connections:  # those that are kept would outlive the server
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
