from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.api.application import SparkApplication
from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.verdict import decide
from headgate.reconcile.document import declares_the_same, executor_instances, next_document
from headgate.reconcile.policy import query_policies
from headgate_contract import BacklogControl, ControlDocument, RateControl, ReentryControl, SourceControl
from headgate_contract.receiving import read, write
from support.looping import application, query, source


def document(declared: Any, **observed: Any) -> ControlDocument:
    """The first document of an application, after one observation of its source."""
    verdicts = {}
    for name, policy in query_policies(declared).items():
        seen = Observation(t=0.0, query=name, sources={"flights": SourceObservation(**observed)})
        verdicts[name], _ = decide(seen, policy, Memory())
    return next_document(declared, verdicts, published=None, last_generation=0)


def with_source(**members: Any) -> Any:
    return application(queries=[query(sources=[source(**members)])])


def only_source(**members: Any) -> SourceControl:
    return document(with_source(**members)).queries["delays"].sources["flights"]


def test_durations_become_seconds() -> None:
    declared = application(
        stop={"gracePeriod": "90s"},
        queries=[
            query(
                checkpoint={"interval": "250ms", "intervalDuringBacklog": "1h30m", "minPause": "1.5s"},
                batch={"targetDuration": "3s", "initialRecords": 5, "maxGrowth": 2, "maxRecords": 77},
            )
        ],
    )
    told = document(declared)
    control = told.queries["delays"]
    assert told.grace_period_seconds == 90.0
    assert (control.interval_seconds, control.interval_during_backlog_seconds) == (0.25, 5400.0)
    assert control.min_pause_seconds == 1.5
    assert (control.batch.target_seconds, control.batch.initial_records) == (3.0, 5)
    assert (control.batch.max_growth, control.batch.max_records) == (2.0, 77)


def test_what_is_not_set_stays_unset_and_zero_stays_zero() -> None:
    unset = document(application(queries=[query(checkpoint={})])).queries["delays"]
    assert (unset.interval_seconds, unset.interval_during_backlog_seconds) == (None, None)
    zero = document(application(queries=[query(checkpoint={"intervalDuringBacklog": "0s"})]))
    assert zero.queries["delays"].interval_during_backlog_seconds == 0.0


@pytest.mark.parametrize(
    ("limit", "always", "during_backlog"),
    [
        (None, None, None),
        (
            {"recordsPerSecond": 50.5},
            RateControl(records_per_second=50.5),
            RateControl(records_per_second=50.5),
        ),
        ({"recordsPerSecond": 50, "duringBacklog": "Unlimited"}, RateControl(records_per_second=50), None),
        (
            {"recordsPerSecond": 50, "maxBurst": "3s", "duringBacklog": {"recordsPerCheckpoint": 9}},
            RateControl(records_per_second=50, max_burst_seconds=3),
            RateControl(records_per_checkpoint=9, max_burst_seconds=3),
        ),
        ({"duringBacklog": {"recordsPerSecond": 9}}, None, RateControl(records_per_second=9)),
    ],
    ids=["none", "same as always", "unlimited", "another one", "in backlog alone"],
)
def test_the_limit_during_a_backlog_is_resolved(
    limit: Any, always: RateControl | None, during_backlog: RateControl | None
) -> None:
    told = only_source(rateLimit=limit) if limit else only_source()
    assert told.rate_limit == always
    assert told.rate_limit_during_backlog == during_backlog


def test_a_source_carries_all_that_is_declared_of_it() -> None:
    told = only_source(
        alignment={"group": "air", "maxDrift": "1h", "updateInterval": "2s", "idleAfter": "5s"},
        eventTime={"column": "$.at", "maxFuture": "10m"},
        kafka={"publishGroup": "lag"},
    )
    assert told.max_future_seconds == 600.0
    assert told.alignment is not None
    assert (told.alignment.group, told.alignment.max_drift_seconds) == ("air", 3600.0)
    assert (told.alignment.update_interval_seconds, told.alignment.idle_after_seconds) == (2.0, 5.0)
    assert told.event_time is not None
    assert (told.event_time.column, told.event_time.format) == ("$.at", "Json")
    assert told.publish_group == "lag"


def annotated_with(declared: SparkApplication, **annotations: str) -> SparkApplication:
    """The application with annotations of our own prefix."""
    prefixed = {f"headgate.dev/{name}": text for name, text in annotations.items()}
    metadata = declared.metadata.model_copy(update={"annotations": prefixed})
    return declared.model_copy(update={"metadata": metadata})


