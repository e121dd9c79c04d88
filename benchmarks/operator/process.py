"""The operator as a process of its own, seen from outside: its metrics and what the system says of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from support.operator_process import LOOPBACK, OperatorProcess

PREFIX = "headgate_operator_"
WRITES = ("POST", "PATCH", "DELETE")


@dataclass(frozen=True)
class Scrape:
    """One look at the operator's own metrics."""

    at: float
    """On the monotonic clock."""
    samples: Mapping[str, float]

    def sum(self, name: str, **labels: str) -> float:
        """Return the sum over the series of a metric that bear the labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            value
            for series, value in self.samples.items()
            if series.partition("{")[0] == PREFIX + name and all(one in series for one in wanted)
        )

    def calls(self, verb: str, resource: str) -> int:
        """Return how many calls to the API server there were."""
        return round(self.sum("api_request_duration_seconds_count", verb=verb, resource=resource))


@dataclass
class Operator:
    """One process that runs."""

    running: OperatorProcess
    started_at: float
    _system: psutil.Process = field(init=False)
    _port: int | None = None

    def __post_init__(self) -> None:
        self._system = psutil.Process(self.running.process.pid)

    def scrape(self) -> Scrape:
        """Read its metrics."""
        at, samples = time.monotonic(), {}
        for line in self._page().splitlines():
            if line.startswith(PREFIX):
                series, _, value = line.rpartition(" ")
                samples[series] = float(value)
        return Scrape(at, samples)

    def cpu_seconds(self) -> float:
        """Return the processor time that it has taken."""
        times = self._system.cpu_times()
        return times.user + times.system

    def rss_mib(self) -> float:
        """Return the memory that it holds."""
        return float(self._system.memory_info().rss / 2**20)

    def lead(self, seconds: float) -> None:
        """Wait until it leads and has heard of everything."""
        self.running.line("everything that is there has been heard of", seconds)

    def _page(self) -> str:
        if self._port is None:  # a log of ten thousand decisions is not read at each look
            self._port = self.running.line("headgate operator")["metrics_port"]
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as answer:
            page: str = answer.read().decode()
            return page


@contextmanager
def operator(kubeconfig: Path, log: Path, **settings: str) -> Iterator[Operator]:
    """Run `headgate operator` with settings as `HEADGATE_…` names them, in lower case; it is gone afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    environment |= {"KUBECONFIG": str(kubeconfig), "HEADGATE_LEASE_NAMESPACE": "default", **LOOPBACK}
    environment |= {f"HEADGATE_{name.upper()}": value for name, value in settings.items()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "operator"],
            stderr=output,
            stdout=output,
            env=environment,
        )
    try:
        yield Operator(OperatorProcess(process, log), time.monotonic())
    finally:
        process.kill()
        process.wait()


def problems(log: Path) -> int:
    """Return how many warnings and errors are in a log."""
    return len(re.findall(r'"level": "(warning|error)"', log.read_text(encoding="utf-8")))
