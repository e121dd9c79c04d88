"""The operator of a cluster: started anew fifty times, and one process that outlives the API server fifty times.

API server, etcd and Prometheus are real; the kubelet is played, and what drivers measure. In each turn the driver of
one application ends and the verdict on four others changes, and in the midst of that the operator is killed or asked
to stop, by turns, or the API server is killed. Once everything has come to where it has to be it is counted what the
process holds, and what is outside of it: objects of the namespace and the fields in them, Events, temporary files.
All turns are alike: an Event that says what was never said before would be one more, for an hour.
"""

from __future__ import annotations

import base64
import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import psutil

from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.operator.site import wait_until
from benchmarks.soak.scenario import Bench, Look, Scenario, figures, slopes
from headgate_contract.metrics import CONTROL_GENERATION
from support.cluster import Cluster
from support.control_plane import control_plane_in
from support.driver_page import driver_page
from support.fleet import labelled_scraping
from support.operator_process import OperatorProcess, operator_process
from support.prometheus import Exposed, exposed, prometheus
from support.served import CONTROL, IMAGE, LEASE, Served

RESTARTS, LEFT_OUT = 50, 10
"""The first looks are left out: until then each kind of thing has happened to each application that it happens to."""
APPLICATIONS, FLIPPED, MORTAL = 20, 4, 5
"""All; of how many the verdict changes in a turn; how many there are whose drivers end."""
MOMENTS = (0.0, 0.2, 0.5, 1.0, 2.0)
"""So many seconds after what is to be acted on the blow falls, by turns."""
LONGEST_SECONDS, LOOK_SECONDS = 240.0, 0.25
BEHIND_SECONDS, LIVE_SECONDS = 900.0, 2.0
RESTART = {"backoff": "100ms", "maxBackoff": "100ms", "maxRetries": 1_000_000}
QUERY = {
    "name": "delays",
    "checkpoint": {"interval": "5s", "intervalDuringBacklog": "2m"},
    "backlog": {"reentry": {"dwell": "0s"}},
    "sources": [{"name": "flights", "backlog": {"watermarkLag": "5m"}}],
}
COUNTS = """
import gc, os, signal

def count(*_):
    gc.unfreeze()
    gc.collect()
    with open(os.environ["COUNTED"] + ".new", "w") as told:
        told.write(str(len(gc.get_objects())))
    os.replace(told.name, os.environ["COUNTED"])

signal.signal(signal.SIGUSR1, count)
"""
"""Loaded by Python before the operator: how many objects are on its heap nobody else can tell.

What it has set aside (`set_aside`) is looked at too, as it does itself once an hour. Each connection that was open
when that was done is garbage in there once it is closed: counted, it would be growth for an hour and then be gone.
"""
KINDS = {
    "threads": "threads",
    "descriptors": "descriptors",
    "sockets": "sockets",
    "series": "series",
    "heap_objects": "objects",
    "files": "files",
    "stored": "objects",
    "stored_fields": "fields",
    "events": "Events",
}
REPORTED = {"rss_bytes": "bytes"}
"""What memory a process has is not given back: it is told, and what must not grow is the number of its objects."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let all of them come."""
    count = bench.scaled(RESTARTS, 5)
    turns, left_out = list(range(1, count + 1)), LEFT_OUT * count // RESTARTS
    found: dict[str, Measured] = {}
    folder = bench.place("cluster").directory
    with (
        control_plane_in(folder / "control-plane") as cluster,
        world_in(cluster, folder, APPLICATIONS) as world,
    ):
        for prefix, looks in (
            ("soak_cluster_restarts", world.restarted(count)),
            ("soak_cluster_outages", world.outliving(count)),
        ):
            seen = []
            for look in looks:
                seen.append(look)
                bench.tell(f"{prefix} {len(seen)}: {look}")
            found |= slopes(prefix, [*KINDS, *REPORTED], turns[left_out:], seen[left_out:])
            found[prefix] = Measured([count])
        found["soak_cluster_verdicts"] = Measured([world.verdicts])
    bench.judges("cluster", KINDS, found)
    return found


