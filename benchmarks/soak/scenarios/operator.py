"""`headgate local`, whose driver dies fifty times: what the loop holds after each, and what is in its state folder.

The driver is a stand-in, so that what is measured is the loop and not a JVM. The loop's resident memory is told and
has no goal: until 128 drivers have had an address of their own it grows by some kilobytes with each, since Python
remembers how it has split so many addresses (the cache of `urllib.parse.urlsplit`); the number of its objects stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.soak.scenario import Bench, Look, Scenario, figures, slopes
from support.local_runs import FAKE_DRIVER, LocalRun, local_run

RESTARTS, LEFT_OUT = 50, 10
"""The first looks are left out: modules are imported and caches fill."""
APPLICATION = "flights"
RESOURCE = f"""
apiVersion: headgate.dev/v1alpha1
kind: SparkApplication
metadata: {{name: {APPLICATION}}}
spec:
  main: {{file: job.json}}
  restart: {{backoff: 100ms, maxBackoff: 100ms, maxRetries: 1000000}}
  queries:
    - name: delays
      checkpoint: {{interval: 5s, intervalDuringBacklog: 2m}}
      sources:
        - name: flights
          backlog: {{watermarkLag: 5m}}
"""
DIES = {"runsSeconds": 0, "runsScrapes": 2, "stopCode": 1, "sources": {"flights": {"pending_records": 10}}}
KINDS = {"threads": "threads", "descriptors": "descriptors", "sockets": "sockets", "files": "files"}
REPORTED = {"rss_bytes": "bytes"}


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Have the driver die so often."""
    count = bench.scaled(RESTARTS, 5)
    looks = list(held(bench.place("operator").directory, count))
    bench.tell(f"{count} restarts of a driver: {looks[-1]}")
    left_out = LEFT_OUT * count // RESTARTS
    restarts = list(range(1, count + 1))
    grown = slopes("soak_operator", [*KINDS, *REPORTED], restarts[left_out:], looks[left_out:])
    bench.judges("operator", KINDS, grown)
    return {"soak_operator_restarts": Measured([count])} | grown


def held(folder: Path, restarts: int) -> Iterator[Look]:
    """Yield what the loop holds once each next attempt runs."""
    (folder / "app.yaml").write_text(RESOURCE)
    (folder / "job.json").write_text(json.dumps(DIES))
    with local_run(folder, APPLICATION, "--tick", "0.05", "--launcher", FAKE_DRIVER) as run:
        loop = psutil.Process(run.process.pid)
        for attempt in range(2, restarts + 2):
            run.wait_for_sample(lambda line: line["attempt"] >= attempt, f"attempt {attempt}")  # noqa: B023 -- asked at once
            yield look(run, loop)


def look(run: LocalRun, loop: psutil.Process) -> Look:
    """Return what the loop holds now."""
    return {
        "threads": loop.num_threads(),
        "descriptors": loop.num_fds(),
        "sockets": len(loop.net_connections("inet")),
        "files": sum(1 for path in run.state_dir.rglob("*") if path.is_file()),
        "rss_bytes": loop.memory_info().rss,
    }


SCENARIO = Scenario(
    "operator",
    (
        Figure("soak_operator_restarts", "restarts", Goal(">=", RESTARTS)),
        *figures("soak_operator", KINDS),
        *figures("soak_operator", REPORTED, Report()),
    ),
    measure,
)