def test_a_source_is_paused_by_declaration_or_by_annotation() -> None:
    declared = with_source()
    annotated = annotated_with(declared, paused="delays/flights")
    assert [
        document(each).queries["delays"].sources["flights"].paused
        for each in (declared, annotated, with_source(paused=True))
    ] == [False, True, True]


def test_a_checkpoint_is_asked_for_by_the_annotation_of_the_query_or_else_of_all() -> None:
    declared = application(queries=[query(), query(name="totals")])
    asked = annotated_with(declared, checkpoint="08:00, totals/09:00")
    assert {name: control.checkpoint_request for name, control in document(asked).queries.items()} == {
        "delays": "08:00",
        "totals": "09:00",
    }
    assert document(declared).queries["delays"].checkpoint_request is None


def test_asking_for_another_checkpoint_changes_the_document() -> None:
    declared = annotated_with(with_source(), checkpoint="08:00")
    first = next_document(declared, {}, published=None, last_generation=0)
    again = next_document(declared, {}, published=first, last_generation=1)
    later = next_document(
        annotated_with(declared, checkpoint="08:05"), {}, published=first, last_generation=1
    )
    assert (first.generation, again.generation, later.generation) == (1, 1, 2)


@pytest.mark.parametrize(
    ("observed", "backlog", "reason"),
    [
        ({}, False, None),
        ({"watermark_lag_seconds": 10.0, "pending_records": 5}, False, None),
        ({"watermark_lag_seconds": 301.0, "pending_records": 5}, True, "WatermarkLag"),
        ({"watermark_lag_seconds": 10.0, "pending_records": 1_000_001}, True, "PendingRecords"),
        ({"watermark_lag_seconds": 10.0, "pending_records": 5, "phase": True}, False, None),
    ],
    ids=["unknown", "live", "lag", "pending", "phase alone is the driver's own business"],
)
def test_the_verdict_is_told_without_the_phase(observed: Any, backlog: bool, reason: str | None) -> None:
    control = document(with_source(), **observed).queries["delays"]
    assert (control.backlog, control.reason) == (backlog, reason)


EXECUTORS = {"executor": {"instances": 3}}
MORE_IN_BACKLOG = {**EXECUTORS, "duringBacklog": {"executor": {"instances": 9}}}


@pytest.mark.parametrize(
    ("spec", "lag", "instances"),
    [
        (MORE_IN_BACKLOG, 10.0, 3),
        (MORE_IN_BACKLOG, 301.0, 9),
        (EXECUTORS, 301.0, 3),
        ({}, 10.0, 2),
        ({**MORE_IN_BACKLOG, "sparkConf": {"spark.master": "local[2]"}}, 301.0, None),
    ],
    ids=["live", "backlog", "none of its own in backlog", "unset", "local"],
)
def test_the_document_asks_for_the_executors_of_the_state(
    spec: dict[str, Any], lag: float, instances: int | None
) -> None:
    told = document(application(**spec), watermark_lag_seconds=lag, pending_records=5)
    assert told.executor_instances == instances


def test_the_generation_rises_with_the_content_and_with_nothing_else() -> None:
    declared, paused = with_source(), with_source(paused=True)
    first = next_document(declared, {}, published=None, last_generation=0)
    assert first.generation == 1
    assert next_document(declared, {}, published=first, last_generation=1) is first
    second = next_document(paused, {}, published=first, last_generation=1)
    assert second.generation == 2
    assert next_document(declared, {}, published=second, last_generation=2).generation == 3


def test_the_generation_rises_even_where_the_document_was_lost_or_put_back() -> None:
    declared = with_source()
    assert next_document(declared, {}, published=None, last_generation=7).generation == 8
    older = next_document(with_source(paused=True), {}, published=None, last_generation=2)
    assert next_document(declared, {}, published=older, last_generation=7).generation == 8


def test_a_document_that_has_not_arrived_is_tried_again_under_its_generation() -> None:
    declared, paused = with_source(), with_source(paused=True)
    first = next_document(declared, {}, published=None, last_generation=0)
    tried = next_document(paused, {}, published=first, last_generation=1)
    assert next_document(paused, {}, published=first, last_generation=2, tried=tried) is tried
    assert next_document(declared, {}, published=first, last_generation=2, tried=tried) is first


