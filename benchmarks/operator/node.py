"""What a decision takes on its way to a driver in a pod: on a real node, with everything on the same two cores.

Two figures of one run, of a driver and an executor that copy a thousand rows a second:

- *reaction*: from the first sample in Prometheus that crosses a threshold (`backlog.query`) to the driver saying that
  the verdict is in force; the operator is in a pod as the chart makes it, with a tick of 5 s;
- *delivery*: from the writing of the annotation to the driver saying that it has that document; without the operator,
  which would write its own document again. Documents come at least a second apart, as those of verdicts do, of which
  a tick makes one at most (an edit of the resource is published at once): a pod that the kubelet has just looked at
  waits until it has listed the containers of its node anew, which it does each second. What two documents within a
  second take is told beside the figure.

Both look at the driver's own metrics, many times a second.
"""

import random
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from kubernetes.client import CoreV1Api
from kubernetes.config import new_client_from_config

from benchmarks.local.results import DRIVER, OPERATOR, Figure, Goal, Measured
from benchmarks.local.statistics import median, percentile
from benchmarks.operator.scenario import Bench, Scenario
from headgate.adapters.kubernetes.names import CONTROL
from headgate_contract import Refusal
from headgate_contract import metrics as names
from headgate_contract.receiving import read, write
from support import copies
from support.chart import CHART, NAMESPACE, RELEASE, helm
from support.guide import Guide
from support.node import NodeCluster, nodes_in
from support.node_config import ADDRESS
from support.node_images import our_images
from support.person import Person
from support.prometheus import Exposed, Prometheus, exposed, prometheus

VERDICTS = 20
"""Half of them that a backlog has begun, half of them that it is over."""
DOCUMENTS = 60
BETWEEN_DOCUMENTS = (1.2, 2.2)
"""Seconds from one that was delivered to the next, at least and at most."""
IN_QUICK_SUCCESSION = (0.2, 0.7)
"""The same, of documents that follow one another as the operator's never do."""
SIGNAL = "pressure"
SCRAPE = "1s"
TICK = 5.0
EVERY_SECONDS = 0.05
"""Time between two looks at the driver: each of them is work for the cores that the driver and the node share."""
DEADLINE = 30.0
SEED = 4


@dataclass(frozen=True)
class Stage:
    """What is measured on."""

    nodes: NodeCluster
    driver: Mapping[str, str]
    """Namespace, name and address of the driver's pod."""
    metrics: Prometheus
    signal: Exposed

    def says(self, metric: names.Metric) -> float | None:
        """Return the only value of a metric that the driver reports just now."""
        url = f"http://{self.driver['address']}:8090/metrics"
        with urllib.request.urlopen(url, timeout=DEADLINE) as page:
            found = re.search(rf"^{metric.name}{{.*}} (\S+)$", page.read().decode(), re.MULTILINE)
        return None if found is None else float(found[1])

    def reported(self, metric: names.Metric, value: float) -> float:
        """Wait until the driver reports a value; returns when it was seen to, in seconds since 1970."""
        deadline = time.time() + DEADLINE
        while self.says(metric) != value:
            if time.time() > deadline:
                raise TimeoutError(f"not within {DEADLINE:g} s: {metric.name} {value:g}")
            time.sleep(EVERY_SECONDS)
        return time.time()


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Measure both on one cluster."""
    with stage(bench.folder("node").resolve()) as stage_:
        bench.ready("node")
        reactions = verdicts(stage_, bench.count(VERDICTS))
        stage_.nodes.kubectl("-n", NAMESPACE, "scale", "deployment/headgate", "--replicas=0")
        stage_.nodes.kubectl("-n", NAMESPACE, "wait", "--for=delete", "pod", "--all", "--timeout=60s")
        deliveries = documents(stage_, bench.count(DOCUMENTS), BETWEEN_DOCUMENTS)
        hasty = documents(stage_, bench.count(DOCUMENTS // 3), IN_QUICK_SUCCESSION)
    bench.tell(
        f"reaction p95 {percentile(reactions, 95):.2f} s, delivery p95 {percentile(deliveries, 95):.3f} s"
    )
    return {
        "reaction_p95_seconds": measured(reactions, tick_seconds=TICK),
        "control_delivery_p95_seconds": measured(
            deliveries, p95_seconds_in_quick_succession=percentile(hasty, 95)
        ),
    }


def measured(seconds: list[float], **details: float) -> Measured:
    """Return the 95th percentile, and what stands behind it."""
    spread = {"median_seconds": median(seconds), "largest_seconds": max(seconds)}
    return Measured([percentile(seconds, 95)], {"samples": len(seconds), **spread, **details})


def verdicts(stage: Stage, count: int) -> list[float]:
    """Return the seconds from a crossing in Prometheus to the verdict's being in force, again and again."""
    pause = random.Random(SEED)
    seconds: list[float] = []
    stage.reported(names.QUERY_BACKLOG, 0.0)  # what it began with is another verdict than that on the signal
    for number in range(count):
        time.sleep(pause.uniform(0, TICK))  # so that crossings meet the tick at any phase
        wanted, since = float(number % 2 == 0), time.time()
        stage.signal.text = f"{SIGNAL} {wanted}\n"
        in_force = stage.reported(names.QUERY_BACKLOG, wanted)
        seconds.append(in_force - crossing(stage.metrics, wanted, since))
    return seconds


