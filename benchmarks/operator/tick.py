"""What a metrics tick costs, by the number of applications, with a real Prometheus on the same machine.

    python -m benchmarks.operator.tick [--applications 1000,3000,10000] [--ticks 24]

Measured is what the poller does: fetch, compare, and say which applications are worth a turn. The turns
themselves are not in it. Printed as one JSON object a size; nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.local.statistics import median, percentile
from benchmarks.operator.tick_fleet import GROUP, QUERIES, SOURCES
from headgate.adapters.kubernetes.key import Key
from headgate.adapters.prometheus.options import PrometheusOptions
from headgate.adapters.prometheus.poller import PrometheusPoller
from headgate.api.application import SparkApplication
from headgate.api.validation import validate

PROMETHEUS = Path("build/tools/prometheus")
FLEET_PORT, PROMETHEUS_PORT = 29801, 29802
URL = f"http://127.0.0.1:{PROMETHEUS_PORT}"
TICK_SECONDS = 5.0
SCRAPE_SECONDS = 15
WARM_UP_TICKS = 8
"""Until the details of all drivers were fetched once, and all scrapes have happened."""
START_SECONDS = 180.0


def main() -> int:
    """Measure each size; returns the exit code."""
    options = arguments()
    if not PROMETHEUS.exists():
        print(f"{PROMETHEUS} is missing; build it with: make tools", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the fleet and Prometheus too
    for applications in options.applications:
        with (
            tempfile.TemporaryDirectory() as folder,
            fleet(applications),
            prometheus(applications, Path(folder)),
        ):
            print(json.dumps(measured(applications, options.ticks)), flush=True)
    return 0


def measured(applications: int, ticks: int) -> dict[str, Any]:
    """Return what `ticks` ticks cost once everything has been seen."""
    queries: list[tuple[float, str | None]] = []
    poller = PrometheusPoller(PrometheusOptions(url=URL), queried=lambda *told: queries.append(told))
    for number in range(applications):
        poller.watch(Key(f"team-{number % 20}", f"app-{number}"), application(number))
    paced(poller, WARM_UP_TICKS)
    queries.clear()
    process, began = psutil.Process(), time.monotonic()
    before = process.cpu_times()
    walls, due = paced(poller, ticks)
    after, seconds = process.cpu_times(), time.monotonic() - began
    poller.close()
    return {
        "applications": applications,
        "ticks": ticks,
        "poll_p99_seconds": round(percentile(walls, 99), 3),
        "poll_median_seconds": round(median(walls), 3),
        "cpu_cores": round((after.user + after.system - before.user - before.system) / seconds, 3),
        "rss_mib": round(process.memory_info().rss / 2**20),
        "promql_per_tick": round(len(queries) / ticks, 1),
        "failed_queries": sum(reason is not None for _, reason in queries),
        "due_per_tick": round(sum(due) / ticks, 1),
        "load_average": round(os.getloadavg()[0], 2),
    }


def paced(poller: PrometheusPoller, ticks: int) -> tuple[list[float], list[int]]:
    """Poll at the pace of an operator; returns how long each poll took and how many turns it gave."""
    walls, due, at = [], [], time.monotonic()
    for _ in range(ticks):
        time.sleep(max(0.0, at - time.monotonic()))
        at = max(at + TICK_SECONDS, time.monotonic())
        began = time.monotonic()
        due.append(len(poller.poll(time.time())))
        walls.append(time.monotonic() - began)
    return walls, due


def application(number: int) -> SparkApplication:
    """Return an application with thresholds on everything."""
    backlog = {"watermarkLag": "5m", "pendingRecords": 1_000_000}
    sources = [{"name": source, "backlog": backlog} for source in SOURCES]
    content = {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": f"app-{number}", "namespace": f"team-{number % 20}"},
        "spec": {
            "main": {"file": "job.py"},
            "queries": [{"name": query, "sources": sources} for query in QUERIES],
        },
    }
    accepted, findings = validate(content)
    if accepted is None:
        raise SystemExit(f"the application of the benchmark is refused: {findings}")
    return accepted


@contextmanager
def fleet(applications: int) -> Iterator[None]:
    """Run the drivers."""
    command = [sys.executable, "-m", "benchmarks.operator.tick_fleet"]
    with running([*command, "--applications", str(applications), "--port", str(FLEET_PORT)]):
        yield


@contextmanager
def prometheus(applications: int, folder: Path) -> Iterator[None]:
    """Run a Prometheus that has scraped every driver."""
    groups = range((applications + GROUP - 1) // GROUP)
    jobs = [
        {
            "job_name": f"group-{group}",
            "honor_labels": True,
            "metrics_path": f"/{group}",
            "static_configs": [
                {"targets": [f"127.0.0.1:{FLEET_PORT}"], "labels": {"job": "headgate/drivers"}}
            ],
        }
        for group in groups
    ]
    scrape = {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"}
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump({"global": scrape, "scrape_configs": jobs}), encoding="utf-8")
    flags = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    address = f"--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}"
    with running([str(PROMETHEUS), *flags, address, "--log.level=error"]):
        wait_for_scrapes(applications)
        yield


def wait_for_scrapes(applications: int) -> None:
    """Wait until every driver was scraped."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(
                f"{URL}/api/v1/query?query=count(headgate_driver_stopping)"
            ) as answer:
                result = json.load(answer)["data"]["result"]
            if result and int(result[0]["value"][1]) == applications:
                return
        except OSError:
            pass
        time.sleep(1.0)
    raise SystemExit(f"Prometheus has not scraped {applications} drivers within {START_SECONDS:g} s")


@contextmanager
def running(command: list[str]) -> Iterator[None]:
    """Run a program until the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operator.tick", description="Cost of a tick.")
    parser.add_argument("--applications", type=sizes, default=[1000, 3000, 10_000], metavar="N,…")
    parser.add_argument("--ticks", type=int, default=24, help="that are measured; default 24, two minutes")
    return parser.parse_args()


def sizes(text: str) -> list[int]:
    """Read numbers of applications."""
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
