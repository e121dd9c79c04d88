"""Probes: what counts as stuck, what as not ready, and what is not the operator's fault."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from headgate.handlers.health import Health, Timeouts, serve_probes
from headgate_contract.listening import every_address
from headgate_contract.serving import BoundedServer


@dataclass
class Watched:
    """A healthy leader, and the time that passes over it."""

    now: float = 1000.0
    longest_run: float = 0.0
    behind: float = 0.0
    health: Health = field(init=False)

    def __post_init__(self) -> None:
        self.health = Health(
            Timeouts(tick=5), lambda: self.now, lambda: self.longest_run, lambda: self.behind
        )
        self.health.obstacle = ""
        self.health.leads = self.health.synced = True
        self.health.ticked()

    def passes(self, seconds: float, *but: Callable[[Health], None]) -> None:
        """Let time pass in which everything happens as it should but for what is named."""
        self.now += seconds
        for happens in (Health.beat, Health.ticked, Health.reached):
            if happens not in but:
                happens(self.health)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_working_leader_is_alive_and_ready(watched: Watched) -> None:
    watched.passes(3600)

    assert (watched.health.not_alive(), watched.health.not_ready()) == (None, None)


def test_an_event_loop_that_does_not_turn_is_stuck(watched: Watched) -> None:
    watched.passes(30, Health.beat)
    assert watched.health.not_alive() is None
    watched.passes(1, Health.beat)
    assert watched.health.not_alive() == "the event loop has not run for 31 s"


def test_missing_ticks_are_stuck(watched: Watched) -> None:
    watched.passes(31, Health.ticked)

    assert watched.health.not_alive() == "there has been no tick for 31 s"


def test_a_look_at_metrics_that_never_ends_is_stuck(watched: Watched) -> None:
    watched.health.longest_look = lambda: 300.0
    assert watched.health.not_alive() is None
    watched.health.longest_look = lambda: 301.0
    assert watched.health.not_alive() == "a look at metrics has been going on for 301 s"


def test_a_replica_that_waits_has_no_ticks_and_is_alive() -> None:
    watched = Watched()
    waiting = Health(Timeouts(), lambda: watched.now)
    watched.now += 3600
    waiting.beat()

    assert waiting.not_alive() is None


def test_a_reconcile_without_an_end_is_stuck(watched: Watched) -> None:
    watched.longest_run = 301

    assert watched.health.not_alive() == "a reconcile has been going on for 301 s"


def test_a_dead_watch_is_stuck(watched: Watched) -> None:
    watched.behind = 121

    assert watched.health.not_alive() == "a watch has been silent for 121 s about what a listing has told"


def test_an_api_server_that_is_gone_is_no_fault_of_a_leader_but_it_is_not_ready(watched: Watched) -> None:
    watched.health.reached()
    watched.passes(31, Health.reached)

    assert watched.health.not_alive() is None
    assert watched.health.not_ready() == "the API server has not answered for 31 s"


def test_a_leader_is_ready_once_it_has_heard_of_everything(watched: Watched) -> None:
    watched.health.synced = False
    assert watched.health.not_ready() == "not everything that is there has been heard of yet"
    watched.health.leads = False
    assert watched.health.not_ready() is None


def test_what_keeps_it_from_starting_makes_it_not_ready_and_not_dead(watched: Watched) -> None:
    watched.health.obstacle = "missing rights: in all namespaces: patch pods"

    assert watched.health.not_ready() == "missing rights: in all namespaces: patch pods"
    assert watched.health.not_alive() is None


@contextmanager
def serving(watched: Watched, host: str = "127.0.0.1") -> Iterator[BoundedServer]:
    with serve_probes(watched.health, (host, 0)) as server:
        yield server
        server.shutdown()


@pytest.fixture
def server(watched: Watched) -> Iterator[BoundedServer]:
    with serving(watched) as server:
        yield server


def probed(server: BoundedServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_probes_answer_on_an_address_of_ipv6(watched: Watched) -> None:
    with serving(watched, "::1") as server:
        answer = urllib.request.urlopen(f"http://[::1]:{server.server_port}/healthz", timeout=60)
        assert answer.read() == b"ok\n"


def test_probes_answer_on_every_address_where_none_is_given(watched: Watched) -> None:
    with serving(watched, every_address()) as server:
        assert probed(server, "/healthz") == (200, "ok\n")


def test_probes_answer_with_what_is_wrong(watched: Watched, server: BoundedServer) -> None:
    assert probed(server, "/healthz") == probed(server, "/readyz?verbose") == (200, "ok\n")
    watched.longest_run = 301
    assert probed(server, "/healthz") == (503, "a reconcile has been going on for 301 s\n")
    watched.health.obstacle = "no CRD"
    assert probed(server, "/readyz") == (503, "no CRD\n")
    assert probed(server, "/")[0] == 404
