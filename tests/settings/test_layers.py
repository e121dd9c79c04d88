"""Document, then option, then property, then default: whatever comes when, and whatever is withdrawn again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from headgate_contract import (
    AlignmentControl,
    BatchControl,
    EventTimeControl,
    QueryControl,
    RateControl,
    SourceControl,
)
from headgate_contract.settings.layers import SAYS_NOTHING, Job, held, merged
from headgate_contract.settings.said import Origin
from headgate_spark.engine.queries import Started
from headgate_spark.engine.settings import OfJob
from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import Trigger
from support.engine import MadeUpCheckpoint, a_run
from support.examples import examples

RATES = st.builds(RateControl, records_per_second=st.sampled_from([1.0, 5.0]))
SOURCES = st.builds(
    SourceControl,
    paused=st.booleans(),
    after=st.sampled_from([None, "a", "b"]),
    max_future_seconds=st.sampled_from([3600.0, 60.0]),
    rate_limit=st.none() | RATES,
    rate_limit_during_backlog=st.none() | RATES,
    alignment=st.none()
    | st.builds(AlignmentControl, group=st.sampled_from(["g", "h"]), max_drift_seconds=st.just(9.0)),
    event_time=st.none() | st.builds(EventTimeControl, column=st.just("at")),
    publish_group=st.sampled_from([None, "p"]),
)


@st.composite
def documents(draw: st.DrawFn) -> QueryControl | None:
    if draw(st.booleans()):
        return None
    sources = draw(st.dictionaries(st.sampled_from(["a", "b"]), SOURCES))
    while True:
        try:
            return QueryControl(
                interval_seconds=draw(st.sampled_from([None, 1.0])),
                min_pause_seconds=draw(st.sampled_from([0.0, 2.0])),
                backlog=draw(st.booleans()),
                batch=BatchControl(max_records=draw(st.sampled_from([100_000_000, 50]))),
                sources=sources,
            )
        except ValueError:  # sources that wait for each other
            sources = {name: replace(source, after=None) for name, source in sources.items()}


OF_SOURCE = st.fixed_dictionaries(
    {},
    optional={
        "headgate.paused": st.sampled_from(["true", "false"]),
        "headgate.rateLimit.recordsPerSecond": st.sampled_from(["7", "8"]),
        "headgate.eventTime.maxFuture": st.just("5m"),
        "headgate.eventTime.column": st.just("mine"),
        "headgate.kafka.publishGroup": st.just("mine"),
    },
)
OF_QUERY = st.fixed_dictionaries(
    {},
    optional={
        "headgate.interval": st.just("3s"),
        "headgate.minPause": st.just("4s"),
        "headgate.batch.maxRecords": st.just("60"),
    },
)
JOBS = st.builds(lambda query, a, b: OfJob(query).read("q", {"a": a, "b": b}), OF_QUERY, OF_SOURCE, OF_SOURCE)


@settings(max_examples=examples(300), deadline=None)
@given(document=documents(), job=JOBS)
def test_a_document_holds_where_it_says_something_and_the_job_elsewhere(
    document: QueryControl | None, job: Job
) -> None:
    result = merged(document, job)
    assert merged(document, SAYS_NOTHING) is document
    if result is None:
        assert document is None
        assert not job.says_something
        return
    upper, lower = document or QueryControl(), merged(None, job) or QueryControl()
    assert (result.backlog, result.reason) == (upper.backlog, upper.reason)
    assert result.interval_seconds == (
        lower.interval_seconds if upper.interval_seconds is None else upper.interval_seconds
    )
    assert result.min_pause_seconds == (upper.min_pause_seconds or lower.min_pause_seconds)
    default = SourceControl()
    for name, source in result.sources.items():
        one, other = upper.sources.get(name, default), lower.sources.get(name, default)
        for member in ("paused", "max_future_seconds", "alignment", "event_time", "publish_group", "after"):
            said = getattr(one, member) != getattr(default, member)
            assert getattr(source, member) == getattr(one if said else other, member)
        limits = [each for each in (one, other) if each.rate_limit or each.rate_limit_during_backlog]
        expected = limits[0] if limits else default
        assert source.rate_limit == expected.rate_limit
        assert source.rate_limit_during_backlog == expected.rate_limit_during_backlog


@settings(max_examples=examples(200), deadline=None)
@given(document=documents(), job=JOBS)
def test_whose_word_holds_is_told_of_each_setting_that_the_job_says(
    document: QueryControl | None, job: Job
) -> None:
    told = held(document, job)
    upper = document or QueryControl()
    for name, members in {
        "interval": ("interval_seconds",),
        "minPause": ("min_pause_seconds",),
        "batch.maxRecords": ("batch",),
    }.items():
        is_documents = any(getattr(upper, member) != getattr(QueryControl(), member) for member in members)
        expected = Origin.DOCUMENT if is_documents else Origin.OPTION if name in job.query else None
        assert told.get(("", name)) is expected
    for name, given_here in job.sources.items():
        source = upper.sources.get(name, SourceControl())
        for setting in given_here:
            members = MEMBERS[setting]
            is_documents = any(
                getattr(source, member) != getattr(SourceControl(), member) for member in members
            )
            assert (told.get((name, setting)) is Origin.OPTION) == (not is_documents)


MEMBERS = {
    "paused": ("paused",),
    "rateLimit.recordsPerSecond": ("rate_limit", "rate_limit_during_backlog"),
    "eventTime.maxFuture": ("max_future_seconds",),
    "eventTime.column": ("event_time",),
    "kafka.publishGroup": ("publish_group",),
}


def described(handle: int, topic: str, options: dict[str, str]) -> Descriptor:
    query = {"id": "i", "runId": "r", "name": "q"}
    members: dict[str, Any] = {"handle": handle, "checkpoint": "ck", "query": query, "format": "replay"}
    return Descriptor.parse(json.dumps({**members, "api": "v2", "options": {"path": f"/{topic}", **options}}))


@settings(max_examples=examples(60), deadline=None)
@given(
    query=OF_QUERY,
    options=st.tuples(OF_SOURCE, OF_SOURCE),
    arriving=st.lists(documents(), max_size=4),
    last=documents(),
    data=st.data(),
)
def test_what_holds_does_not_depend_on_the_order_of_arrival(
    query: dict[str, str],
    options: tuple[dict[str, str], dict[str, str]],
    arriving: list[QueryControl | None],
    last: QueryControl | None,
    data: st.DataObject,
) -> None:
    started = Started(Trigger(), True, settings=OfJob(query))
    run = a_run("q", MadeUpCheckpoint(), started=started)
    streams = [described(1, "a", options[0]), described(2, "b", options[1])]
    events = data.draw(st.permutations([*streams, *arriving]))
    for event in events:
        run.open(event) if isinstance(event, Descriptor) else run.take_control(event)
    run.take_control(last)
    expected = OfJob(query).read("q", {"a": options[0], "b": options[1]})
    assert run.settings.control == merged(last, expected)
    run.take_control(None)
    assert run.settings.control == merged(None, expected)


def test_where_document_and_job_would_wait_in_a_circle_the_documents_word_holds() -> None:
    document = QueryControl(sources={"a": SourceControl(after="b")})
    job = OfJob().read("q", {"b": {"headgate.after": "a", "headgate.paused": "true"}})
    control = merged(document, job)
    assert control is not None
    assert (control.sources["a"].after, control.sources["b"].after) == ("b", None)
    assert control.sources["b"].paused


def test_a_document_that_takes_a_setting_over_and_gives_it_back_is_told_in_log_and_metrics() -> None:
    properties = {"spark.headgate.minPause": "1s"}
    started = Started(Trigger(), True, settings=OfJob({}, properties))
    run = a_run("q", MadeUpCheckpoint(), started=started)
    run.open(described(1, "a", {"headgate.rateLimit.recordsPerSecond": "7"}))
    mine = {("", "minPause", "property"), ("a", "rateLimit.recordsPerSecond", "option")}
    assert set(run.settings.origins) == mine
    with capture_logs() as logs:
        run._planner()
    assert [log["holds"] for log in logs if log["event"] == "settings of the job"] == [
        [
            "headgate.minPause: 1s, by property spark.headgate.minPause",
            "headgate.rateLimit.recordsPerSecond of source a: 7, by option headgate.rateLimit.recordsPerSecond",
        ]
    ]
    limit = RateControl(records_per_second=1.0)
    with capture_logs() as logs:
        run.take_control(QueryControl(sources={"a": SourceControl(rate_limit=limit)}))
    assert set(run.settings.origins) == {
        ("", "minPause", "property"),
        ("a", "rateLimit.recordsPerSecond", "document"),
    }
    assert "headgate.rateLimit.recordsPerSecond of source a: the document's, not 7" in str(logs)
    run.take_control(None)
    assert set(run.settings.origins) == mine


def test_what_is_said_of_a_source_that_the_query_does_not_have_is_not_told_to_hold() -> None:
    properties = {"spark.headgate.queries.q.sources.aa.paused": "true"}
    started = Started(Trigger(), True, settings=OfJob({}, properties))
    run = a_run("q", MadeUpCheckpoint(), started=started)
    run.open(described(1, "a", {"headgate.paused": "true"}))
    with capture_logs() as logs:
        run._planner()
    told = {log["event"]: log for log in logs}
    assert "did you mean a?" in told["a setting is said of a source that the query does not have"]["problem"]
    assert told["settings of the job"]["holds"] == [
        "headgate.paused of source a: true, by option headgate.paused"
    ]


@pytest.mark.parametrize("document", [None, QueryControl()])
def test_a_query_of_which_nobody_says_anything_is_as_the_document_has_it(
    document: QueryControl | None,
) -> None:
    assert merged(document, OfJob().read("q", {"a": {}})) is document
