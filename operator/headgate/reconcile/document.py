"""From what is declared and decided to what the driver is told.

The resource says "the same limit as always" by leaving a field out, and writes durations as text; the control
document says everything outright, in seconds and records. Its generation rises with its content and with
nothing else, so that "acknowledged" means "this content is in force".
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from headgate.api.annotations import ALL_QUERIES, SourceId, checkpoint_requests, paused_sources
from headgate.api.application import SparkApplication
from headgate.api.duration import in_seconds
from headgate.api.property_rules import has_fixed_executors
from headgate.api.query import LiveMode, Query
from headgate.api.source import Source
from headgate.decision.verdict import Verdict
from headgate.decision.voters import Reason
from headgate.reconcile.policy import rate_control, reentry_control
from headgate_contract import (
    AlignmentControl,
    BacklogControl,
    BatchControl,
    ControlDocument,
    EventTimeControl,
    LiveControl,
    QueryControl,
    SourceControl,
)
from headgate_contract.generations import following, is_later, latest


def next_document(  # noqa: PLR0913  what is known of the documents before this one
    application: SparkApplication,
    verdicts: Mapping[str, Verdict],
    *,
    published: ControlDocument | None,
    last_generation: int,
    tried: ControlDocument | None = None,
    reported: int | None = None,
    live: Collection[SourceId] = (),
) -> ControlDocument:
    """Return the document that the driver should have: `published` itself where that says the same.

    `tried` is the one that was to be published last, and may not have arrived: tried again it is the same one.
    `reported` is the generation that the driver has in force. It is later than all that is known here where the
    cluster's memory was put back to what it was before; the driver takes nothing earlier, so it is gone beyond.
    `live` are the sources whose lag has said no in an attempt that the next run of their query goes on with.
    """
    annotations = application.metadata.annotations
    paused, checkpoints = paused_sources(annotations), checkpoint_requests(annotations)
    wanted = ControlDocument(
        generation=0,
        application=application.name,
        grace_period_seconds=application.spec.stop.grace_period.total_seconds(),
        executor_instances=executor_instances(application, verdicts),
        queries={
            query.name: _query(
                query,
                verdicts.get(query.name),
                None if published is None else published.queries.get(query.name),
                paused=paused,
                checkpoint=checkpoints.get(query.name, checkpoints.get(ALL_QUERIES)),
                backlogs=_backlogs(query, live) if votes_by_lag(application, query) else {},
            )
            for query in application.spec.queries
        },
    )
    seen = 0 if published is None else published.generation
    in_force = seen if reported is None else reported
    if published is not None and replace(published, generation=0) == wanted and not is_later(in_force, seen):
        return published
    if (
        tried is not None
        and tried.generation == last_generation
        and is_later(tried.generation, seen)
        and not is_later(in_force, tried.generation)
        and replace(tried, generation=0) == wanted
    ):
        return tried
    return replace(wanted, generation=following(latest(last_generation, seen, in_force)))


def executor_instances(application: SparkApplication, verdicts: Mapping[str, Verdict]) -> int | None:
    """Return how many executors the job should have now; `None` for a job that has none but its driver, and for one
    whose number Spark decides."""
    spec, during_backlog = application.spec, application.spec.during_backlog.executor
    if not has_fixed_executors(spec.spark_conf):
        return None
    in_backlog = any(verdict.governed_as_backlog for verdict in verdicts.values())
    return during_backlog.instances if during_backlog and in_backlog else spec.executor.instances


def votes_by_lag(application: SparkApplication, query: Query) -> bool:
    """Return whether the driver votes by the lag of a query's sources itself; else the operator's verdict is all.

    Where one batch spans a backlog, and the driver is restarted for it, it must not begin that batch before.
    """
    return not (query.checkpoint.one_batch_spans_backlog and application.spec.during_backlog.spark_conf)


def declares_the_same(one: ControlDocument, other: ControlDocument) -> bool:
    """Return whether two documents differ at most by their verdicts and what follows from these."""
    return _without_verdicts(one) == _without_verdicts(other)


def _without_verdicts(document: ControlDocument) -> ControlDocument:
    queries = {name: replace(query, backlog=False, reason=None) for name, query in document.queries.items()}
    return replace(document, generation=0, executor_instances=None, queries=queries)


def _query(  # noqa: PLR0913  what is declared, decided, published and asked for
    query: Query,
    verdict: Verdict | None,
    published: QueryControl | None,
    *,
    paused: Collection[SourceId],
    checkpoint: str | None,
    backlogs: Mapping[str, BacklogControl],
) -> QueryControl:
    return QueryControl(
        interval_seconds=in_seconds(query.checkpoint.interval),
        interval_during_backlog_seconds=in_seconds(query.checkpoint.interval_during_backlog),
        min_pause_seconds=query.checkpoint.min_pause.total_seconds(),
        backlog=verdict is not None and verdict.published_backlog,
        reason=_published_reason(verdict, published),
        checkpoint_request=checkpoint,
        batch=BatchControl(
            target_seconds=query.batch.target_duration.total_seconds(),
            initial_records=query.batch.initial_records,
            max_growth=query.batch.max_growth,
            max_records=query.batch.max_records,
        ),
        reentry=reentry_control(query.backlog.reentry),
        live=LiveControl(
            real_time=query.live.mode is LiveMode.REAL_TIME, batch_seconds=query.live.batch.total_seconds()
        ),
        sources={
            source.name: _source(
                source,
                paused=source.paused or (query.name, source.name) in paused,
                backlog=backlogs.get(source.name),
                # where the driver does not vote, the operator needs the lag to judge by
                tells_lag=source.backlog.watermark_lag is not None and source.name not in backlogs,
            )
            for source in query.sources
        },
    )


def _backlogs(query: Query, live: Collection[SourceId]) -> Mapping[str, BacklogControl]:
    """Return by which lag the driver votes, of the sources whose lag counts."""
    return {
        source.name: BacklogControl(
            watermark_lag_seconds=in_seconds(source.backlog.watermark_lag),
            pending_records=source.backlog.pending_records,
            live=(query.name, source.name) in live,
        )
        for source in query.sources
        if source.backlog.watermark_lag is not None or source.backlog.pending_records is not None
    }


def _published_reason(verdict: Verdict | None, published: QueryControl | None) -> str | None:
    """Return why the driver is told of a backlog; what it votes itself is its own business, and not told.

    It stays what it was when the backlog was told: by which vote one goes on, which is unknown while a source waits
    for its group, changes nothing in the driver, and is not worth a document each time.
    """
    if verdict is None or not verdict.published_backlog:
        return None
    if published is not None and published.backlog and published.reason is not None:
        return published.reason
    return (verdict.published_reason or Reason.UNKNOWN).value


def _source(
    source: Source, *, paused: bool, backlog: BacklogControl | None, tells_lag: bool
) -> SourceControl:
    event_time = source.event_time
    return SourceControl(
        paused=paused,
        after=source.after,
        max_future_seconds=event_time.max_future.total_seconds(),
        rate_limit=rate_control(source.rate_limit, in_backlog=False),
        rate_limit_during_backlog=rate_control(source.rate_limit, in_backlog=True),
        alignment=_alignment(source),
        event_time=(
            None
            if event_time.column is None
            else EventTimeControl(column=event_time.column, format=event_time.format.value)
        ),
        publish_group=source.kafka.publish_group,
        backlog=backlog,
        tells_lag=tells_lag,
        snapshot=None if source.backlog.snapshot is None else source.backlog.snapshot.value,
    )


def _alignment(source: Source) -> AlignmentControl | None:
    if (alignment := source.alignment) is None:
        return None
    return AlignmentControl(
        group=alignment.group,
        max_drift_seconds=alignment.max_drift.total_seconds(),
        update_interval_seconds=alignment.update_interval.total_seconds(),
        idle_after_seconds=in_seconds(alignment.idle_after),
    )
