"""Prometheus and the drivers that it scrapes, around a cluster to measure on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benchmarks.operator.fleet import GROUP
from benchmarks.operator.scenario import Bench
from benchmarks.operator.site import Site
from support.prometheus import Prometheus, prometheus
from support.servers import free_port

SCRAPE_SECONDS = 15


@contextmanager
def drivers(place: Site, bench: Bench, most: int) -> Iterator[Prometheus]:
    """Run every driver pod of the cluster, and a Prometheus that scrapes them; at most so many."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.operator.fleet", "--port", str(port)]
    fleet = subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(place.kubeconfig)})
    try:
        with prometheus(bench.folder("prometheus"), config=_scraping(port, most)) as server:
            yield server
    finally:
        fleet.terminate()
        fleet.wait(timeout=30)


def _scraping(port: int, most: int) -> Mapping[str, Any]:
    """Return a configuration as the chart's PodMonitor makes one, but for drivers that share targets."""
    targets = {"targets": [f"127.0.0.1:{port}"], "labels": {"job": "headgate/drivers"}}
    jobs = [
        {
            "job_name": f"group-{group}",
            "honor_labels": True,
            "metrics_path": f"/{group}",
            "static_configs": [targets],
        }
        for group in range((most + GROUP - 1) // GROUP)
    ]
    scrape = {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"}
    return {"global": scrape, "scrape_configs": jobs}
