"""All the drivers of a cluster, played by one process: a kubelet that has them running, and what they measure.

Every driver pod that appears is reported as running and ready. From then on its metrics are served, with two queries
of two sources each: lags go on, records arrive, and now and then a query falls behind or catches up. The control
document on the pod is acknowledged by the next scrape. Drivers are served in groups, one target a group, since one
machine cannot run ten thousand web servers; a scrape of a real driver brings the same series, where it asks as the
chart's PodMonitor does for flags that are set. The groups are small:
Prometheus spreads its scrapes by target, and few large ones would come in bursts that no cluster of drivers has.

    python -m benchmarks.operator.fleet --port 9801     KUBECONFIG leads to the cluster
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp
from kubernetes.aio import config

from benchmarks.operator.site import QUERIES, SOURCES
from headgate.adapters.kubernetes.client import PODS, ApiServer, Call, Manifest, session_of
from headgate.adapters.kubernetes.names import CONTROL, DRIVER_SELECTOR
from headgate.adapters.kubernetes.times import rfc3339
from headgate.api.labels import APPLICATION
from headgate.key import key_of
from support.http_server import LOOPBACK, Handler, HttpServer
from support.prometheus import PAGE

GROUP = 25
"""Drivers behind one target."""
BEHIND_SECONDS, LIVE_SECONDS = 900.0, 5.0
REASONS = {"Interval": 0.7, "NothingPending": 0.2, "FirstLook": 0.0, "RateLimit": 0.0}
"""Share of the time for which a source is held by each."""
AT_ONCE = 8
"""Reports of the kubelet in flight."""


@dataclass
class Driver:
    """One driver, and the labels that all its series have."""

    host: str
    labels: str
    generation: int
    began: float
    behind: set[str] = field(default_factory=set)
    """Its queries that are in backlog."""


class Fleet:
    """What the drivers say."""

    def __init__(self, changes_per_minute: float) -> None:
        self._changes_per_minute = changes_per_minute
        self._random = random.Random(7)
        self._by_uid: dict[str, Driver] = {}
        self._drivers: list[Driver] = []
        self._changed_at = time.time()

    def seen(self, pod: Manifest) -> bool:
        """Take in a pod; returns whether it is new. One that another fleet has played goes on as it was."""
        metadata = pod["metadata"]
        document = json.loads(metadata["annotations"][CONTROL])
        if (known := self._by_uid.get(metadata["uid"])) is not None:
            known.generation = document["generation"]
            return False
        host = address(len(self._drivers))
        began = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
        behind = {name for name, query in document["queries"].items() if query.get("backlog")}
        driver = Driver(host, _labels(metadata, host), document["generation"], began, behind)
        self._by_uid[metadata["uid"]] = driver
        self._drivers.append(driver)
        return True

    def address(self, pod: Manifest) -> str:
        """Return where a driver is."""
        return self._by_uid[pod["metadata"]["uid"]].host

    def page(self, group: int) -> bytes:
        """Return what the drivers of one group say now."""
        self._change()
        drivers = self._drivers[group * GROUP : (group + 1) * GROUP]
        return "".join(line for driver in drivers for line in self._said(driver)).encode()

    def _change(self) -> None:
        now = time.time()
        share = self._changes_per_minute * (now - self._changed_at) / 60
        changes = int(share * len(self._drivers) * len(QUERIES))
        if not changes:
            return
        self._changed_at = now
        for _ in range(changes):
            self._random.choice(self._drivers).behind ^= {self._random.choice(QUERIES)}

    def _said(self, driver: Driver) -> Iterator[str]:
        labels = driver.labels
        yield f"headgate_driver_stopping{{{labels}}} 0\n"
        yield f"headgate_control_generation{{{labels}}} {driver.generation}\n"
        for query in QUERIES:
            yield from self._query(f'{labels},query="{query}"', driver.began, query in driver.behind)

    def _query(self, labels: str, began: float, behind: bool) -> Iterator[str]:
        now = time.time()
        yield (
            f"headgate_query_active{{{labels}}} 1\n"
            f"headgate_query_started_timestamp_seconds{{{labels}}} {began}\n"
            f"headgate_query_backlog{{{labels}}} {int(behind)}\n"
            f"headgate_query_interval_seconds{{{labels}}} {120 if behind else 5}\n"
            f"headgate_query_grant_records{{{labels}}} 100000\n"
            f"headgate_query_throughput_records_per_second{{{labels}}} 50000\n"
            f"headgate_query_state_rows{{{labels}}} 1000\n"
            f"headgate_query_last_progress_timestamp_seconds{{{labels}}} {now}\n"
        )
        lag = (BEHIND_SECONDS if behind else LIVE_SECONDS) + self._random.random() * 5
        for source in SOURCES:
            yield _source(f'{labels},source="{source}"', lag, now, now - began)


def _source(labels: str, lag: float, now: float, seconds: float) -> str:
    held = "".join(
        f'headgate_source_held_seconds_total{{{labels},reason="{reason}"}} {seconds * share}\n'
        for reason, share in REASONS.items()
    )
    return held + (
        f'headgate_source_info{{{labels},read_limit="offsets"}} 1\n'
        f"headgate_source_watermark_lag_seconds{{{labels}}} {lag}\n"
        f"headgate_source_watermark_timestamp_seconds{{{labels}}} {now - lag}\n"
        f"headgate_source_pending_records{{{labels}}} {int(lag * 1000)}\n"
        f"headgate_source_planned_records_total{{{labels}}} {int(seconds * 1000)}\n"
        f"headgate_source_processed_records_total{{{labels}}} {int(seconds * 1000)}\n"
        f"headgate_source_idle_seconds{{{labels}}} 0\n"
        f"headgate_source_rate_limit_records_per_second{{{labels}}} 100000\n"
    )


def _labels(metadata: Manifest, host: str) -> str:
    named = {
        "application": metadata["labels"][APPLICATION],
        "container": "driver",
        "endpoint": "metrics",
        "instance": f"{host}:8090",
        "namespace": metadata["namespace"],
        "pod": metadata["name"],
    }
    return ",".join(f'{name}="{value}"' for name, value in named.items())


def address(number: int) -> str:
    """Return the address of a driver's pod."""
    return f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"