@dataclass
class World:
    """A namespace of applications, and how each has to be."""

    served: Served
    kubeconfig: Path
    kinds: str
    """All that a namespace may hold, Events once, as kubectl is asked for them."""
    target: Exposed
    folder: Path
    environment: Mapping[str, str]
    """That of each operator."""
    attempts: dict[str, int]
    behind: dict[str, bool]
    verdicts: int = 0
    """Changes so far."""
    _turns: int = 0

    def restarted(self, times: int) -> Iterator[Look]:
        """Start so many operators, one after the other; yields what is so once each has done what there is to do."""
        for turn in range(times):
            with self.operator("--identity", "operator-0") as operator:
                self.settle()
                yield self.look(operator)
                self.turn()
                if turn % 2:
                    operator.kill()
                elif code := operator.stop():
                    raise RuntimeError(operator.explain(f"it was asked to stop, and its exit code is {code}"))

    def outliving(self, times: int) -> Iterator[Look]:
        """Have one operator outlive so many API servers; yields what is so once it has done what there is to do."""
        with self.operator("--no-leader-election") as operator:
            self.settle()
            for _ in range(times):
                self.turn()
                self.served.cluster.restart_api_server()
                self.settle()
                yield self.look(operator)

    def operator(self, *flags: str) -> AbstractContextManager[OperatorProcess]:
        """Run an operator, which may do what the chart lets it do."""
        place, log = self.served.namespace, self.folder / f"operator-{self._turns}.log"
        where = ("--namespaces", place, "--lease-namespace", place, "--lease-name", LEASE)
        more = ("--default-image", IMAGE, *flags)
        return operator_process(self.kubeconfig, log, *where, *more, environ=self.environment)

    def turn(self) -> None:
        """Have a driver end and verdicts change; returns a moment later."""
        names, turn = list(self.attempts), self._turns
        self._turns += 1
        for place in range(FLIPPED):
            self.behind[names[(FLIPPED * turn + place) % len(names)]] ^= True
        self.verdicts += FLIPPED
        self._wrong()
        mortal = names[turn % min(MORTAL, len(names))]
        self.served.ends(f"{mortal}-driver-{self.attempts[mortal]}", 1)
        self.attempts[mortal] += 1
        time.sleep(MOMENTS[turn % len(MOMENTS)])

    def settle(self) -> None:
        """Be kubelet and drivers until everything is as it has to be."""

        def is_settled() -> bool:
            try:
                return not self._wrong()
            except HTTPError:  # an API server that has just begun is asked too much: 429
                return False

        wait_until("each application to run as it has to", is_settled, LONGEST_SECONDS, LOOK_SECONDS)

    def look(self, operator: OperatorProcess) -> Look:
        """Return what an operator holds, and what is outside of it."""
        process = psutil.Process(operator.process.pid)
        stored, events = self._stored()
        return {
            "threads": process.num_threads(),
            "descriptors": process.num_fds(),
            "sockets": len(process.net_connections("inet")),
            "series": len(operator.series()),
            "heap_objects": self._heap_objects(process),
            "rss_bytes": process.memory_info().rss,
            "files": sum(1 for path in Path(self.environment["TMPDIR"]).rglob("*") if path.is_file()),
            "stored": len(stored),
            "stored_fields": sum(map(fields, stored)),
            "events": len(events),
        }

    def _wrong(self) -> list[str]:
        """Be kubelet and drivers once; returns the applications that are not as they have to be."""
        place = f"namespaces/{self.served.namespace}"
        pods = self._read(f"/api/v1/{place}/pods")
        applications = self._read(f"/apis/headgate.dev/v1alpha1/{place}/sparkapplications")
        pages, wrong = [], []
        for name, attempt in self.attempts.items():
            pod = pods.get(f"{name}-driver-{attempt}")
            if pod is None or pod["status"]["phase"] == "Pending":
                wrong.append(name)
                if pod is not None:
                    self.served.runs(pod["metadata"]["name"])
                continue
            document = json.loads(pod["metadata"]["annotations"][CONTROL])
            pages.append(self._page(name, document["generation"]))
            status = applications[name].get("status", {})
            told = (document["queries"]["delays"]["backlog"], status.get("state"), status.get("attempt"))
            if told != (self.behind[name], "Running", attempt):
                wrong.append(name)
        self.target.text = "".join(pages)
        return wrong

    def _page(self, name: str, generation: int) -> str:
        """Return what a driver says that has taken the document of this generation."""
        attempt = self.attempts[name]
        page = driver_page(name, attempt, self.served.namespace)
        page.query(started_at=float(attempt))
        page.source(lag=BEHIND_SECONDS if self.behind[name] else LIVE_SECONDS)
        page.set(CONTROL_GENERATION, generation)
        return page.text

    def _read(self, path: str) -> dict[str, dict[str, Any]]:
        """Return what is in a list, by name."""
        return {one["metadata"]["name"]: one for one in (self.served.cluster.read(path) or {})["items"]}

    def _stored(self) -> tuple[list[Any], list[Any]]:
        """Return all that the namespace holds, and its Events apart."""
        found = self.served.cluster.get(self.kinds, "-n", self.served.namespace)["items"]
        events = [one for one in found if one["kind"] == "Event"]
        return [one for one in found if one["kind"] != "Event"], events

    def _heap_objects(self, process: psutil.Process) -> int:
        counted = Path(self.environment["COUNTED"])
        counted.unlink(missing_ok=True)
        process.send_signal(signal.SIGUSR1)
        wait_until("a count of the heap", counted.exists, LONGEST_SECONDS, LOOK_SECONDS)
        return int(counted.read_text())


