"""The decision log: a line for each decision that differs from the one before, and what is counted of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from structlog.testing import capture_logs

from headgate.adapters.kubernetes.client import APPLICATIONS
from headgate.adapters.kubernetes.events import EventRecorder
from headgate.adapters.metrics.prometheus import answer, client
from headgate.api.application import MetricsSource
from headgate.controller.cluster import Controller
from headgate.controller.decision_log import NOT_IN_BACKLOG, DecisionLog
from headgate.decision.driver import StepReason
from headgate.decision.voters import Reason
from headgate.handlers.resync import SELECTORS
from headgate.key import Key
from headgate.metrics import WATCHED_BY_LABEL, OperatorMetrics
from headgate.reconcile.ports import OutageReason
from support.exposed import WATCHED
from support.looping import Loop, query
from support.operating import Operation

KEY = Key("team", "flights")
PREFIX = "headgate_operator_"


class Told:
    """A loop whose reconciles the decision log is told of, and what it wrote."""

    def __init__(self, lines: list[Any]) -> None:
        self.loop = Loop()
        self.metrics = OperatorMetrics()
        self.decision_log = DecisionLog(self.metrics)
        self._lines = lines

    def reconcile(self, seconds: float = 1.0) -> list[Any]:
        """Turn the loop; returns the lines that were written about it."""
        before = len(self._lines)
        self.decision_log.decided(KEY, self.loop.reconcile(seconds))
        return self._lines[before:]

    def reports(self, lag: float) -> None:
        source = {"watermark_lag_seconds": lag, "pending_records": 10.0, "phase": 0.0, "idle_seconds": 0.0}
        self.loop.world.metrics.reports(sources={"flights": source})

    def runs(self) -> None:
        self.reconcile()
        self.loop.world.drivers.becomes_ready()
        self.acknowledges()
        self.reconcile()

    def acknowledges(self) -> None:
        published = self.loop.world.controls.published()
        assert published is not None
        self.loop.world.metrics.acknowledges(published.generation)

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(PREFIX + name, labels)


def test_an_application_whose_resource_is_refused_is_counted_as_such(told: Told) -> None:
    told.metrics.watch_by_label(applications=told.decision_log.states)
    told.runs()
    assert (told.sample("applications", state="Running"), told.sample("applications", state="Refused")) == (
        1,
        0,
    )
    told.decision_log.refused(KEY)
    told.decision_log.refused(KEY)
    assert (told.sample("applications", state="Running"), told.sample("applications", state="Refused")) == (
        0,
        1,
    )
    told.reconcile()
    assert (told.sample("applications", state="Running"), told.sample("applications", state="Refused")) == (
        1,
        0,
    )
    told.decision_log.refused(KEY)
    told.decision_log.gone(KEY)
    assert told.sample("applications", state="Refused") == 0


@pytest.fixture
def told() -> Iterator[Told]:
    with capture_logs() as lines:
        yield Told(lines)


def test_a_verdict_that_changes_has_one_line_with_its_query_and_reason(told: Told) -> None:
    told.runs()
    told.reports(lag=3600)
    [line] = [line for line in told.reconcile() if "query" in line]

    assert line["event"] == "in backlog by WatermarkLag"
    assert (line["application"], line["query"], line["reason"]) == ("team/flights", "delays", "WatermarkLag")
    assert told.sample("decisions_total", kind="verdict", reason="WatermarkLag") == 1
    assert [line for line in told.reconcile() if "query" in line] == []


def test_a_step_of_the_driver_has_a_line_with_its_state(told: Told) -> None:
    told.reconcile()
    told.loop.world.drivers.becomes_ready()
    [line] = [line for line in told.reconcile() if line.get("state") == "Running"]

    assert line["reason"] == "Running"
    assert told.sample("decisions_total", kind="driver", reason="Running") == 1


def test_a_restart_of_the_operator_repeats_no_decision(told: Told) -> None:
    told.runs()
    told.reports(lag=3600)
    told.reconcile()
    told.loop.restart()
    told.decision_log = DecisionLog(OperatorMetrics())

    assert told.reconcile() == []


def test_a_new_application_is_told_of_from_its_first_reconcile(told: Told) -> None:
    assert [line["reason"] for line in told.reconcile()] == ["Started"]


def test_applications_are_counted_by_state(told: Told) -> None:
    told.metrics.watch_by_label(applications=told.decision_log.states)
    told.reconcile()
    assert told.sample("applications", state="Pending") == 1
    told.runs()
    assert told.sample("applications", state="Running") == 1
    assert told.sample("applications", state="Pending") == 0
    told.decision_log.gone(KEY)
    assert told.sample("applications", state="Running") == 0


def test_the_time_to_acknowledge_runs_from_publishing_to_the_sample_that_shows_it(told: Told) -> None:
    told.runs()
    told.reports(lag=3600)
    told.reconcile()
    published_at = told.loop.now
    told.reconcile(2)
    assert told.decision_log.longest_pending(published_at + 2) == 2
    told.acknowledges()
    told.reconcile(3)

    assert told.sample("control_acknowledge_seconds_count") == 1
    assert told.sample("control_acknowledge_seconds_sum") == 5
    assert told.decision_log.longest_pending(told.loop.now) == 0


def test_a_document_that_the_operator_before_has_published_is_awaited_as_well(told: Told) -> None:
    """Else a start of the operator would end the alert on a driver that takes up nothing, for good."""
    told.runs()
    told.loop.declare(queries=[query(checkpoint={"interval": "9s"})])
    told.reconcile()
    told.loop.restart()
    told.decision_log = DecisionLog(OperatorMetrics())
    told.reconcile(60)
    told.loop.world.metrics.hangs()
    told.reconcile(50)
    assert told.decision_log.longest_pending(told.loop.now + 50) == 100
    told.loop.world.metrics.answers()
    told.acknowledges()
    told.reconcile()
    assert told.decision_log.longest_pending(told.loop.now + 50) == 0


def test_a_document_is_not_said_to_be_pending_while_nobody_hears_the_driver(told: Told) -> None:
    """It may have it, as where there is no Prometheus to ask; once it is heard, and does not, all the time counts."""
    told.runs()
    told.loop.declare(queries=[query(checkpoint={"interval": "9s"})])
    told.reconcile()
    told.loop.world.metrics.hangs()
    told.reconcile(300)
    assert told.decision_log.longest_pending(told.loop.now) == 0
    told.loop.world.metrics.answers()
    told.reconcile(60)
    assert told.decision_log.longest_pending(told.loop.now) == 360


def test_a_document_for_a_driver_that_starts_is_not_measured(told: Told) -> None:
    told.reconcile()
    told.reconcile(60)

    assert told.decision_log.longest_pending(told.loop.now) == 0
    told.runs()
    assert told.sample("control_acknowledge_seconds_count") == 0


def test_an_outage_of_metrics_is_a_warning(told: Told) -> None:
    told.runs()
    told.loop.world.metrics.hangs()
    told.reconcile()
    lines = told.reconcile(120)

    assert [(line["log_level"], line["reason"]) for line in lines] == [("warning", "ScrapeTimeout")]


def watched(metrics: OperatorMetrics) -> None:
    metrics.watch(**dict.fromkeys(WATCHED, lambda: 0))
    metrics.watch_by_label(**dict.fromkeys(WATCHED_BY_LABEL, dict))


def test_every_series_is_there_from_the_start_and_an_odd_status_makes_no_other() -> None:
    metrics = OperatorMetrics()
    DecisionLog(metrics)
    watched(metrics)

    def series() -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        families = metrics.registry.collect()
        return {(one.name, tuple(one.labels.items())) for family in families for one in family.samples}

    before = series()
    for result in ("done", "retried", "defect"):
        metrics.reconciled(result, 0.1)
    for status in ("200", "201", "403", "409", "418", "503", "599", "unavailable"):
        metrics.called(verb="PATCH", kind="pods", status=status, seconds=0.1)
    metrics.queried(0.1)
    for reason in set(re.findall(r"OutageReason\.([A-Z_]+)", source_of(answer, client))):
        metrics.queried(0.1, OutageReason[reason])
    for kind, reasons in (("verdict", (NOT_IN_BACKLOG, *Reason)), ("driver", StepReason)):
        for one in reasons:
            metrics.decisions.labels(kind, one).inc()
    for source in MetricsSource:
        metrics.failed_looks.labels(source).inc()
    for kind in SELECTORS:
        metrics.heard(kind.plural)
        metrics.missed.labels(kind.plural).inc()

    assert series() == before
    failures = {
        code: metrics.registry.get_sample_value(
            f"{PREFIX}api_request_failures_total", {"resource": "pods", "code": code}
        )
        for code in ("403", "409", "429", "503", "unavailable", "other")
    }
    assert failures == {"403": 1, "409": 1, "429": 0, "503": 1, "unavailable": 1, "other": 2}


def source_of(*modules: ModuleType) -> str:
    return "".join(map(inspect.getsource, modules))


def test_every_metric_is_described_in_the_operations_page() -> None:
    metrics = OperatorMetrics()
    DecisionLog(metrics)
    watched(metrics)
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")

    for family in metrics.registry.collect():
        if family.name.startswith(PREFIX):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            assert re.search(
                rf"^\| `{name}` \| {family.type} \|.*\| {re.escape(family.documentation)} \|$", page, re.M
            )


@pytest.mark.parametrize("refused", [False, True])
def test_an_application_whose_end_a_watch_tells_before_its_last_write_is_answered_is_counted_no_more(
    refused: bool,
) -> None:
    o, decision_log = Operation(), DecisionLog(OperatorMetrics())
    tell, tell_refused = decision_log.decided, decision_log.refused
    o.controller = Controller(
        o.cluster,  # type: ignore[arg-type]
        o.measurements,
        o.options,
        EventRecorder(o.cluster, "headgate"),  # type: ignore[arg-type]
        decided=tell,
        refused=tell_refused,
        clock=lambda: o.cluster.now,
    )
    o.run()
    if refused:
        o.declare(main={"file": "job.py"})
    else:
        o.cluster.remove(KEY)
        o.reconcile()
        o.cluster.pod_ends("flights-driver-1", 0)

    def is_quicker(call: str) -> None:
        if call != ("apply sparkapplications/status" if refused else "patch sparkapplications"):
            return
        o.cluster.after = lambda _call: None
        if refused:  # somebody takes its finalizer off as well
            o.cluster.edit(APPLICATIONS, KEY, lambda known: known["metadata"].pop("finalizers"))
            o.cluster.remove(KEY)
        for event in o.cluster.events[o.heard :]:
            if event.is_gone and event.kind == APPLICATIONS:
                decision_log.gone(o.controller.application_gone(event.manifest))

    o.cluster.after = is_quicker
    o.reconcile()
    o.reconciles(2)
    assert ("sparkapplications", *KEY) not in o.cluster.objects
    assert not any(decision_log.states().values())
