"""All that a run has under its hands: nodes, two replicas of the operator, Prometheus, an application."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.chaos.blows import awaited
from support.chart import NAMESPACE
from support.cluster import KubectlError
from support.copies import MOUNTED, NAME, Volume, image, manifest
from support.guide import Guide
from support.installed import install, scraping_pods
from support.node import NodeCluster, nodes_in
from support.node_config import ADDRESS
from support.node_images import our_images
from support.person import Person
from support.prometheus import Prometheus, prometheus

ROWS = 6_000_000
"""A thousand arrive each second: more than an hour's."""
RECORDS_PER_CHECKPOINT = 60_000
PENDING, RATE, INTERVAL = 20_000, 15_000, "1s"
FASTEST, BURST_SECONDS = 20_000, 5
"""The highest rate that anybody asks for, in rows a second, and what may be saved up of it."""
IN_BACKLOG = "5s"
"""The interval in backlog, of `support.copies`."""
EVENTS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": (MOUNTED / "events").as_uri(),
}
"""What each driver has run, and when, in Spark's own words."""
DEADLINE_SECONDS = 240.0
"""For whatever has to come about by itself: a driver on a busy machine takes a minute until it commits."""
LOOK_SECONDS = 0.5
LONG_SECONDS = 30.0
"""So long a status may be untrue without a word of it."""


