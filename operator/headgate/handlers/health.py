"""What the probes answer: is there progress, and is this replica of use.

An answer that says no more than "the process is there" keeps a stuck operator for ever. So liveness asks for
what only a working one has: an event loop that runs, ticks that come, reconciles that end, watches that tell what
a listing tells. It does not ask for anything outside: a Prometheus that is down, or an API server, is not
mended by a restart of the operator.

The probes are served from a thread of their own, or a blocked event loop could not say so.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus

from headgate_contract.serving import BoundedServer, Response

MOST_PROBES = 256
"""Connections at once: more than for pages, since the kubelet restarts an operator whose probes are refused."""
BEAT_SECONDS = 1.0
"""Seconds between two proofs that the event loop runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long something may take before it counts as stuck, in seconds."""

    tick: float = 5.0
    loop: float = 30.0
    """Seconds without an iteration of the event loop: more than listing ten thousand applications takes."""
    reconcile: float = 300.0
    """One reconcile of an application: a dozen calls to the API server, each of which may take its time."""
    look: float = 300.0
    """One look at metrics: each query and each scrape has a deadline, so one that goes on and on is stuck."""
    behind: float = 120.0
    """Seconds that a watch may take to tell what a listing has told."""
    api: float = 30.0
    """Seconds without an answer of the API server, before the replica counts as not ready."""

    @property
    def ticks(self) -> float:
        """Without a tick: three of them, or what a busy event loop may take."""
        return max(3 * self.tick, self.loop)


@dataclass(slots=True)
class Health:
    """What is known of this process's own progress. Times are on the monotonic clock."""

    limits: Timeouts
    clock: Callable[[], float] = time.monotonic
    longest_run: Callable[[], float] = lambda: 0.0
    behind: Callable[[], float] = lambda: 0.0
    """For how long a watch has not told what a listing has."""
    longest_look: Callable[[], float] = lambda: 0.0
    leads: bool = False
    synced: bool = False
    """Whether everything that is there has been heard of."""
    obstacle: str = "the API server has not been asked yet"
    """What keeps the operator from starting; empty: nothing."""
    _beat: float = field(init=False)
    _tick: float | None = None
    """`None`: there are none yet, for this replica waits."""
    _reached: float | None = None
    """`None`: nobody asks it regularly, for there is no election."""

    def __post_init__(self) -> None:
        self._beat = self.clock()

    def ticked(self) -> None:
        """A tick has come; what it found does not matter here."""
        self._tick = self.clock()

    def reached(self) -> None:
        """The API server has answered an election that asks it all the time."""
        self._reached = self.clock()

    def beat(self) -> None:
        self._beat = self.clock()

    async def beats(self) -> None:
        """Prove again and again that the event loop runs."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT_SECONDS)

    def loop_runs(self) -> bool:
        """Whether the event loop has run lately; may be asked from any thread."""
        return self.clock() - self._beat <= self.limits.loop

    def not_alive(self) -> str | None:
        """Return what is stuck, for a restart to mend."""
        now = self.clock()
        if not self.loop_runs():
            return f"the event loop has not run for {now - self._beat:.0f} s"
        if self._tick is not None and now - self._tick > self.limits.ticks:
            return f"there has been no tick for {now - self._tick:.0f} s"
        if self.longest_run() > self.limits.reconcile:
            return f"a reconcile has been going on for {self.longest_run():.0f} s"
        if self.longest_look() > self.limits.look:
            return f"a look at metrics has been going on for {self.longest_look():.0f} s"
        if self.behind() > self.limits.behind:
            return f"a watch has been silent for {self.behind():.0f} s about what a listing has told"
        return None

    def not_ready(self) -> str | None:
        """Return why this replica could not act, or take over."""
        silence = 0.0 if self._reached is None else self.clock() - self._reached
        if self.obstacle:
            return self.obstacle
        if silence > self.limits.api:
            return f"the API server has not answered for {silence:.0f} s"
        if self.leads and not self.synced:
            return "not everything that is there has been heard of yet"
        return self.not_alive()


def serve_probes(health: Health, address: tuple[str, int]) -> BoundedServer:
    """Serve `/healthz` and `/readyz`: 200 and `ok`, or 503 and the reason."""
    answers = {"/healthz": health.not_alive, "/readyz": health.not_ready}

    def answer(path: str, _: Message) -> Response:
        if (ask := answers.get(path.partition("?")[0])) is None:
            return _said(HTTPStatus.NOT_FOUND, f"there is {' and '.join(answers)}")
        problem = ask()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return _said(status, problem or "ok")

    server = BoundedServer(address, answer, most=MOST_PROBES)
    server.start("probes")
    return server


def _said(status: HTTPStatus, text: str) -> Response:
    return Response(status, "text/plain; charset=utf-8", f"{text}\n".encode())
