"""A real Prometheus on the loopback address: it scrapes what a test exposes, or serves a history that a test wrote.

    with prometheus(tmp_path, scrape={"drivers": ["127.0.0.1:8090"]}) as server:
        server.wait_until_scraped("drivers")
        server.value("headgate_source_pending_records")

`exposed` is the other end: a target whose text a test may change at any time.
"""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.go_tools import go_tool
from support.http_server import Handler, serving
from support.servers import Server, answers, free_port
from support.waiting import wait_until

SCRAPE_INTERVAL = "1s"
REQUEST_SECONDS = 120.0
PAGE = {"Content-Type": "text/plain; version=0.0.4"}


@dataclass(frozen=True)
class Sample:
    """One element of an instant vector."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Series:
    """One element of a range vector."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    """Unix times and values."""


class Prometheus:
    """A running server; stopped and started again it is at the same address, with the same data."""

    def __init__(self, folder: Path, config: Mapping[str, Any], flags: Sequence[str], address: str):
        self._address = f"{address}:{free_port()}"
        self._config = folder / "prometheus.yaml"
        self._write(config)
        command: list[str | Path] = [
            go_tool("prometheus"),
            *("--config.file", self._config, "--storage.tsdb.path", folder / "data"),
            *("--web.listen-address", self._address, "--web.enable-lifecycle", "--log.level=warn", *flags),
        ]
        self._server = Server(command, folder / "prometheus.log")

    @property
    def url(self) -> str:
        """Where its API is."""
        return f"http://{self._address}"

    @property
    def pid(self) -> int:
        """Process id, to measure it by."""
        return self._server.pid

    def start(self) -> None:
        """Start it, and wait until it answers queries."""
        self._server.start()
        self._server.wait_until(lambda: answers(f"{self.url}/-/ready"))

    def stop(self) -> None:
        """Stop it; nobody answers at its address until it is started again."""
        self._server.stop()

    def kill(self) -> None:
        """End it at once."""
        self._server.kill()

    def reload(self, config: Mapping[str, Any]) -> None:
        """Go on with another configuration."""
        self._write(config)
        request = urllib.request.Request(f"{self.url}/-/reload", method="POST")
        urllib.request.urlopen(request, timeout=REQUEST_SECONDS).close()

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """Evaluate an expression now, or at a Unix time; a scalar is one sample without labels."""
        data = self._ask("query", query=expression, **({} if at is None else {"time": repr(at)}))
        if data["resultType"] in {"scalar", "string"}:
            return [Sample({}, float(data["result"][1]))]
        return [Sample(one["metric"], float(one["value"][1])) for one in data["result"]]

    def query_range(self, expression: str, begin: float, end: float, step: float) -> list[Series]:
        """Evaluate an expression every `step` seconds between two Unix times."""
        data = self._ask("query_range", query=expression, start=repr(begin), end=repr(end), step=str(step))
        return [
            Series(one["metric"], [(at, float(value)) for at, value in one["values"]])
            for one in data["result"]
        ]

    def value(self, expression: str, at: float | None = None) -> float | None:
        """Return the only sample's value, or None if there is no sample."""
        samples = self.query(expression, at)
        assert len(samples) <= 1, f"{expression} has {len(samples)} samples"
        return samples[0].value if samples else None

    def wait_for(self, expression: str) -> list[Sample]:
        """Wait until an expression has samples, and return them."""
        return wait_until(lambda: self.query(expression), f"samples of {expression}")

    def wait_until_scraped(self, job: str) -> None:
        """Wait until each target of a job was scraped with success, counted from this call."""
        since = self.value("time()")
        up = f'up{{job="{job}"}} == 1 and timestamp(up{{job="{job}"}}) > {since}'
        count = sum(1 for target in self._ask("targets")["activeTargets"] if target["scrapePool"] == job)
        wait_until(lambda: len(self.query(up)) >= max(count, 1), f"a scrape of every target of {job}")

    def _ask(self, what: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=REQUEST_SECONDS) as response:
            return json.load(response)["data"]

    def _write(self, config: Mapping[str, Any]) -> None:
        self._config.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")


@contextmanager
def prometheus(
    folder: Path,
    *,
    scrape: Mapping[str, Sequence[str]] | None = None,
    config: Mapping[str, Any] | None = None,
    history: str | None = None,
    flags: Sequence[str] = (),
    address: str = "127.0.0.1",
) -> Iterator[Prometheus]:
    """Run a Prometheus whose files are in `folder`; it is gone afterwards.

    `scrape` names the targets (`host:port`) of each job, asked every second; `config` is a whole configuration
    instead. `history` is OpenMetrics text with timestamps, put into the database before the start. Another `address`
    than loopback is for one in the network of a test node, which its pods can ask.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if history is not None:
        _backfill(folder, history)
    server = Prometheus(folder, config or scraping(scrape or {}), flags, address)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def scraping(jobs: Mapping[str, Sequence[str]], interval: str = SCRAPE_INTERVAL) -> dict[str, Any]:
    """Return a configuration that scrapes the targets of each job."""
    return {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(targets)}]} for job, targets in jobs.items()
        ],
    }


@dataclass
class Exposed:
    """A target that says `text` at each scrape."""

    address: str
    text: str = ""


@contextmanager
def exposed(text: str = "") -> Iterator[Exposed]:
    """Run a target of Prometheus in this process; its text may be changed at any time."""

    class Scraped(Handler):
        def do_GET(self) -> None:
            self.say(target.text.encode(), headers=PAGE)

    with serving(Scraped) as server:
        target = Exposed(f"127.0.0.1:{server.server_port}", text)
        yield target


def _backfill(folder: Path, history: str) -> None:
    text = folder / "history.om"
    text.write_text(history if history.endswith("# EOF\n") else history + "# EOF\n", encoding="utf-8")
    command = [go_tool("promtool"), "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"promtool does not take the history:\n{done.stderr}"
