"""A server that nobody can hold up: silent connections, slow ones, too many, and a page that is dear."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email.message import Message

import pytest

from headgate_contract.serving import BoundedServer, FreshPage, Response
from support.waiting import wait_until

MOST = 4
NEVER = 3600.0


@pytest.fixture
def server() -> Iterator[BoundedServer]:
    server = BoundedServer(
        ("127.0.0.1", 0), lambda path, _: Response(200, "text/plain", path.encode()), most=MOST
    )
    looks_often = {"poll_interval": 0.01}  # of each test the end waits for one look
    threading.Thread(target=server.serve_forever, kwargs=looks_often, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def answer(server: BoundedServer, path: str = "/metrics", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", path, headers=headers)
    got = connection.getresponse()
    return got.status, got.read()


def idle(server: BoundedServer, stack: ExitStack) -> socket.socket:
    """A connection that begins to ask, and says no more."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=60))
    connection.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    return connection


def is_cut(connection: socket.socket) -> bool:
    try:
        return not connection.recv(100)
    except ConnectionResetError:  # what it sent was not even read
        return True


def test_a_page_is_served_packed_where_that_is_taken(server: BoundedServer) -> None:
    assert answer(server, "/a?b=c") == (200, b"/a?b=c")
    status, body = answer(server, **{"Accept-Encoding": "gzip"})
    assert (status, gzip.decompress(body)) == (200, b"/metrics")


def test_silent_ones_make_room_for_whoever_asks_and_are_cut(server: BoundedServer) -> None:
    with ExitStack() as stack:
        before = threading.active_count()
        silent = [idle(server, stack) for _ in range(3 * MOST)]
        wait_until(lambda: len(server._open) == MOST, "as many connections as may be")
        assert threading.active_count() <= before + MOST
        assert [answer(server)[0] for _ in range(3 * MOST)] == [200] * 3 * MOST, "the kubelet's probes, say"
        server._seconds = 0.0
        assert all(is_cut(connection) for connection in silent)
        server._seconds = NEVER
        wait_until(lambda: not server._open, "an end of all connections")
    assert answer(server)[0] == 200


def test_what_is_too_many_is_refused_at_once_where_all_others_are_being_answered() -> None:
    may_end = threading.Event()

    def slowly(path: str, _: Message) -> Response:
        assert may_end.wait(60)
        return Response(200, "text/plain", path.encode())

    server = BoundedServer(("127.0.0.1", 0), slowly, most=MOST)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    with ExitStack() as stack:
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        asked = []
        for _ in range(MOST):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            connection.request("GET", "/metrics")
            asked.append(connection)
        wait_until(lambda: len(server._asked) == MOST, "all to have asked")
        for _ in range(MOST):
            beyond = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.server_port), timeout=60)
            )
            assert beyond.recv(100).startswith(b"HTTP/1.0 503")
        may_end.set()
        assert [connection.getresponse().status for connection in asked] == [200] * MOST
        wait_until(lambda: not server._open, "an end of all connections")
        assert not server._asked


def test_one_that_says_nothing_is_cut_before_its_time_is_over(
    server: BoundedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = server.RequestHandlerClass
    assert handler.timeout < server._seconds
    monkeypatch.setattr(handler, "timeout", 0.01)
    server._seconds = NEVER
    with ExitStack() as stack:
        assert idle(server, stack).recv(100) == b""


def test_one_that_sends_a_byte_now_and_then_is_cut_as_well(server: BoundedServer) -> None:
    with ExitStack() as stack:
        dripping = idle(server, stack)
        wait_until(lambda: server._open, "the connection")
        server._seconds = 0.0

        def is_cut() -> bool:
            try:
                dripping.sendall(b"x")
            except OSError:
                return True
            return not server._open

        wait_until(is_cut, "its end")


def test_a_connection_for_which_no_thread_can_be_made_costs_nothing(
    server: BoundedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fails)
        for _ in range(3 * MOST):
            with pytest.raises((http.client.HTTPException, OSError)):
                answer(server)
    assert answer(server)[0] == 200


def test_a_page_is_made_once_in_a_while_for_each_form() -> None:
    now, made = [0.0], list[str]()

    def make(accept: str) -> tuple[str, Callable[[], bytes]]:
        def write() -> bytes:
            made.append(accept)
            return str(len(made)).encode()

        return accept, write

    def asked(accept: str) -> bytes:
        headers = Message()
        headers["Accept"] = accept
        answer = page("/metrics", headers)
        assert answer.content_type == accept, "what one has asked for is told to no other one"
        return answer.body

    page = FreshPage(make, fresh_seconds=1.0, clock=lambda: now[0])
    assert [asked("a"), asked("a; version=2"), asked("b"), asked("a")] == [b"1", b"1", b"2", b"1"]
    now[0] = 1.0
    assert asked("a") == b"3"
    assert made == ["a", "b", "a"]
    assert [asked(f"a; version={number}") for number in range(100)] == [b"3"] * 100


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/metrics", b"all"),
        ("/metrics?flags=set", b"set"),
        ("/metrics?a=b&flags=set", b"set"),
        ("/metrics?flags=settled", b"all"),
        ("/metrics?", b"all"),
        ("/metrics?&flags=set", b"set"),
    ],
)
def test_a_word_of_the_query_asks_for_another_page(path: str, body: bytes) -> None:
    page = FreshPage(says(b"all"), others={"flags=set": says(b"set")}, clock=lambda: 0.0)
    assert page("/metrics", Message()).body == b"all", "what one has asked for is told to no other one"
    assert page(path, Message()).body == body


def says(body: bytes) -> Callable[[str], tuple[str, Callable[[], bytes]]]:
    return lambda _: ("text/plain", lambda: body)


def test_a_page_that_somebody_has_been_making_for_long_is_not_there() -> None:
    making, made = threading.Event(), threading.Event()

    def make(accept: str) -> tuple[str, Callable[[], bytes]]:
        making.set()
        assert made.wait(60)
        return "text/plain", lambda: b""

    page = FreshPage(make, wait_seconds=0.01)
    first = threading.Thread(target=page, args=("/metrics", Message()))
    first.start()
    assert making.wait(60)
    assert page("/metrics", Message()).status == 503
    made.set()
    first.join()
    assert page("/metrics", Message()).status == 200