def fields(value: Any) -> int:
    """Return how many values there are in a value of JSON that hold no others."""
    if isinstance(value, dict):
        return sum(map(fields, value.values()))
    return sum(map(fields, value)) if isinstance(value, list) else 1


@contextmanager
def world_in(cluster: Cluster, folder: Path, applications: int) -> Iterator[World]:
    """Make so many applications in a namespace of their own, with a Prometheus; its files are in an empty folder."""
    served = Served(cluster, cluster.namespace())
    kubeconfig = with_file(served.account(), folder / "authority.pem")
    served.grant()
    listed = cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
    kinds = ",".join(kind for kind in listed if not kind.startswith("events."))
    names = [f"app-{number}" for number in range(applications)]
    for name in names:
        served.declare(name, queries=[QUERY], restart=RESTART)
    (modules := folder / "modules").mkdir()
    (modules / "sitecustomize.py").write_text(COUNTS)
    (temporary := folder / "tmp").mkdir()
    with (
        exposed() as target,
        prometheus(folder / "prometheus", config=labelled_scraping(drivers=[target.address])) as metrics,
    ):
        environment = {
            "HEADGATE_PROMETHEUS_URL": metrics.url,
            "PYTHONPATH": str(modules),
            "TMPDIR": str(temporary),
            "COUNTED": str(folder / "counted"),
        }
        behind = {name: number % 2 == 1 for number, name in enumerate(names)}
        yield World(served, kubeconfig, kinds, target, folder, environment, dict.fromkeys(names, 1), behind)


def with_file(kubeconfig: Path, authority: Path) -> Path:
    """Have a kubeconfig name a file of certificates, as a pod has one.

    Of certificates that it holds itself Python's client makes a file, which stays where a process is killed.
    """
    document = json.loads(kubeconfig.read_text())
    (cluster,) = (named["cluster"] for named in document["clusters"])
    authority.write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
    cluster["certificate-authority"] = str(authority)
    kubeconfig.write_text(json.dumps(document))
    return kubeconfig


SCENARIO = Scenario(
    "cluster",
    (
        Figure("soak_cluster_restarts", "restarts", Goal(">=", RESTARTS)),
        Figure("soak_cluster_outages", "restarts of the API server", Goal(">=", RESTARTS)),
        Figure("soak_cluster_verdicts", "changes", Goal(">=", 2 * RESTARTS * FLIPPED)),
        *figures("soak_cluster_restarts", KINDS),
        *figures("soak_cluster_outages", KINDS),
        *figures("soak_cluster_restarts", REPORTED, Report()),
        *figures("soak_cluster_outages", REPORTED, Report()),
    ),
    measure,
)