class Kubelet:
    """Has every driver pod running."""

    def __init__(self, cluster: ApiServer, fleet: Fleet) -> None:
        self._cluster = cluster
        self._fleet = fleet
        self._new: asyncio.Queue[Manifest] = asyncio.Queue()

    async def run(self) -> None:
        """Work until it is ended."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            for _ in range(AT_ONCE):
                group.create_task(self._report())

    async def _watch(self) -> None:
        while True:
            try:
                async for pod in _pods(self._cluster):
                    if self._fleet.seen(pod):
                        self._new.put_nowait(pod)
            except aiohttp.ClientError:
                await asyncio.sleep(1)

    async def _report(self) -> None:
        while True:
            pod = await self._new.get()
            if pod["status"].get("phase") != "Running":
                path = PODS.path(*key_of(pod), "status")
                body = {"status": running(self._fleet.address(pod))}
                patch = "application/merge-patch+json"
                await self._cluster._call(Call("PATCH", PODS, path, body=body, content_type=patch))


def running(host: str) -> dict[str, Any]:
    """Return the status of a driver pod that runs."""
    container = {
        "name": "driver",
        "image": "x",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": rfc3339(time.time())}},
    }
    return {
        "phase": "Running",
        "podIP": host,
        "podIPs": [{"ip": host}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [container],
    }


async def _pods(cluster: ApiServer) -> AsyncIterator[Manifest]:
    """Yield the driver pods that there are, and then those that come or change, until the server ends it."""
    api = cluster._api
    for pod in await cluster.list(PODS, labels=DRIVER_SELECTOR):
        yield pod
    target = f"{api.configuration.host}{PODS.path(None)}?watch=1&labelSelector={DRIVER_SELECTOR}"
    forever = aiohttp.ClientTimeout(total=None)
    async with session_of(api) as session, session.get(target, timeout=forever) as answer:
        async for line in answer.content:
            event = json.loads(line)
            if event["type"] in {"ADDED", "MODIFIED"}:
                yield event["object"]


def serve(fleet: Fleet, port: int) -> None:
    """Serve group N at `/N`, in a thread."""

    class Scraped(Handler):
        def do_GET(self) -> None:
            self.say(fleet.page(int(self.path.strip("/"))), headers=PAGE)

    HttpServer((LOOPBACK, port), Scraped).start()


async def play(fleet: Fleet) -> None:
    """Be the kubelet of the cluster that KUBECONFIG leads to."""
    api = await config.new_client_from_config(os.environ["KUBECONFIG"])  # type: ignore[no-untyped-call]
    await Kubelet(ApiServer(api, timeout_seconds=60), fleet).run()


def main() -> None:
    """Play until it is ended."""
    parser = argparse.ArgumentParser(description="The drivers of a cluster.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--changes", type=float, default=0.01, help="share of verdicts that change in a minute"
    )
    options = parser.parse_args()
    fleet = Fleet(options.changes)
    serve(fleet, options.port)
    asyncio.run(play(fleet))


if __name__ == "__main__":
    main()
