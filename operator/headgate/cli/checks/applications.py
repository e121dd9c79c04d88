"""What one application of a cluster says of itself: metrics, control document, sources, Spark, executors.

All of it is read from the status: what the operator has seen of a driver, and what the driver says of its sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from headgate.api.status import Condition, ConditionStatus
from headgate.cli.checks import RUNBOOK, Finding, Level, unmet
from headgate.cli.cluster.application import ClusterApplication
from headgate.decision.driver import State
from headgate.reconcile.ports import OF_ONE_QUERY, OutageReason
from headgate.reconcile.readiness import CONTROL_PENDING
from headgate.reconcile.times import duration_text

PENDING_SECONDS: Final = 120.0
"""How long a driver may take to have a document in force: a kubelet takes a minute and a half to hand a changed
annotation on, by its own resync of volumes, and a driver looks each second."""

SUPPORTED_SPARK: Final = re.compile(r"4\.[0-3](\.|$)")
"""As `spec.sparkVersion` has it; a test compares the two."""

BY_METRICS: Final = "see check metrics first: a driver reports by its metrics"

OF_PROMETHEUS: Final = frozenset({*OF_ONE_QUERY, OutageReason.NOT_ASKED})
"""Outages that say that Prometheus cannot be asked, where it is asked at all."""


def check_application(application: ClusterApplication, now: float) -> Iterator[Finding]:
    """Yield what is found of one application. `now` is Unix time."""
    told = list(_status(application))
    yield from told
    if any(finding.level is Level.PROBLEM for finding in told):
        return
    yield from _life(application)
    if application.state is State.RUNNING:
        yield from _metrics(application)
        yield from _control(application, now)
        yield from _sources(application)
        yield from _spark(application)
        yield from _executors(application)


def check_prometheus(applications: Sequence[ClusterApplication]) -> Iterator[Finding]:
    """Yield whether Prometheus answers the operator, by what the applications say that have their metrics from it."""
    told = [
        condition
        for application in applications
        if application.state is State.RUNNING and application.metrics_source == "Prometheus"
        if (condition := application.status.condition("MetricsAvailable")) is not None
    ]
    failed = [condition for condition in told if condition.reason in OF_PROMETHEUS]
    if not told:
        says = "no running application has its metrics from Prometheus, so it was not asked"
        remedy = "look again once one of them runs"
        yield Finding("prometheus", "cluster", Level.UNKNOWN, says, remedy)
    elif len(failed) < len(told):
        says = f"Prometheus answers the operator, for {len(told) - len(failed)} of {len(told)} applications"
        yield Finding("prometheus", "cluster", Level.OK, says)
    else:
        first = failed[0]
        yield Finding(
            "prometheus",
            "cluster",
            Level.PROBLEM,
            f"Prometheus does not answer the operator: {first.reason}: {first.message}",
            "check prometheusUrl and the credentials in the operator's settings, and network policies",
        )


def _status(application: ClusterApplication) -> Iterator[Finding]:
    if application.unreadable is not None:
        says = f"its status is of another version: {application.unreadable}"
        yield _found("operator", application, Level.PROBLEM, says, "update this command")
    elif application.state is None and application.status.observed_generation is None:
        says = "no operator has acted on it"
        remedy = f"see that an operator runs, and that it serves namespace {application.namespace}"
        yield _found("operator", application, Level.PROBLEM, says, remedy)
    elif not application.is_seen:
        says = f"generation {application.generation} of it has not been acted upon"
        remedy = "look again in a minute; if it stays so, read the operator's log"
        yield _found("operator", application, Level.WARNING, says, remedy)


def _life(application: ClusterApplication) -> Iterator[Finding]:
    ready, stalled = application.status.condition("Ready"), application.status.condition("Stalled")
    if stalled is not None and stalled.status is ConditionStatus.TRUE:
        yield _of_condition("life", application, Level.PROBLEM, stalled)
    elif application.state is State.BACKING_OFF and ready is not None:
        yield _of_condition("life", application, Level.WARNING, ready)
    else:
        yield _found("life", application, Level.OK, f"it is {application.state}")
    for query in application.status.queries:
        if query.failure is not None:
            says = f"query {query.name} has failed: {query.failure}"
            yield _found("query", application, Level.PROBLEM, says, RUNBOOK)
        snapshots = {source.name: source.snapshot_problem for source in query.sources}
        for says in unmet(query.name, query, snapshots):
            yield _found("query", application, Level.WARNING, says, RUNBOOK)


def _metrics(application: ClusterApplication) -> Iterator[Finding]:
    condition = application.status.condition("MetricsAvailable")
    if condition is None or condition.status is ConditionStatus.UNKNOWN:
        says = "it is not known yet whether its metrics arrive"
        yield _found("metrics", application, Level.UNKNOWN, says, "look again in a minute")
    elif condition.status is ConditionStatus.TRUE:
        yield _found("metrics", application, Level.OK, "its metrics arrive")
    else:
        yield _of_condition("metrics", application, Level.PROBLEM, condition)


def _control(application: ClusterApplication, now: float) -> Iterator[Finding]:
    published, reported = application.status.control_generation, application.status.acknowledged_generation
    if published is None:
        says = "no control document has been published"
        remedy = "look again in a minute; if it stays so, read the operator's log"
        yield _found("control", application, Level.UNKNOWN, says, remedy)
        return
    if reported == published:
        says = f"its control document {published} is in force"
        yield _found("control", application, Level.OK, says)
        return
    pending = application.status.condition("Reconciling")
    is_pending = pending is not None and pending.reason == CONTROL_PENDING
    waited = 0.0 if pending is None or not is_pending else now - pending.last_transition_time.timestamp()
    level = Level.PROBLEM if waited > PENDING_SECONDS else Level.WARNING
    in_force = "none is known to be in force" if reported is None else f"{reported} is in force"
    since = f" for {duration_text(round(waited))}" if waited > 0 else ""
    yield _found(
        "control",
        application,
        level,
        f"its control document {published} is published{since}, and {in_force}",
        "see check metrics first: a driver acknowledges by its metrics; then its log for a document that it refuses",
    )


def _sources(application: ClusterApplication) -> Iterator[Finding]:
    sources = [(query, source) for query in application.status.queries for source in query.sources]
    lost = [(query.name, source) for query, source in sources if source.out_of_reach is not None]
    for query, source in lost:
        says = f"the driver cannot reach source {source.name} of query {query}: {source.out_of_reach}"
        remedy = "check the broker's address, its certificates and the credentials, from the driver's pod"
        yield _found("sources", application, Level.PROBLEM, says, remedy)
    if not application.status.says("MetricsAvailable", ConditionStatus.TRUE) or not sources:
        says = "the driver reports nothing about its sources"
        yield _found("sources", application, Level.UNKNOWN, says, BY_METRICS)
    elif not lost:
        says = f"the driver reaches all of its sources that it reads from, {len(sources)} in all"
        yield _found("sources", application, Level.OK, says)


def _spark(application: ClusterApplication) -> Iterator[Finding]:
    found, declared = application.status.spark_version, application.spark_version
    if found is None:
        says = "the driver has not reported which Spark it runs"
        yield _found("spark", application, Level.UNKNOWN, says, BY_METRICS)
    elif not SUPPORTED_SPARK.match(found):
        says = f"the driver runs Spark {found}, for which Headgate's shim is not made"
        remedy = "build the image on Spark 4.0 to 4.3"
        yield _found("spark", application, Level.PROBLEM, says, remedy)
    elif declared is not None and f"{found}.".find(f"{declared}.") != 0:
        says = f"the driver runs Spark {found}, and spec.sparkVersion says {declared}"
        yield _found("spark", application, Level.WARNING, says, "correct spec.sparkVersion, or the image")
    else:
        yield _found("spark", application, Level.OK, f"Spark {found} and its shim fit")


def _executors(application: ClusterApplication) -> Iterator[Finding]:
    missing = application.status.condition("ExecutorsMissing")
    if missing is not None and missing.status is ConditionStatus.TRUE:
        yield _of_condition("executors", application, Level.WARNING, missing)


def _of_condition(check: str, application: ClusterApplication, level: Level, condition: Condition) -> Finding:
    """Return a finding in the words of a condition, which have the remedy in them."""
    return _found(check, application, level, f"{condition.reason}: {condition.message}", RUNBOOK)


def _found(check: str, application: ClusterApplication, level: Level, says: str, remedy: str = "") -> Finding:
    return Finding(check, f"{application.namespace}/{application.name}", level, says, remedy)
