"""Settings that a source cannot heed are told, once."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from headgate_contract import (
    AlignmentControl,
    BacklogControl,
    BatchControl,
    QueryControl,
    RateControl,
    SourceControl,
)
from headgate_spark.engine.queries import Started
from headgate_spark.engine.settings import QuerySettings, unheeded
from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import Trigger, TriggerKind
from support.asked import admit
from support.engine import MadeUpCheckpoint, a_run


def described(kind: str, api: str = "v2", **more: object) -> Descriptor:
    query = {"id": "i", "runId": "r", "name": "q"}
    return Descriptor.parse(
        json.dumps({"handle": 1, "checkpoint": "ck", "query": query, "format": kind, "api": api, **more})
    )


JOB = {
    "ticks": described("rate"),
    "orders": described("kafka"),
    "files": described("parquet", "v1", defaultLimit="files"),
}


def about(**source: object) -> QueryControl:
    return QueryControl(sources=dict.fromkeys(JOB, SourceControl(**source)))


CUT = RateControl(records_per_checkpoint=5)


@pytest.mark.parametrize(
    ("control", "told"),
    [
        (None, []),
        (about(rate_limit=RateControl(records_per_second=5)), []),
        (
            about(publish_group="positions"),
            [
                "kafka.publishGroup of source ticks does nothing: its format is rate,",
                "kafka.publishGroup of source files does nothing: its format is parquet,",
            ],
        ),
        (
            about(backlog=BacklogControl(pending_records=5)),
            [
                "backlog.pendingRecords of source ticks starts no backlog: its format, rate, does not tell",
                "backlog.pendingRecords of source files starts no backlog: its format, parquet, does not tell",
            ],
        ),
        (about(backlog=BacklogControl(watermark_lag_seconds=5)), []),
        (about(rate_limit=CUT), ["rateLimit.recordsPerCheckpoint of source ticks does nothing"]),
        (
            about(rate_limit_during_backlog=CUT),
            ["rateLimit.recordsPerCheckpoint of source ticks does nothing"],
        ),
        (
            QueryControl(batch=BatchControl(initial_records=5, max_records=5)),
            ["batch.maxRecords does not bound ticks, which is read whole or not at all (read limit: gate)"],
        ),
        (QueryControl(sources={"elsewhere": SourceControl(publish_group="positions")}), []),
    ],
)
def test_what_a_source_cannot_do_is_named_with_the_remedy(
    control: QueryControl | None, told: list[str]
) -> None:
    found = unheeded(control, JOB)
    assert [problem[: len(begin)] for problem, begin in zip(found, told, strict=True)] == told


CAPPED = {
    "orders": described("kafka", options={"subscribe": "orders", "maxOffsetsPerTrigger": "50000"}),
    "files": described(
        "parquet", "v1", defaultLimit="files", options={"maxFilesPerTrigger": "9", "maxBytesPerTrigger": "1g"}
    ),
    "rows": described("mine", defaultLimit="rows", defaultRows=20, options={"maxOffsetsPerTrigger": "20"}),
}
BOUNDED = "rateLimit.recordsPerCheckpoint of the source"


@pytest.mark.parametrize(
    ("control", "told"),
    [
        (None, []),
        (QueryControl(batch=BatchControl(max_records=50_000)), []),
        (QueryControl(sources=dict.fromkeys(CAPPED, SourceControl(rate_limit=CUT))), []),
        (
            QueryControl(interval_seconds=5),
            [
                "maxOffsetsPerTrigger of source orders does nothing",
                "maxFilesPerTrigger and maxBytesPerTrigger of source files do nothing",
            ],
        ),
    ],
)
def test_a_cap_of_the_job_that_no_longer_holds_is_named_with_what_takes_its_place(
    control: QueryControl | None, told: list[str]
) -> None:
    found = unheeded(control, CAPPED)
    assert [problem[: len(begin)] for problem, begin in zip(found, told, strict=True)] == told
    assert all(problem.endswith(BOUNDED) for problem in found)


def test_what_does_not_bound_a_run_of_one_batch_is_named_with_what_does():
    run = a_run("copy", MadeUpCheckpoint(), started=Started(Trigger(TriggerKind.ONCE), True))
    orders = SourceControl(rate_limit=CUT, alignment=AlignmentControl(group="all", max_drift_seconds=1))
    run.take_control(QueryControl(batch=BatchControl(max_records=5), sources={"orders": orders}))
    run.open(described("kafka", options={"subscribe": "orders", "maxOffsetsPerTrigger": "50000"}))
    with capture_logs() as log:
        admit(run, 1, '{"orders":{"0":5}}')
    assert [entry["problem"] for entry in log if entry["event"] == "a setting is not heeded"] == [
        "rateLimit of source orders, alignment of source orders, batch.maxRecords do nothing: trigger(once=True) is "
        "one batch of all there is; use trigger(availableNow=True) instead"
    ]


def test_it_is_told_once_however_often_a_document_comes_and_anew_when_it_returns() -> None:
    query = QuerySettings("copy")
    wrong, right = about(rate_limit=CUT), QueryControl()
    with capture_logs() as log:
        for control in (wrong, wrong, right, wrong):
            query.document_says(control)
            query.tell(JOB)
    told = [entry for entry in log if entry["event"] == "a setting is not heeded"]
    assert [entry["query"] for entry in told] == ["copy", "copy"]
