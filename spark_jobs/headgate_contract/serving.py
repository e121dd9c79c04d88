"""An HTTP server that nobody can hold up: what driver and operator answer scrapes and probes with.

Whoever reaches the port may open connections and say nothing, and each has a thread. So their number is bounded,
and a connection that is not done in time is cut. Where there are too many, the one that has not asked for longest
makes room for the next: else whoever says nothing, and comes back when cut, would keep others from an answer, the
kubelet with its probes among them. If all have asked, the next one is refused at once. A page that costs something to
make is made once a second, however often it is asked for.
"""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MOST_CONNECTIONS = 32
SECONDS = 10.0
"""How long a connection may take, from the first byte that is awaited to the last that is sent."""
ROOM_SECONDS = 0.5
"""How long one that is cut to make room may take to end: a moment, on a machine that has one to spare."""
FRESH_SECONDS = 1.0
"""How old a page may be."""
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n"


class Response(NamedTuple):
    """What is answered."""

    status: int
    content_type: str
    body: bytes


class BoundedServer(ThreadingHTTPServer):
    """Answers GET on a thread per connection, of which there are a few."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[str, Message], Response],
        *,
        most: int = MOST_CONNECTIONS,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`answer` is given path, with its query, and headers. Raises OSError where the address cannot be had."""
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(most)
        self._seconds = seconds
        self._clock = clock
        self._guard = threading.Lock()
        self._open: dict[Any, float] = {}
        """Since when each is, the oldest first."""
        self._asked: set[Any] = set()
        """Those of which the request is known."""
        super().__init__(address, _handler(answer))

    def start(self, name: str) -> None:
        """Serve on a daemon thread of that name."""
        threading.Thread(target=self.serve_forever, name=name, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False) and not self._makes_room():
            with suppress(OSError):
                request.setblocking(False)
                request.send(_BUSY)
            self.shutdown_request(request)
            return
        with self._guard:
            self._open[request] = self._clock()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be made
            self._over(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, on the connection's own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._over(request)

    def service_actions(self) -> None:
        """Cut what takes too long; called twice a second."""
        now = self._clock()
        with self._guard:
            late = [request for request, since in self._open.items() if now - since > self._seconds]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def has_asked(self, request: Any) -> None:
        """Take in that a connection has said what it wants: it is answered now."""
        with self._guard:
            if request in self._open:
                self._asked.add(request)

    def _makes_room(self) -> bool:
        """Cut the connection that has not asked for longest; returns whether there is room then."""
        with self._guard:
            silent = next((one for one in self._open if one not in self._asked), None)
        if silent is None:
            return False
        with suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)
        return self._free.acquire(timeout=ROOM_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asked is gone, or was cut off."""

    def _over(self, request: Any) -> None:
        with self._guard:
            self._asked.discard(request)
            if self._open.pop(request, None) is None:
                return
        self._free.release()


class FreshPage:
    """A page that is made at most once in a while in each form, and by one caller at a time.

    Whoever asks may write what they like into `Accept`, so a form is known by its media type alone.
    """

    def __init__(
        self,
        make: Callable[[str], tuple[str, Callable[[], bytes]]],
        *,
        others: Mapping[str, Callable[[str], tuple[str, Callable[[], bytes]]]] | None = None,
        fresh_seconds: float = FRESH_SECONDS,
        wait_seconds: float = SECONDS / 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` gives, for an `Accept` header, the type of the page and what writes it; `others` do where the
        URL's query has their word."""
        self._makes = {**(others or {}), "": make}  # the last: a query may have an empty word beside another
        self._fresh_seconds = fresh_seconds
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._making = threading.Lock()
        self._made: dict[tuple[str, str], tuple[float, bytes]] = {}
        """When each form was made last, and the page."""

    def __call__(self, path: str, headers: Message) -> Response:
        """Return the page; 503 where another caller has been making it for long."""
        path, _, query = path.partition("?")
        if path == "/favicon.ico":
            return Response(HTTPStatus.NOT_FOUND, "text/plain", b"")
        if not self._making.acquire(timeout=self._wait_seconds):
            return Response(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"the page takes long to be made\n")
        try:
            asked = query.split("&")
            return self._page(
                next((word for word in self._makes if word in asked), ""), headers.get("Accept", "")
            )
        finally:
            self._making.release()

    def _page(self, word: str, accept: str) -> Response:
        content_type, write = self._makes[word](accept)
        form = word, content_type.partition(";")[0]
        at, body = self._made.get(form, (float("-inf"), b""))
        if not 0 <= self._clock() - at < self._fresh_seconds:
            body = write()
            self._made[form] = self._clock(), body
        return Response(HTTPStatus.OK, content_type, body)


def _handler(answer: Callable[[str, Message], Response]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server: BoundedServer
        timeout = 5

        def do_GET(self) -> None:
            self.server.has_asked(self.connection)
            page = answer(self.path, self.headers)
            packed = "gzip" in self.headers.get("Accept-Encoding", "")
            body = gzip.compress(page.body, 1) if packed else page.body
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(body)))
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as the base class has it
            """Say nothing: a scrape every few seconds is not worth a line."""

    return Handler
