"""`headgate operator` as a process of its own, on a control plane of a test."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.waiting import DEADLINE_SECONDS, wait_until

QUICK = {"HEADGATE_TICK": "500ms", "HEADGATE_RESYNC": "2s", "HEADGATE_API_TIMEOUT": "5s"}
"""A pace at which tests need not wait long."""
ACCOUNT = {"HEADGATE_DRIVER_SERVICE_ACCOUNT": "default"}
"""That which every namespace of a test has."""
LOOPBACK = {"HEADGATE_METRICS_BIND_ADDRESS": "127.0.0.1:0", "HEADGATE_PROBE_BIND_ADDRESS": "127.0.0.1:0"}


@dataclass
class OperatorProcess:
    """One process, its log, and where it listens."""

    process: subprocess.Popen[bytes]
    path: Path

    def lines(self) -> list[dict[str, Any]]:
        """Return what it has logged, one object a line; a line that is no JSON is a fault of its own."""
        whole = self.path.read_text(encoding="utf-8").rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def line(self, pattern: str, seconds: float = DEADLINE_SECONDS) -> dict[str, Any]:
        """Return the first line whose sentence matches `pattern`, as soon as there is one."""

        def found() -> dict[str, Any] | None:
            assert self.process.poll() is None or self._has(pattern), self.explain(
                f"ended without {pattern!r}"
            )
            return next((line for line in self.lines() if re.search(pattern, str(line["event"]))), None)

        return wait_until(
            found,
            f"a line of the operator that says {pattern!r}",
            seconds,
            seen=lambda: self.explain("it runs"),
        )

    def decision(self, reason: str) -> dict[str, Any]:
        """Return the first line of a decision that was taken for `reason`, as soon as there is one."""

        def found() -> dict[str, Any] | None:
            return next((line for line in self.lines() if line.get("reason") == reason), None)

        return wait_until(
            found, f"a decision of the operator for {reason}", seen=lambda: self.explain("it runs")
        )

    def begin_leading(self) -> OperatorProcess:
        """Wait until it leads and has heard of everything."""
        self.line("everything that is there has been heard of")
        return self

    def probe(self, path: str) -> tuple[int, str]:
        """Return status and text of `/healthz` or `/readyz`."""
        return self._get(f"http://127.0.0.1:{self._started()['probe_port']}{path}")

    def metrics(self) -> str:
        """Return a scrape."""
        return self._get(f"http://127.0.0.1:{self._started()['metrics_port']}/metrics")[1]

    def metric(self, sample: str) -> float | None:
        """Return the value of one sample, named with its labels as the scrape writes them."""
        found = re.search(rf"^{re.escape(sample)} (\S+)$", self.metrics(), re.MULTILINE)
        return None if found is None else float(found[1])

    def series(self) -> frozenset[str]:
        """Return the series of a scrape, each with its labels, as soon as it looks at metrics."""
        wait_until(lambda: "look_age_seconds{" in self.metrics(), "a look at the metrics")
        return frozenset(re.findall(r"^([a-z].*) \S+$", self.metrics(), re.MULTILINE))

    def stop(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()

    def wait(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Return its exit code once it has ended by itself."""
        return self.process.wait(seconds)

    def explain(self, what: str) -> str:
        """Return `what` with the end of the log."""
        return f"{what}; its log ends:\n{self.path.read_text(encoding='utf-8')[-4000:]}"

    def _has(self, pattern: str) -> bool:
        return any(re.search(pattern, str(line["event"])) for line in self.lines())

    def _started(self) -> dict[str, Any]:
        return self.line("headgate operator")

    def _get(self, url: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@contextmanager
def operator_process(
    kubeconfig: Path, log: Path, *flags: str, environ: Mapping[str, str] | None = None
) -> Iterator[OperatorProcess]:
    """Run `headgate operator`; it is gone afterwards, however the test ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    environment |= {"KUBECONFIG": str(kubeconfig), **QUICK, **ACCOUNT, **LOOPBACK, **(environ or {})}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "operator", *flags],
            stderr=output,
            stdout=output,
            env=environment,
        )
    operator = OperatorProcess(process, log)
    try:
        yield operator
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
