"""On a real API server: the operator dies after each single write of a whole life, or reads what was so before it.

Whatever was written last, the process that comes next goes on from what is there: the life goes on as it would
have, attempt by attempt, and never with two drivers. So does one whose reads are answered by a cache that lags.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import config

from headgate.adapters.kubernetes.client import APPLICATIONS, ApiServer, Call, Manifest
from headgate.adapters.kubernetes.events import EventRecorder
from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.kubernetes.pods import is_ended
from headgate.controller.cluster import Controller
from headgate.errors import TransientError
from headgate.key import Key
from headgate_contract import ControlDocument
from headgate_contract.receiving import read
from support.cluster import Cluster as RealCluster
from support.fake_kubelet import FakeKubelet, Listing, gone
from support.looping import query
from support.operating import OPTIONS, FakeMeasurements, manifest
from support.served import account_for_all

pytestmark = pytest.mark.cluster

RESTART = {"backoff": "10ms", "maxBackoff": "10ms"}
TICKS = 200
STALE_READS = 12
"""Several reconciles: one reads twice or so."""
EACH_STALE = 3
"""Which writes old answers follow: `tests/laws/test_stale.py` has them at more points, on a cluster in memory."""
AT_ONCE = 4
"""Lives, each in a namespace of its own: one works while others wait for the API server."""


class Crash(BaseException):
    """The operator's process ends."""


class CrashingCluster(ApiServer):
    """The API server, until the write after which the process dies. 0: it never does."""

    def __init__(self, api: Any, dies_after: int) -> None:
        super().__init__(api)
        self.writes = 0
        self._dies_after = dies_after

    async def _call(self, call: Call) -> Manifest:
        answer = await super()._call(call)
        if call.method != "GET":
            self.writes += 1
            if self.writes == self._dies_after:
                raise Crash
        return answer


class StaleCluster(CrashingCluster):
    """The API server; after a certain write, its next answers to reads are those that it has given before."""

    def __init__(self, api: Any, stale_after: int) -> None:
        super().__init__(api, 0)
        self._stale_after = stale_after
        self._answers: dict[tuple[Any, ...], Manifest] = {}
        self.stale = 0
        """How many answers were old."""

    async def _call(self, call: Call) -> Manifest:
        if call.method != "GET":
            return await super()._call(call)
        asked = call.path, str(call.query)
        if asked in self._answers and self.writes >= self._stale_after and self.stale < STALE_READS:
            self.stale += 1
            return copy.deepcopy(self._answers[asked])
        answer = await super()._call(call)
        self._answers[asked] = copy.deepcopy(answer)
        return answer


