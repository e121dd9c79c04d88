"""The calls to the API server, where what answers is none, or one that asks for too much."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient, Configuration

from headgate.adapters.kubernetes.client import APPLICATIONS, LONGEST_PAUSE_SECONDS, PODS, ApiServer
from headgate.adapters.kubernetes.events import EventRecorder, Outbox
from headgate.adapters.kubernetes.manifests import Owner
from headgate.errors import ApiUnavailable
from headgate.key import Key
from headgate.reconcile.ports import Event
from support.http_server import Handler, serving

KEY = Key("team", "flights")
Ask = Callable[[ApiServer], Awaitable[Any]]


@dataclass
class Proxy:
    """Answers everything with the same."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def asks(self, ask: Ask) -> Any:
        async def run() -> Any:
            cluster = ApiServer(ApiClient(Configuration(host=f"http://127.0.0.1:{self.port}")))
            try:
                return await ask(cluster)
            finally:
                await cluster.close()

        return asyncio.run(run())


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy()

    class Answering(Handler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            proxy.asked.append(f"{self.command} {self.path}")
            self.say(proxy.body, proxy.status, proxy.headers)

        do_GET = do_POST = do_PATCH = do_DELETE = answer

    with serving(Answering) as server:
        proxy.port = server.server_port
        yield proxy


ASKED: dict[str, Ask] = {
    "get": lambda cluster: cluster.get(APPLICATIONS, KEY),
    "list": lambda cluster: cluster.list(PODS, "team"),
    "list of metadata": lambda cluster: cluster.list(PODS, "team", metadata_only=True),
    "create": lambda cluster: cluster.create(PODS, {"metadata": {"namespace": "team", "name": "a"}}),
    "patch": lambda cluster: cluster.patch(PODS, KEY, {}),
    "status": lambda cluster: cluster.apply_status({"metadata": {"namespace": "team", "name": "a"}}),
    "describe": lambda cluster: cluster.describe(APPLICATIONS),
}
PAGES = [b"<html>Please log in</html>", b"", b"\xff\xfe", b"[1]", b"null", b'"ok"', b"{}", b'{"items": 7}']


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("ask", ASKED.values(), ids=list(ASKED))
def test_a_success_that_is_no_object_is_an_answer_that_was_not_had(
    proxy: Proxy, ask: Ask, page: bytes
) -> None:
    proxy.body = page
    with pytest.raises(ApiUnavailable, match="the answer is"):
        proxy.asks(ask)


def test_what_a_proxy_says_is_quoted(proxy: Proxy) -> None:
    proxy.body = PAGES[0]
    with pytest.raises(ApiUnavailable, match="Please log in"):
        proxy.asks(ASKED["get"])


def test_what_a_proxy_says_is_quoted_without_what_is_secret_in_it(proxy: Proxy) -> None:
    proxy.body = b"<html>Log in at https://ops:x7Kq@sso.example.com/</html>"
    with pytest.raises(ApiUnavailable, match=r"https://\(hidden\)@sso\.example\.com/"):
        proxy.asks(ASKED["get"])


def test_an_answer_to_a_deletion_is_not_read(proxy: Proxy) -> None:
    proxy.body = b"{}"
    assert proxy.asks(lambda cluster: cluster.delete(PODS, KEY)) == {}


def test_events_go_on_where_something_else_answers_for_a_while(proxy: Proxy) -> None:
    proxy.body = PAGES[0]
    about = Owner(key=KEY, uid="1")

    async def send(cluster: ApiServer) -> None:
        outbox = Outbox(EventRecorder(cluster, "me"), pace_seconds=0)
        sending = asyncio.create_task(outbox.run())
        for reason in ("First", "Second"):
            await outbox.tell(about, Event(at=1_700_000_000.0, reason=reason, message="said"))
        async with asyncio.timeout(240):
            while len(proxy.asked) < 2 and not sending.done():
                await asyncio.sleep(0.01)
        assert not sending.done()
        sending.cancel()

    proxy.asks(send)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("-3", 0.0),
        ("86400", LONGEST_PAUSE_SECONDS),
        ("inf", LONGEST_PAUSE_SECONDS),
        ("1e999", LONGEST_PAUSE_SECONDS),
        ("nan", None),
        ("soon", None),
        ("Fri, 31 Dec 2027 23:59:59 GMT", None),
    ],
)
def test_nobody_can_ask_for_a_pause_of_more_than_minutes(
    proxy: Proxy, header: str, seconds: float | None
) -> None:
    proxy.status, proxy.headers = 429, {"Retry-After": header}
    with pytest.raises(ApiUnavailable) as refused:
        proxy.asks(ASKED["get"])
    assert refused.value.retry_after_seconds == seconds
