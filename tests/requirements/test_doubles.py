"""The doubles of servers leave the tests beside them alone."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.http_server import LOOPBACK, Handler, HttpServer, serving

ROOT = Path(__file__).parents[2]
OF_THE_LIBRARY = re.compile(r"\b(BaseHTTPRequestHandler|ThreadingHTTPServer|HTTPServer)\b")
ASKS = b"GET / HTTP/1.0\r\n\r\n"


@pytest.mark.parametrize(("reason", "is_told"), [(ConnectionResetError, False), (KeyError, True)])
def test_a_client_that_has_gone_is_not_told_of_and_a_defect_is(
    capsys: pytest.CaptureFixture[str], reason: type[Exception], is_told: bool
) -> None:
    over = threading.Event()

    class Failing(Handler):
        def do_GET(self) -> None:
            raise reason

    class Server(HttpServer):
        def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
            super().shutdown_request(request)
            over.set()

    with Server((LOOPBACK, 0), Failing) as server:
        thread = server.start()
        with socket.create_connection(server.server_address) as client:
            client.sendall(ASKS)
            assert over.wait(60)
        server.shutdown()
        thread.join()
    assert ("Traceback" in capsys.readouterr().err) is is_told


def test_clients_that_come_at_once_are_all_let_in() -> None:
    with HttpServer((LOOPBACK, 0), Handler) as nobody_accepts, ExitStack() as clients:
        for _ in range(50):
            clients.enter_context(socket.create_connection(nobody_accepts.server_address, timeout=10))


def test_an_answer_tells_its_length_and_the_server_ends_with_the_block() -> None:
    class Answering(Handler):
        def do_GET(self) -> None:
            self.say(b"so it is", 418, {"Content-Type": "text/plain"})

    with serving(Answering) as server, socket.create_connection(server.server_address) as client:
        client.sendall(ASKS)
        said = b"".join(iter(lambda: client.recv(4096), b""))
    assert said.startswith(b"HTTP/1.0 418 ")
    assert said.endswith(b"Content-Type: text/plain\r\nContent-Length: 8\r\n\r\nso it is")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.server_address)


def test_all_doubles_are_made_of_that_server() -> None:
    own = {Path(__file__).name, "http_server.py"}
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks" / "operator").rglob("*.py")]
    others = {
        str(file.relative_to(ROOT)): found[0]
        for file in files
        if file.name not in own and (found := OF_THE_LIBRARY.search(file.read_text(encoding="utf-8")))
    }
    assert others == {}
