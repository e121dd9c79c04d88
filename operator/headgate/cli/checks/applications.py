"""What one application of a cluster says of itself: metrics, control document, sources, Spark, executors.

All of it is read from the status: what the operator has seen of a driver, and what the driver says of its sources.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from headgate import __version__
from headgate.api.status import Condition, ConditionStatus
from headgate.cli.checks import RUNBOOK, CheckResult, Level, Said, found, unmet
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.view.words import whose
from headgate.decision.driver import State
from headgate.reconcile.conditions import CONTROL_PENDING
from headgate.reconcile.ports import OF_ONE_QUERY, OutageReason
from headgate.reconcile.times import duration_text

PENDING_SECONDS: Final = 120.0
"""How long a driver may take to be heard of a document in force: a kubelet hands a changed annotation on within two
seconds, and Prometheus tells with its next scrape. The alert `HeadgateControlNotAcknowledged` waits as long."""

SUPPORTED_SPARK: Final = re.compile(r"4\.[0-3](\.|$)")
"""As `spec.sparkVersion` has it; a test compares the two."""

STAYS_SO: Final = "look again in a minute; if it stays so, read the operator's log"
BY_METRICS: Final = "see check metrics first: a driver reports by its metrics"

OF_PROMETHEUS: Final = frozenset({*OF_ONE_QUERY, OutageReason.NOT_ASKED})
"""Outages that say that Prometheus cannot be asked, where it is asked at all."""


def check_application(application: ClusterApplication, now: float) -> Iterator[CheckResult]:
    """Yield what is found of one application. `now` is Unix time."""
    of = f"{application.namespace}/{application.name}"
    told = list(found("operator", of, _status(application)))
    yield from told
    if any(finding.level is Level.PROBLEM for finding in told):
        return
    yield from found("life", of, _life(application))
    yield from found("query", of, _queries(application))
    if application.state is State.RUNNING:
        yield from found("metrics", of, _metrics(application))
        yield from found("control", of, _control(application, now))
        yield from found("sources", of, _sources(application))
        yield from found("spark", of, _spark(application))
        yield from found("headgate", of, _headgate(application))
        yield from found("executors", of, _executors(application))


def check_prometheus(applications: Sequence[ClusterApplication]) -> Iterator[CheckResult]:
    """Yield whether Prometheus answers the operator, by what the applications say that have their metrics from it."""
    told = [
        condition
        for application in applications
        if application.state is State.RUNNING and application.metrics_source == "Prometheus"
        if (condition := application.status.condition("MetricsAvailable")) is not None
    ]
    return found("prometheus", "cluster", _prometheus(told))


def _prometheus(told: Sequence[Condition]) -> Said:
    failed = [condition for condition in told if condition.reason in OF_PROMETHEUS]
    if not told:
        says = "no running application has its metrics from Prometheus, so it was not asked"
        yield Level.UNKNOWN, says, "look again once one of them runs"
    elif len(failed) < len(told):
        asked = f"for {len(told) - len(failed)} of {len(told)} applications"
        yield Level.OK, f"Prometheus answers the operator, {asked}"
    else:
        yield (
            Level.PROBLEM,
            f"Prometheus does not answer the operator: {failed[0].reason}: {failed[0].message}",
            "check prometheusUrl and the credentials in the operator's settings, and network policies",
        )


def _status(application: ClusterApplication) -> Said:
    if application.unreadable is not None:
        says = f"its status is of another version: {application.unreadable}"
        yield Level.PROBLEM, says, "update this command"
    elif application.state is None and application.status.observed_generation is None:
        remedy = f"see that an operator runs, and that it serves namespace {application.namespace}"
        yield Level.PROBLEM, "no operator has acted on it", remedy
    elif not application.is_seen:
        yield Level.WARNING, f"generation {application.generation} of it has not been acted upon", STAYS_SO


def _life(application: ClusterApplication) -> Said:
    ready, stalled = application.status.condition("Ready"), application.status.condition("Stalled")
    if stalled is not None and stalled.status is ConditionStatus.TRUE:
        yield Level.PROBLEM, _words(stalled), RUNBOOK
    elif application.state is State.BACKING_OFF and ready is not None:
        yield Level.WARNING, _words(ready), RUNBOOK
    else:
        yield Level.OK, f"it is {application.state}"


def _queries(application: ClusterApplication) -> Said:
    for query in application.status.queries:
        if query.failure is not None:
            says = f"query {whose(query.name, query.owner)} has failed: {query.failure}"
            yield Level.PROBLEM, says, RUNBOOK
        snapshots = {source.name: source.snapshot_problem for source in query.sources}
        for says in unmet(query.name, query, snapshots):
            yield Level.WARNING, says, RUNBOOK


def _metrics(application: ClusterApplication) -> Said:
    condition = application.status.condition("MetricsAvailable")
    if condition is None or condition.status is ConditionStatus.UNKNOWN:
        yield Level.UNKNOWN, "it is not known yet whether its metrics arrive", "look again in a minute"
    elif condition.status is ConditionStatus.TRUE:
        yield Level.OK, "its metrics arrive"
    else:
        yield Level.PROBLEM, _words(condition), RUNBOOK


def _control(application: ClusterApplication, now: float) -> Said:
    published, reported = application.status.control_generation, application.status.acknowledged_generation
    if published is None:
        yield Level.UNKNOWN, "no control document has been published", STAYS_SO
    elif reported == published:
        yield Level.OK, f"its control document {published} is in force"
    else:
        pending = application.status.condition("Reconciling")
        is_pending = pending is not None and pending.reason == CONTROL_PENDING
        waited = now - pending.last_transition_time.timestamp() if pending and is_pending else 0.0
        in_force = "none is known to be in force" if reported is None else f"{reported} is in force"
        since = f" for {duration_text(round(waited))}" if waited > 0 else ""
        yield (
            Level.PROBLEM if waited > PENDING_SECONDS else Level.WARNING,
            f"its control document {published} is published{since}, and {in_force}",
            "see check metrics first: a driver acknowledges by its metrics; then its log for a document that it "
            "refuses",
        )


def _sources(application: ClusterApplication) -> Said:
    sources = [(query, source) for query in application.status.queries for source in query.sources]
    lost = [
        (whose(query.name, query.owner), source)
        for query, source in sources
        if source.out_of_reach is not None
    ]
    for query, source in lost:
        says = f"the driver cannot reach source {source.name} of query {query}: {source.out_of_reach}"
        remedy = "check the broker's address, its certificates and the credentials, from the driver's pod"
        yield Level.PROBLEM, says, remedy
    if not application.status.says("MetricsAvailable", ConditionStatus.TRUE) or not sources:
        yield Level.UNKNOWN, "the driver reports nothing about its sources", BY_METRICS
    elif not lost:
        yield Level.OK, f"the driver reaches all of its sources that it reads from, {len(sources)} in all"


def _spark(application: ClusterApplication) -> Said:
    runs, declared = application.status.spark_version, application.spark_version
    if runs is None:
        yield Level.UNKNOWN, "the driver has not reported which Spark it runs", BY_METRICS
    elif not SUPPORTED_SPARK.match(runs):
        says = f"the driver runs Spark {runs}, for which Headgate's shim is not made"
        yield Level.PROBLEM, says, "build the image on Spark 4.0 to 4.3"
    elif declared is not None and not f"{runs}.".startswith(f"{declared}."):
        says = f"the driver runs Spark {runs}, and spec.sparkVersion says {declared}"
        yield Level.WARNING, says, "correct spec.sparkVersion, or the image"
    else:
        yield Level.OK, f"Spark {runs} and its shim fit"


def _headgate(application: ClusterApplication) -> Said:
    runs = application.status.headgate_version
    if runs is None:
        says = (
            "the driver has not reported which Headgate it runs; an older one never does, nor what it ignores"
        )
        yield Level.UNKNOWN, says, f"{BY_METRICS}; else give the job the jar or image of {__version__}"
    elif runs != __version__:
        says = f"the driver runs Headgate {runs}, and this command is of {__version__}"
        remedy = (
            "if the driver's is older, give the job the newer jar or image: settings new to it do nothing"
        )
        yield Level.WARNING, says, remedy
    else:
        yield Level.OK, f"the driver runs Headgate {runs}, as this command"


def _executors(application: ClusterApplication) -> Said:
    missing = application.status.condition("ExecutorsMissing")
    if missing is not None and missing.status is ConditionStatus.TRUE:
        yield Level.WARNING, _words(missing), RUNBOOK


def _words(condition: Condition) -> str:
    """Return what a condition says, which has the remedy in it."""
    return f"{condition.reason}: {condition.message}"
