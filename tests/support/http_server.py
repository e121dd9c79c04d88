"""HTTP servers in a thread of the tests, which all doubles of servers are made of.

Nothing is printed of a client that has gone away: a traceback says nothing of the test that runs by then, and Python
parses source to print one (see `support.parsing`).
"""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

LOOPBACK = "127.0.0.1"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Handler(BaseHTTPRequestHandler):
    """Answers requests and logs none of them; a test that wants to know keeps them."""

    disable_nagle_algorithm = True  # else a body waits 40 ms for the word that its head has come

    def say(self, body: bytes, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Send an answer that tells its length."""
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: object) -> None:
        """Say nothing."""


class HttpServer(ThreadingHTTPServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True
    request_queue_size = 128
    """Clients that come at once. Beside five, the default, one is not heard, and knocks again after a second."""

    def handle_error(self, *about: object) -> None:
        """Print what is wrong with the double, and not that a client has gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError | ssl.SSLError):
            super().handle_error(*about)

    def start(self) -> threading.Thread:
        """Serve in a thread, until `shutdown`, which waits for less than a glance."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        return thread


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[HttpServer]:
    """Serve on the loopback address until the block ends."""
    with HttpServer((LOOPBACK, port), handler) as server:
        thread = server.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
