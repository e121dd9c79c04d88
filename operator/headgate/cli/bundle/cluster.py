"""What is gathered of a cluster: applications, their drivers and executors with the ends of their logs, Events, and
the operator."""

from collections.abc import Sequence
from typing import Any, Final

from headgate.adapters.kubernetes.client import DEPLOYMENTS, PODS, Manifest
from headgate.api.labels import APPLICATION
from headgate.cli.bundle import MOST_BYTES, Bundle
from headgate.cli.checks.cluster import PART_OF
from headgate.cli.cluster.client import Cluster
from headgate.key import Key

MOST_LINES: Final = 2_000
"""The last of a log, for what happened last."""
MOST_PODS: Final = 20
"""Pods of one application or operator, the newest of them: executors come and go."""


def gather(cluster: Cluster, applications: Sequence[Manifest], bundle: Bundle) -> None:
    """Put what there is of the applications, and of the operator, into the bundle."""
    for application in applications:
        name, namespace = application["metadata"]["name"], application["metadata"]["namespace"]
        place = f"applications/{namespace}/{name}"
        bundle.documents[f"{place}/application.json"] = _slim(application)
        labels = f"{APPLICATION}={name}"

        def events(at: str = place, of: Manifest = application) -> None:
            bundle.documents[f"{at}/events.json"] = [_slim(event) for event in cluster.events(of)]

        bundle.read(f"events of {namespace}/{name}", events)
        _pods(cluster, bundle, place, namespace, labels)
    bundle.read("the operator", lambda: _operators(cluster, bundle))


def _operators(cluster: Cluster, bundle: Bundle) -> None:
    for deployment in cluster.ask(lambda api: api.list(DEPLOYMENTS, labels=PART_OF)):
        metadata = deployment["metadata"]
        namespace, place = metadata["namespace"], f"operator/{metadata['namespace']}/{metadata['name']}"
        bundle.documents[f"{place}/deployment.json"] = _slim(deployment)
        selected = deployment["spec"]["selector"].get("matchLabels") or {}
        labels = ",".join(f"{name}={value}" for name, value in selected.items())
        _pods(cluster, bundle, place, namespace, labels)


def _pods(cluster: Cluster, bundle: Bundle, place: str, namespace: str, labels: str) -> None:
    def look() -> None:
        found = cluster.ask(lambda api: api.list(PODS, namespace, labels=labels))
        found.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), reverse=True)
        if len(found) > MOST_PODS:
            bundle.unread.append(f"pods of {place}: {len(found) - MOST_PODS} older ones are left out")
        for pod in found[:MOST_PODS]:
            name = pod["metadata"]["name"]
            bundle.documents[f"{place}/pods/{name}.json"] = _slim(pod)
            for container in pod["spec"].get("containers", ()):
                file = f"{place}/pods/{name}.{container['name']}.log"
                _log(cluster, bundle, file, Key(namespace, name), container["name"])

    bundle.read(f"pods of {place}", look)


def _log(cluster: Cluster, bundle: Bundle, file: str, pod: Key, container: str) -> None:
    def look() -> None:
        query = {"container": container, "tailLines": str(MOST_LINES), "limitBytes": str(MOST_BYTES)}
        bundle.texts[file] = cluster.ask(lambda api: api.text(PODS, pod, "log", **query))[:MOST_BYTES]

    bundle.read(file, look)


def _slim(manifest: Manifest) -> dict[str, Any]:
    """Return an object without who wrote which field of it, which is most of its size."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    return {**manifest, "metadata": metadata}
