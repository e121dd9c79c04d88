"""Our operator on real nodes, and a Prometheus that sees its drivers, as a person sets them up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.chart import CHART, NAMESPACE, RELEASE, helm
from support.guide import Guide
from support.node import NodeCluster


def helm_on(nodes: NodeCluster, *arguments: str | Path) -> str:
    """Run Helm on the release of ours."""
    with nodes.network():
        return helm(*arguments, "--namespace", NAMESPACE, "--kubeconfig", nodes.kubeconfig)


def install(nodes: NodeCluster, namespace: str, *values: str) -> None:
    """Install the operator for the drivers of a namespace, or put back what the chart has; wait until it runs."""
    ours = (
        *("--set", "image.repository=headgate.test/operator", "--set-string", "image.tag=1"),
        *("--set", f"drivers.namespaces={{{namespace}}}", "--set", "settings.tick=1s"),
    )
    helm_on(nodes, "upgrade", "--install", RELEASE, CHART, "--create-namespace", *ours, *values)
    nodes.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/headgate", "--timeout=240s")


def scraping_pods(guide: Guide, nodes: NodeCluster) -> dict[str, Any]:
    """The configuration that the guide gives for a Prometheus without its operator; this one runs outside of pods."""
    config = guide.configuration("Prometheus without its operator")
    (job,) = config["scrape_configs"]
    job["scrape_interval"] = "1s"
    job["kubernetes_sd_configs"][0]["kubeconfig_file"] = str(nodes.kubeconfig)
    return config