def crossing(metrics: Prometheus, value: float, since: float) -> float:
    """Return the time of the first sample since then that has the value.

    It is looked for in small steps: a verdict may be in force a moment after it.
    """
    later = f"timestamp({SIGNAL}) >= {since} and {SIGNAL} == {value}"
    (first,) = metrics.query(f"min_over_time(({later})[{DEADLINE:g}s:50ms])")
    return first.value


def documents(stage: Stage, count: int, between: tuple[float, float]) -> list[float]:
    """Return the seconds from the writing of a document to the driver's having it, again and again.

    `between` are the seconds, at least and at most, from one that was delivered to the next.
    """
    api = CoreV1Api(new_client_from_config(str(stage.nodes.kubeconfig)))  # type: ignore[no-untyped-call]
    name, namespace = stage.driver["name"], stage.driver["namespace"]
    annotations = stage.nodes.get("pod", name, "-n", namespace)["metadata"]["annotations"]
    document = read(annotations[CONTROL])
    assert not isinstance(document, Refusal), document.message
    pause = random.Random(SEED)
    seconds: list[float] = []
    for _ in range(count):
        time.sleep(pause.uniform(*between))
        document = replace(document, generation=document.generation + 1)
        began = time.time()
        patch = {"metadata": {"annotations": {CONTROL: write(document)}}}
        api.patch_namespaced_pod(name, namespace, patch)
        seconds.append(stage.reported(names.CONTROL_GENERATION, document.generation) - began)
    return seconds


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Run a node, Prometheus, the operator and one application."""
    operator, spark = our_images()
    images = [operator, spark, copies.image(spark, folder)]
    with nodes_in(folder / "nodes", images=images, crds=False) as nodes, nodes.network(), exposed() as signal:
        signal.text = f"{SIGNAL} 0\n"
        with prometheus(folder / "prometheus", config=scraping(nodes, signal), address=ADDRESS) as metrics:
            yield Stage(nodes, running_driver(nodes, metrics, folder), metrics, signal)


def scraping(nodes: NodeCluster, signal: Exposed) -> dict[str, object]:
    """Return the configuration that docs/install.md gives, with the signal beside it."""
    (drivers,) = Guide.read().configuration("Prometheus without its operator")["scrape_configs"]
    drivers["kubernetes_sd_configs"][0]["kubeconfig_file"] = str(nodes.kubeconfig)
    drivers["scrape_interval"] = SCRAPE
    of_signal = {
        "job_name": SIGNAL,
        "scrape_interval": SCRAPE,
        "static_configs": [{"targets": [signal.address]}],
    }
    return {"scrape_configs": [drivers, of_signal]}


def running_driver(nodes: NodeCluster, metrics: Prometheus, folder: Path) -> Mapping[str, str]:
    """Install the operator, apply the application, and wait until its driver has caught up."""
    namespace = nodes.namespace()
    volume = copies.Volume(folder / "volume")
    volume.claim(nodes, namespace)
    values = {
        "image": {"repository": "headgate.test/operator", "tag": "1"},
        "drivers": {"namespaces": [namespace]},
        "settings": {"prometheusUrl": metrics.url, "tick": f"{TICK:g}s"},
    }
    options = (
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--kubeconfig",
        nodes.kubeconfig,
        "--values",
        "-",
    )
    helm("install", RELEASE, CHART, *options, input=yaml.safe_dump(values))
    backlog = {"backlog": {"query": f"{SIGNAL} == 1"}}
    person = Person(nodes, namespace, copies.NAME)
    person.kubectl("apply", "-f", "-", input=yaml.safe_dump(copies.manifest(time.time(), source=backlog)))
    pod = person.driver(1)
    person.waits_for(
        lambda: volume.committed > copies.WAITING, "a driver that has nothing left but what arrives"
    )
    return {"namespace": namespace, "name": pod["metadata"]["name"], "address": pod["status"]["podIP"]}


SCENARIO = Scenario(
    "node",
    (
        Figure("reaction_p95_seconds", "s", Goal("<=", 6)),
        Figure("control_delivery_p95_seconds", "s", Goal("<=", 0.5)),
    ),
    measure,
    (*OPERATOR, *DRIVER, "charts/headgate", "crds"),
)
