"""From a reconcile to the moment that views show, and to the JSON that `--json` and `--report` write of it.

docs/local.md describes the JSON. What is not known is left out of it.
"""

from dataclasses import replace
from typing import Any

from headgate.api.duration import in_seconds
from headgate.api.status import QueryStatus, SourceStatus, SparkApplicationStatus
from headgate.cli.view import Moment
from headgate.decision.observation import SourceObservation
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Event
from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from headgate.reconcile.track import Track


def moment_of(application: str, outcome: Outcome, *, pid: int | None, events: tuple[Event, ...]) -> Moment:
    seen, memory, plan = outcome.seen, outcome.memory, outcome.plan
    driver = seen.living_driver
    moment = Moment(
        application=application,
        at=seen.now,
        step=plan.step,
        published=plan.document.generation,
        status=memory.status or SparkApplicationStatus(),
        reported={} if seen.metrics is None else seen.metrics.queries,
        observed=seen.observations,
        pid=None if driver is None else pid,
        started_at=None if driver is None else driver.started_at,
        outage=None if driver is None or seen.outage is None else seen.outage.message,
        events=events,
        is_written=memory.status_written_at == seen.now,
    )
    return replace(moment, sample=_sample(moment, outcome))


def _sample(moment: Moment, outcome: Outcome) -> dict[str, Any]:
    return {
        "type": "sample",
        "t": moment.at,
        "application": moment.application,
        "state": moment.step.state.value,
        "message": moment.step.message,
        "attempt": moment.step.history.attempt,
        "controlGeneration": moment.published,
        "queries": {query.name: _query(query, reported, outcome) for query, reported in moment.queries},
    } | _known(
        pid=moment.pid,
        startedAt=moment.started_at,
        acknowledgedGeneration=moment.status.acknowledged_generation,
        metricsAvailable=moment.is_measured,
        outage=moment.outage,
    )


def _query(status: QueryStatus, reported: QueryMetrics, outcome: Outcome) -> dict[str, Any]:
    track = outcome.memory.tracks.get(status.name, Track())
    return {
        "backlog": status.backlog,
        "sources": {
            source.name: _source(
                status.name, source, reported.sources.get(source.name, SourceMetrics()), outcome
            )
            for source in status.sources
        },
    } | _known(
        reason=status.reason,
        since=None if status.since is None else status.since.timestamp(),
        inForce=reported.backlog,
        triggerProblem=status.trigger_problem,
        realTime=status.real_time,
        realTimeRefused=status.real_time_refused,
        intervalSeconds=in_seconds(status.interval),
        grantRecords=reported.grant_records,
        grantReason=status.grant_reason,
        throughput=reported.throughput,
        arrivalRate=track.arrival_rate,
        etaSeconds=outcome.plan.verdicts[status.name].eta_seconds,
        batches=reported.data_batches,
        noDataBatches=reported.no_data_batches,
        batchSeconds=reported.batch_seconds_sum,
        stateRows=reported.state_rows,
        watermarkHeldBy=reported.watermark_held_by,
        active=reported.active,
        failure=reported.failure,
    )


def _source(query: str, status: SourceStatus, reported: SourceMetrics, outcome: Outcome) -> dict[str, Any]:
    observed = outcome.seen.observations[query].sources.get(status.name, SourceObservation())
    verdict = outcome.plan.verdicts[query].sources.get(status.name)
    votes = {} if verdict is None else {reason.value: vote for reason, vote in verdict.votes.items()}
    return {"votes": votes} | _known(
        pendingRecords=reported.pending_records,
        processedRecords=reported.processed_records,
        watermarkLag=reported.watermark_lag_seconds,
        eventTimeLag=reported.event_time_lag_seconds,
        rateLimit=reported.rate_limit,
        heldBy=outcome.memory.tracks.get(query, Track()).held_by.get(status.name),
        waitsFor=None if status.alignment is None else status.alignment.held_by,
        outOfReach=reported.out_of_reach,
        snapshotProblem=reported.snapshot_problem,
        phase=reported.phase,
        idle=observed.idle,
    )


def _known(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def event_line(event: Event) -> dict[str, Any]:
    return {
        "type": "event",
        "t": event.at,
        "reason": event.reason,
        "message": event.message,
        "warning": event.is_warning,
    }