@dataclass
class World:
    """One run. Whoever asks the API server while it is down is answered later."""

    nodes: NodeCluster
    metrics: Prometheus
    volume: Volume
    namespace: str
    started: float
    """When the first row beyond those that wait arrives, in Unix seconds."""
    tell: Callable[[str], None]
    wanted: dict[str, Any] = field(
        default_factory=lambda: {"interval": INTERVAL, "pending": PENDING, "rate": RATE, "instances": 1}
    )
    """What the resource says now, as far as faults change it."""

    @property
    def person(self) -> Person:
        """Who looks after the application."""
        return Person(self.nodes, self.namespace, NAME)

    # What is said ----------------------------------------------------------------------------------

    @property
    def resource(self) -> dict[str, Any]:
        """The resource, as it is wanted now."""
        limit = {"recordsPerCheckpoint": RECORDS_PER_CHECKPOINT, "recordsPerSecond": self.wanted["rate"]}
        limit |= {"duringBacklog": dict(limit), "maxBurst": f"{BURST_SECONDS}s"}
        source = {"backlog": {"pendingRecords": self.wanted["pending"]}, "rateLimit": limit}
        said = manifest(self.started, source=source)
        said["spec"]["sparkConf"] |= EVENTS
        said["spec"]["queries"][0]["checkpoint"]["interval"] = self.wanted["interval"]
        said["spec"]["executor"]["instances"] = self.wanted["instances"]
        return said

    def apply(self, **change: Any) -> None:
        """Say something else from now on, and nothing but that."""
        self.wanted |= change
        self.person.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(self.resource)
        )

    def installs(self) -> None:
        """Install the operator, or put back what the chart has in the namespace."""
        metrics = f"settings.prometheusUrl={self.metrics.url}"
        install(self.nodes, self.namespace, "--set", "replicas=2", "--set", metrics)

    # Who acts --------------------------------------------------------------------------------------

    def leader(self) -> dict[str, Any]:
        """Return the pod of the operator that holds the Lease."""

        def found() -> dict[str, Any] | None:
            holder = self.lease_holder()
            pods = self.nodes.get("pods", "-n", NAMESPACE)["items"]
            running = (pod for pod in pods if pod["status"]["phase"] == "Running")
            return next((pod for pod in running if pod["metadata"]["name"] == holder), None)

        return self.wait_for(found, "an operator that leads")

    def lease_holder(self) -> str:
        """Return who holds the Lease: the name of a pod, which may be gone."""
        (lease,) = self.nodes.get("leases", "-n", NAMESPACE)["items"]
        holder: str = lease["spec"].get("holderIdentity", "")
        return holder

    def driver(self) -> dict[str, Any]:
        """Return the driver's pod that runs, once there is one, and no other."""

        def found() -> dict[str, Any] | None:
            pods = self.person.pods("driver")
            return pods[0] if len(pods) == 1 and is_running(pods[0]) else None

        return self.wait_for(found, "one driver that runs")

    def executors(self) -> list[dict[str, Any]]:
        """Return the pods of executors that run."""
        return [pod for pod in self.person.pods("executor") if is_running(pod)]

    @property
    def events(self) -> list[Path]:
        """The event log of each driver that there was."""
        return sorted((self.volume.folder / "events").glob("eventlog_*"))

    # How far it is ---------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """How many rows there are."""
        return f"{self.committed:,} rows"

    @property
    def committed(self) -> int:
        """How many rows are in batches that were committed."""
        return self.volume.committed

    @property
    def is_in_mid_batch(self) -> bool:
        """Whether a batch is planned and not committed."""
        return not self.volume.is_between_batches

    def goes_on(self) -> None:
        """Wait until rows arrive as they should, and the status tells what is so; raises BrokenError."""
        before = self.committed
        self.wait_for(lambda: self.committed > before, "a commit")
        began, untrue = time.monotonic(), list[str]()

        def is_so() -> bool:
            last, untrue[:] = list(untrue), self._untrue()
            if untrue and untrue != last and time.monotonic() - began > LONG_SECONDS:
                self.tell(f"     still: {', '.join(untrue)}")
            return not untrue

        self.wait_for(is_so, "a status that tells what is so", seen=lambda: str(untrue))

    def _untrue(self) -> list[str]:
        """Return what the status says otherwise than it is; also what is not yet as it was wanted."""
        application, pods = self.person.application(), self.person.pods("driver")
        status = application.get("status", {})
        conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
        running = [pod for pod in pods if is_running(pod)]
        attempts = [pod["metadata"]["labels"].get("headgate.dev/attempt") for pod in running]
        executors = len(self.executors())
        expected = {
            "state": (status.get("state"), {"Running"}),
            "Ready": (conditions.get("Ready"), {"True"}),
            "generation": (status.get("observedGeneration"), {application["metadata"]["generation"]}),
            "drivers": (len(pods), {1}),
            "attempt": (str(status.get("attempt")), set(attempts)),
            "interval": (status.get("summary", {}).get("interval"), {self.wanted["interval"], IN_BACKLOG}),
            "executors": (status.get("executorsRunning"), {executors} & {self.wanted["instances"]}),
        }
        return [
            f"{name} is {told}, not {right}" for name, (told, right) in expected.items() if told not in right
        ]

    def wait_for(self, look: Callable[[], Any], what: str, seen: Callable[[], str] = lambda: "") -> Any:
        """Return the first answer of `look` that is true; raises BrokenError where there is none in time."""
        refused = ""

        def asked() -> Any:
            nonlocal refused
            try:
                return look()
            except KubectlError as error:
                refused = str(error)
                return None

        def known() -> str:
            return f"{seen()} {refused}\n{self.everything()}"

        return awaited(asked, what, known, seconds=DEADLINE_SECONDS, pause=LOOK_SECONDS)

    def everything(self) -> str:
        """Return all that could tell why something does not come about."""
        texts = []
        for asked in (
            ("get", "pods", "-A", "-o", "wide"),
            ("get", "hgapp", "-n", self.namespace, "-o", "yaml"),
            ("get", "events", "-n", self.namespace, "--sort-by=.lastTimestamp"),
            ("logs", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=headgate", "--tail=20", "--prefix"),
            ("logs", "-n", self.namespace, "-l", "headgate.dev/role=driver", "--tail=40", "--prefix"),
        ):
            try:
                texts.append(self.nodes.kubectl(*asked)[-5000:])
            except KubectlError as error:
                texts.append(str(error))
        return "\n".join(texts)


def is_running(pod: dict[str, Any]) -> bool:
    """Tell whether a pod runs and nobody has asked it to end."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


@contextmanager
def world_in(root: Path, tell: Callable[[str], None]) -> Iterator[World]:
    """Make a world in a folder that is empty or not there, with an application that has committed rows."""
    root.mkdir(parents=True)
    operator, spark = our_images()
    with ExitStack() as running:
        images = [operator, spark, image(spark, root, ROWS)]
        nodes = running.enter_context(nodes_in(root / "nodes", images=images, count=2, crds=False))
        namespace = nodes.namespace()
        with nodes.network():
            config = scraping_pods(Guide.read(), nodes)
            metrics = running.enter_context(prometheus(root / "prometheus", config=config, address=ADDRESS))
        volume = Volume(root / "volume")
        volume.claim(nodes, namespace)
        (events := volume.folder / "events").mkdir()
        events.chmod(0o777)
        world = World(nodes, metrics, volume, namespace, time.time(), tell)
        running.callback(partial(tell, "the cluster ends"))
        world.installs()
        world.apply()
        world.goes_on()
        yield world
