"""Drivers that a real Prometheus scrapes, and pollers that ask it."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headgate.adapters.metrics.prometheus.client import PrometheusOptions
from headgate.adapters.metrics.prometheus.poller import PrometheusPoller
from headgate.api.application import SparkApplication
from headgate.key import Key
from support.driver_page import DriverPage
from support.fake_prometheus import Answer, FakePrometheus, fake_prometheus
from support.looping import application
from support.prometheus import Exposed, Prometheus

KEY = Key("team", "flights")


@dataclass
class Fleet:
    """Drivers that a real Prometheus scrapes every second, all behind one target."""

    server: Prometheus
    target: Exposed
    pollers: list[PrometheusPoller] = field(default_factory=list)
    told: list[str | None] = field(default_factory=list)
    """Of each query, why it failed."""

    def say(self, *pages: DriverPage) -> None:
        """Let the drivers say this from now on, and wait until Prometheus has heard it."""
        self.target.text = "".join(page.text for page in pages)
        self.server.wait_until_scraped("drivers")

    def poller(
        self, declared: SparkApplication | None = None, key: Key = KEY, **options: Any
    ) -> PrometheusPoller:
        """Return a poller of this Prometheus, or of another `url`, that watches one application."""
        made = PrometheusPoller(
            PrometheusOptions(**{"url": self.server.url, **options}),
            queried=lambda _, reason: self.told.append(reason),
        )
        self.pollers.append(made)
        made.watch(key, declared or application())
        return made


def labelled_scraping(**jobs: list[str]) -> dict[str, Any]:
    """A configuration in which targets say themselves which pod they are."""
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": job, "honor_labels": True, "static_configs": [{"targets": targets}]}
            for job, targets in jobs.items()
        ],
    }


@contextmanager
def intermediary(fleet: Fleet, port: int = 0) -> Iterator[FakePrometheus]:
    """Pass queries on to the real Prometheus, until a test has it otherwise."""
    with fake_prometheus(lambda asked: forwarded(fleet, asked), port=port) as between:
        yield between


def forwarded(fleet: Fleet, asked: Mapping[str, str]) -> Answer:
    """Return what the real Prometheus answers to a query."""
    body = urllib.parse.urlencode(asked).encode()
    with urllib.request.urlopen(f"{fleet.server.url}/api/v1/query", body, timeout=60) as answer:
        return Answer(answer.read())