@pytest.mark.parametrize(("last_generation", "of_another"), [(3, None), (2, 2), (2, 3)])
def test_a_generation_that_somebody_else_may_have_used_is_not_used_again(
    last_generation: int, of_another: int | None
) -> None:
    declared, paused = with_source(), with_source(paused=True)
    first = next_document(declared, {}, published=None, last_generation=0)
    tried = next_document(paused, {}, published=first, last_generation=1)
    published = None if of_another is None else replace(first, generation=of_another)
    again = next_document(paused, {}, published=published, last_generation=last_generation, tried=tried)
    assert again.generation == max(last_generation, of_another or 0) + 1


def test_a_document_that_went_through_the_file_is_recognised_as_the_same() -> None:
    declared = application(
        queries=[
            query(
                batch={"maxGrowth": 3},
                sources=[
                    source(rateLimit={"recordsPerSecond": 3}, alignment={"group": "a", "maxDrift": "0s"})
                ],
            )
        ]
    )
    first = next_document(declared, {}, published=None, last_generation=0)
    read_back = read(write(first))
    assert isinstance(read_back, ControlDocument)
    assert next_document(declared, {}, published=read_back, last_generation=1) is read_back


def test_documents_that_differ_by_their_verdicts_alone_declare_the_same() -> None:
    live = document(with_source(), watermark_lag_seconds=1.0, pending_records=5)
    backlog = document(with_source(), watermark_lag_seconds=1000.0, pending_records=5)
    assert live != backlog
    assert declares_the_same(live, backlog)
    assert not declares_the_same(live, document(with_source(paused=True)))


@pytest.mark.parametrize("value", ["true", "True"])
def test_where_spark_decides_how_many_executors_there_are_nobody_asks_for_a_number(value: str) -> None:
    declared = application(sparkConf={"spark.dynamicAllocation.enabled": value}, executor={"instances": 4})
    assert executor_instances(declared, {}) is None
    off = application(sparkConf={"spark.dynamicAllocation.enabled": "false"}, executor={"instances": 4})
    assert executor_instances(off, {}) == 4


def test_a_driver_is_told_by_which_lag_it_votes() -> None:
    backlog = {"watermarkLag": "5m", "pendingRecords": 1000, "query": "vector(1)"}
    reentry = {"above": "20m", "dwell": "30s", "policy": "Never"}
    declared = application(
        queries=[
            query(
                backlog={"reentry": reentry},
                sources=[source(backlog=backlog), source(name="weather", backlog={})],
            )
        ]
    )
    control = document(declared).queries["delays"]
    assert control.reentry == ReentryControl(allowed=False, above_seconds=1200.0, dwell_seconds=30.0)
    assert control.sources["flights"].backlog == BacklogControl(
        watermark_lag_seconds=300.0, pending_records=1000
    )
    assert control.sources["weather"].backlog is None


def test_a_driver_is_told_of_which_source_is_a_change_stream() -> None:
    sources = document(with_source(backlog={"snapshot": "Debezium"})).queries["delays"].sources
    assert sources["flights"].snapshot == "Debezium"
    assert sources["flights"].backlog is None, "its lag does not vote by that"


def test_a_driver_goes_on_with_the_votes_of_the_one_that_was_restarted_for_a_verdict() -> None:
    declared = with_source(backlog={"watermarkLag": "5m"})
    told = next_document(
        declared, {}, published=None, last_generation=0, live={("delays", "flights"), ("delays", "gone")}
    )
    assert told.queries["delays"].sources["flights"].backlog == BacklogControl(
        watermark_lag_seconds=300.0, live=True
    )


@pytest.mark.parametrize(("interval", "votes"), [("0s", False), ("2m", True)])
def test_a_driver_that_is_restarted_for_its_one_batch_does_not_begin_it_by_itself(
    interval: str, votes: bool
) -> None:
    declared = application(
        queries=[
            query(
                checkpoint={"interval": "5s", "intervalDuringBacklog": interval},
                sources=[source(backlog={"watermarkLag": "5m"})],
            )
        ],
        duringBacklog={"sparkConf": {"spark.x": "2"}},
    )
    told = document(declared).queries["delays"].sources["flights"]
    assert (told.backlog is not None) == votes
    assert told.tells_lag != votes, "the operator judges by the lag that the driver tells"
    assert told.asks_for_lag
