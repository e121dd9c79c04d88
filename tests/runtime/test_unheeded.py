"""Settings that a source cannot heed: those that protect end a query that begins; the others are told, once."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from headgate_contract import (
    AlignmentControl,
    BacklogControl,
    BatchControl,
    ControlDocument,
    QueryControl,
    RateControl,
    SourceControl,
)
from headgate_contract.metrics import SETTING_UNHEEDED
from headgate_spark.engine.executors import Executors
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.settings import QuerySettings
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.unheeded import caps_in_vain, unheeded
from headgate_spark.exporter import DriverCollector
from support.engine import begins, services_with
from support.engine import described as stream


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
    assert [problem.sentence[: len(begin)] for problem, begin in zip(found, told, strict=True)] == told


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
    found = list(caps_in_vain(control, CAPPED))
    assert [problem[: len(begin)] for problem, begin in zip(found, told, strict=True)] == told
    assert all(problem.endswith(BOUNDED) for problem in found)


def test_it_is_told_once_however_often_a_document_comes_and_anew_when_it_returns() -> None:
    query = QuerySettings("copy")
    wrong, right = about(rate_limit=CUT), QueryControl()
    with capture_logs() as log:
        for control in (wrong, wrong, right, wrong):
            query.document_says(control)
            query.tell(JOB)
    told = [entry for entry in log if entry["event"] == "a setting is not heeded"]
    assert [entry["query"] for entry in told] == ["copy", "copy"]


ALIGNED = AlignmentControl(group="trips", max_drift_seconds=1)
PROTECTED = {
    "a limit": (
        {"ticks": SourceControl(rate_limit=CUT)},
        "rateLimit.recordsPerCheckpoint of source ticks does nothing",
    ),
    "an alignment": (
        {"files": SourceControl(alignment=ALIGNED)},
        "alignment of files does nothing: it has no event times",
    ),
    "after": ({"files": SourceControl(after="ticks")}, "source files comes after ticks, which never ends"),
}
protected = pytest.mark.parametrize(("sources", "words"), PROTECTED.values(), ids=PROTECTED)


def copy(**sources: SourceControl) -> QueryControl:
    return QueryControl(interval_seconds=1, sources=sources)


def begun(control: QueryControl, said: str | None = None, *, resumed: bool = False) -> Governor:
    """A driver with a document, and a query of two sources that it knows of; `said` is for failures."""
    governor = Governor(services_with())
    say(governor, 1, control)
    properties = {} if said is None else {"spark.headgate.onFailure": said}
    begins(governor, properties=properties, resumed=resumed)
    for handle, (name, kind) in enumerate({"ticks": "rate", "files": "parquet"}.items(), 1):
        members = json.loads(stream(handle)) | {"format": kind, "name": name, "options": {}}
        governor.opened(handle, json.dumps(members))
    return governor


def say(governor: Governor, generation: int, control: QueryControl) -> None:
    governor.take_document(ControlDocument(generation=generation, queries={"copy": control}))


def told_by(governor: Governor) -> list[str]:
    collector = DriverCollector("app", governor, Executors(between_batches=lambda: True))
    found = [s for family in collector.collect() for s in family.samples]
    return [s.labels["cause"] for s in found if s.name == SETTING_UNHEEDED.name]


@protected
def test_a_query_that_begins_with_what_a_source_cannot_keep_ends_with_one_sentence(
    sources: dict[str, SourceControl], words: str
) -> None:
    governor = begun(copy(**sources))
    for asked in (1, 2):  # the answer to the first question may be lost
        answer = governor.admit(1, f"1.{asked}:", None)
        assert answer.startswith(f"fail:query copy: {words}")
        assert answer.endswith("; with spark.headgate.onFailure=continue it runs without")


@protected
def test_to_go_on_all_the_same_is_said_in_log_and_metric(
    sources: dict[str, SourceControl], words: str
) -> None:
    governor = begun(copy(**sources), "continue")
    with capture_logs() as log:
        assert not governor.admit(1, "1.1:", None).startswith("fail:")
    assert [entry for entry in log if words.partition("does nothing: ")[2] in str(entry)]
    (cause,) = told_by(governor)
    assert cause.startswith(f"query copy: {words}")


@protected
def test_a_document_never_ends_a_query_that_runs_which_says_what_it_does_not_do(
    sources: dict[str, SourceControl], words: str
) -> None:
    governor = begun(copy())
    assert not governor.admit(1, "1.1:", None).startswith("fail:")
    say(governor, 2, copy(**sources))
    assert not governor.admit(1, "2.2:", None).startswith("fail:")
    (cause,) = told_by(governor)
    assert cause.startswith(f"query copy: {words}")
    say(governor, 3, copy())
    assert told_by(governor) == []


@pytest.mark.parametrize(("other", "waits_for"), [(None, "orders"), ("files", None)])
def test_what_a_source_waits_for_stays_where_it_cannot_wait_for_what_is_asked_next(
    other: str | None, waits_for: str | None
) -> None:
    """Unless nothing would ever start by that."""
    governor = begun(copy(files=SourceControl(after="orders"), orders=SourceControl()))
    governor.admit(1, "1.1:", None)
    say(governor, 2, copy(files=SourceControl(after="ticks"), orders=SourceControl(after=other)))
    (run,) = governor.runs
    assert run.settings.of_source("files").after == waits_for
    assert run.settings.of_source("orders").after == other


@protected
def test_the_next_planner_of_a_query_that_runs_does_not_end_it(
    sources: dict[str, SourceControl], words: str
) -> None:
    governor = begun(copy(**sources), resumed=True)
    assert not governor.admit(1, "7.9:1=6", None).startswith("fail:")
    assert told_by(governor)


def test_while_a_document_cannot_be_read_a_query_has_not_begun() -> None:
    sources, words = PROTECTED["a limit"]
    governor = begun(copy())
    governor.documents.unread = "nothing is read"
    assert governor.admit(1, "1.1:", None).startswith(("hold", "lease"))
    governor.documents.unread = None
    say(governor, 2, copy(**sources))
    assert governor.admit(1, "2.2:", None).startswith(f"fail:query copy: {words}")


@pytest.mark.parametrize(("said", "ends"), [(None, False), ("fail", True)])
def test_what_only_paces_ends_a_query_that_is_to_be_governed_or_fail(said: str | None, ends: bool) -> None:
    control = copy(files=SourceControl(publish_group="positions"))
    assert begun(control, said).admit(1, "1.1:", None).startswith("fail:") == ends
