"""The ports of the loop in memory: what a test sets is what the loop sees, and all that it did is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.api.status import SparkApplicationStatus
from headgate.decision.driver import Exit, Obstacle, SeenDriver
from headgate.reconcile.launch import Launch
from headgate.reconcile.ports import Event, Outage, OutageReason, Ports, Problem, WritePolicy
from headgate.reconcile.readings import Column, DriverMetrics
from headgate_contract import ControlDocument
from headgate_contract import metrics as names
from support.reported import reported


@dataclass
class FakeDrivers:
    """Drivers that end only when told to, and count how many live at once."""

    driver: SeenDriver | None = None
    launches: list[tuple[int, Launch]] = field(default_factory=list)
    stops: int = 0
    kills: int = 0
    in_the_way: Obstacle | None = None

    def observe(self, now: float) -> SeenDriver | None:
        return self.driver

    def start(self, launch: Launch, attempt: int, now: float, *, follows_oom_kill: bool = False) -> None:
        if self.driver is not None and self.driver.attempt == attempt:
            return
        assert self.driver is None or self.driver.exit is not None, "two drivers at once"
        assert self.driver is None or attempt > self.driver.attempt, "an attempt was started twice"
        self.launches.append((attempt, launch))
        self.driver = SeenDriver(attempt=attempt, revision=launch.revision, started_at=now)

    def obstacle(self, now: float) -> Obstacle | None:
        return self.in_the_way

    def stop(self, grace_seconds: float) -> None:
        self.stops += 1

    def kill(self) -> None:
        self.kills += 1

    def becomes_ready(self) -> None:
        assert self.driver is not None
        self.driver = replace(self.driver, is_ready=True)

    def ends(self, code: int | None, at: float) -> None:
        assert self.driver is not None
        self.driver = replace(self.driver, exit=Exit(at=at, code=code), is_ready=False)


@dataclass
class FakeMetrics:
    """A scrape that returns what was set, stamped with the time at which it is asked."""

    values: list[tuple[str, dict[str, str], float]] = field(default_factory=list)
    outage: Outage | None = None
    has_details: bool = True
    """Whether more is known than votes depend on."""
    lacks: dict[Column, float] = field(default_factory=dict)
    """Columns that are from before, and from when (Unix time)."""
    asked: int = 0

    def sample(self, now: float, attempt: int) -> DriverMetrics | Outage:
        self.asked += 1
        if self.outage is not None:
            return self.outage
        driver = reported(self.values, now, attempt, has_details=self.has_details)
        if self.has_details and not driver.says_nothing and driver.stopping is None:
            driver.stopping = False  # as on every page
        driver.older |= self.lacks
        return driver

    def hangs(self) -> None:
        self.outage = Outage(OutageReason.SCRAPE_TIMEOUT, "did not answer within 2 s")

    def answers(self) -> None:
        self.outage = None

    def reports(
        self,
        query: str = "delays",
        *,
        started_at: float = 1000.0,
        sources: Mapping[str, Mapping[str, float]] | None = None,
        **of_query: float,
    ) -> None:
        """Set what is reported of one query; keywords are metric names without `headgate_query_`."""
        kept = [value for value in self.values if value[1].get("query") != query]
        labels = {"application": "flights", "query": query}
        kept.append((names.QUERY_STARTED.name, labels, started_at))
        kept.append((names.QUERY_ACTIVE.name, labels, of_query.pop("active", 1.0)))
        kept += [(f"headgate_query_{name}", labels, value) for name, value in of_query.items()]
        for source, of_source in (sources or {}).items():
            both = {**labels, "source": source}
            kept += [(f"headgate_source_{name}", both, value) for name, value in of_source.items()]
        self.values = kept

    def reports_held(self, seconds: float, reason: str, *, query: str = "delays", source: str) -> None:
        labels = {"application": "flights", "query": query, "source": source, "reason": reason}
        self.values.append((names.SOURCE_HELD.name, labels, seconds))

    def acknowledges(self, generation: int) -> None:
        name = names.CONTROL_GENERATION.name
        kept = [value for value in self.values if value[0] != name]
        self.values = [*kept, (name, {"application": "flights"}, float(generation))]


@dataclass
class FakeControls:
    """Keeps each document that was published."""

    documents: list[ControlDocument] = field(default_factory=list)
    lost: bool = False

    def published(self) -> ControlDocument | None:
        return None if self.lost or not self.documents else self.documents[-1]

    def publish(self, document: ControlDocument) -> None:
        self.lost = False
        self.documents.append(document)


@dataclass
class FakeStore:
    """Keeps JSON text, so that nothing survives that a file would lose."""

    text: str | None = None
    saves: int = 0

    def load(self) -> Mapping[str, Any] | None:
        return None if self.text is None else json.loads(self.text)

    def save(self, document: Mapping[str, Any]) -> None:
        self.saves += 1
        self.text = json.dumps(document)


@dataclass
class FakeReports:
    """Keeps what people were told."""

    statuses: list[SparkApplicationStatus] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def last(self) -> SparkApplicationStatus | None:
        return self.statuses[-1] if self.statuses else None

    def write(self, status: SparkApplicationStatus) -> None:
        self.statuses.append(status)

    def tell(self, event: Event) -> None:
        self.events.append(event)

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


@dataclass
class FakeExecutorPods:
    """Pods of executors that show what a test sets."""

    found: Problem | None = None
    seen: bool = True

    def hindrance(self) -> Problem | None:
        return self.found

    def were_seen(self) -> bool:
        return self.seen


@dataclass
class FakeWorld:
    """All ports of one application."""

    drivers: FakeDrivers = field(default_factory=FakeDrivers)
    metrics: FakeMetrics = field(default_factory=FakeMetrics)
    controls: FakeControls = field(default_factory=FakeControls)
    store: FakeStore = field(default_factory=FakeStore)
    reports: FakeReports = field(default_factory=FakeReports)
    write_policy: WritePolicy = field(default_factory=WritePolicy)
    executors: FakeExecutorPods = field(default_factory=FakeExecutorPods)

    @property
    def ports(self) -> Ports:
        return Ports(
            drivers=self.drivers,
            metrics=self.metrics,
            controls=self.controls,
            store=self.store,
            reports=self.reports,
            write_policy=self.write_policy,
            executors=self.executors,
        )