class Life:
    """One application from its creation to its deletion, its kubelet, and an operator that is disturbed."""

    def __init__(self, api: Any, namespace: str, disturbed: CrashingCluster, name: str) -> None:
        self.key = Key(namespace, name)
        self.plain = ApiServer(api)
        self.disturbed = disturbed
        self.kubelet = FakeKubelet(self.plain, namespace)
        self.attempts: list[str] = []
        self._begin()

    def _begin(self) -> None:
        recorder = EventRecorder(self.disturbed, "headgate")
        self._controller = Controller(
            self.disturbed, FakeMeasurements(), OPTIONS, recorder, jitter=lambda: 1.0
        )
        self._listing = Listing(self.disturbed, self.key.namespace, self._controller)

    async def until(self, what: str, goal: Callable[[], Awaitable[bool]]) -> None:
        """Reconcile until the goal is reached; never with two drivers."""
        for _ in range(TICKS):
            try:
                with suppress(TransientError):
                    await self._listing.tell()
                    await self._controller.reconcile(self.key)
            except Crash:
                self._begin()
            pods = await self.pods()
            assert sum(not is_ended(pod) for pod in pods) <= 1
            self.attempts += [name for pod in pods if (name := name_of(pod)) not in self.attempts]
            if await goal():
                return
        pytest.fail(f"died after write {self.disturbed.writes}: not reached: {what}")

    async def pods(self) -> list[Manifest]:
        labels = {"headgate.dev/application": self.key.name}
        found = await self.kubelet.pods()
        return [pod for pod in found if labels.items() <= pod["metadata"]["labels"].items()]

    async def declare(self, **spec: Any) -> None:
        """A person applies the resource."""
        wanted = manifest(self.key.name, restart=RESTART, **spec)["spec"]
        await self.plain.patch(APPLICATIONS, self.key, {"spec": {"sparkConf": None, **wanted}})

    async def live(self) -> None:
        """The whole life."""
        wanted = manifest(self.key.name, restart=RESTART)
        wanted["metadata"]["namespace"] = self.key.namespace
        await self.plain.create(APPLICATIONS, wanted)
        first, second, third, fourth = (f"{self.key.name}-driver-{n}" for n in (1, 2, 3, 4))
        await self.until("the first driver", lambda: self._is_alive(first))
        await self.kubelet.runs(first, time.time())
        await self.until("Running", lambda: self._is("Running"))

        await self.declare(queries=[query(checkpoint={"interval": "7s"})])
        await self.until("a live change", lambda: self._is_told(7.0))

        await self.declare(sparkConf={"spark.x": "1"})
        await self.until("the first driver asked to stop", lambda: self._is_leaving(first))
        await self.kubelet.ends(first, 0, time.time())
        await self.until("the second driver", lambda: self._is_alive(second))

        await self.kubelet.runs(second, time.time())
        await self.until("Running", lambda: self._is("Running"))
        await self.kubelet.ends(second, 1, time.time())
        await self.until("the third driver", lambda: self._is_alive(third))

        await self.kubelet.runs(third, time.time())
        await self.declare(sparkConf={"spark.x": "1"}, suspend=True)
        await self.until("the third driver asked to stop", lambda: self._is_leaving(third))
        await self.kubelet.ends(third, 0, time.time())
        await self.until("Suspended", lambda: self._is("Suspended"))

        await self.declare(sparkConf={"spark.x": "1"}, suspend=False)
        await self.until("the fourth driver", lambda: self._is_alive(fourth))
        await self.kubelet.runs(fourth, time.time())
        await self.plain.delete(APPLICATIONS, self.key)
        await self.until("the last driver asked to stop", lambda: self._is_leaving(fourth))
        await self.kubelet.ends(fourth, 0, time.time())
        await self.until("gone", lambda: gone(self.plain, APPLICATIONS, self.key))
        assert self.attempts == [first, second, third, fourth]

    async def _is(self, state: str) -> bool:
        status: Manifest = (await self.plain.get(APPLICATIONS, self.key)).get("status", {})
        return status.get("state") == state

    async def _is_alive(self, name: str) -> bool:
        return any(name_of(pod) == name and not is_ended(pod) for pod in await self.pods())

    async def _is_leaving(self, name: str) -> bool:
        return any(
            name_of(pod) == name and "deletionTimestamp" in pod["metadata"] for pod in await self.pods()
        )

    async def _is_told(self, interval: float) -> bool:
        told = [read(pod["metadata"]["annotations"][CONTROL]) for pod in await self.pods()]
        return [d.queries["delays"].interval_seconds for d in told if isinstance(d, ControlDocument)] == [
            interval
        ]


def name_of(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Any]:
    api = await config.new_client_from_config(str(kubeconfig))
    try:
        yield api
    finally:
        await api.close()


def lives(plane: RealCluster, what: str, disturbed: Callable[[Any, int], CrashingCluster], each: int) -> int:
    """Live a life for `each` write of one that nothing disturbs, 1 for all; returns how many."""
    namespaces = [plane.namespace() for _ in range(AT_ONCE)]

    async def live() -> int:
        async with connected(plane.kubeconfig) as api, connected(account_for_all(plane)) as operators:
            unharmed = Life(api, namespaces[0], CrashingCluster(operators, 0), f"no-{what}")
            await unharmed.live()
            writes = range(1, unharmed.disturbed.writes + 1, each)

            async def live_in(number: int) -> None:
                for write in writes[number::AT_ONCE]:
                    await Life(api, namespaces[number], disturbed(operators, write), f"{what}-{write}").live()

            await asyncio.gather(*map(live_in, range(AT_ONCE)))
            return len(writes)

    return asyncio.run(live())


def test_a_life_goes_on_whichever_write_the_operator_dies_after(control_plane: RealCluster) -> None:
    assert lives(control_plane, "death", CrashingCluster, each=1) > 25


def test_a_life_goes_on_when_the_operator_reads_old_answers_after_a_write(
    control_plane: RealCluster,
) -> None:
    used: list[StaleCluster] = []

    def stale(api: Any, write: int) -> StaleCluster:
        used.append(StaleCluster(api, write))
        return used[-1]

    assert lives(control_plane, "stale", stale, each=EACH_STALE) > 8
    assert sum(one.stale for one in used) > 5 * len(used)
