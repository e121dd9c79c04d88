"""What the shim tells of a query: how it begins, what it ran last, what it failed of."""

from __future__ import annotations

import json

import pytest

from headgate_spark.engine.queries import Started, begun, called, without_class
from headgate_spark.planner.model import Trigger, TriggerKind


def members(**given: str | int | None) -> dict[str, str]:
    """A beginning, as it is after its way over the socket."""
    usual = {
        "query": {"id": "11-22", "runId": "33-44", "name": "copy"},
        "id": "11-22",
        "runId": "33-44",
        "name": "copy",
        "trigger": "processingTime",
        "intervalMillis": 0,
        "plan": "WriteToMicroBatchDataSource",
    }
    found: dict[str, str] = json.loads(json.dumps(usual | given))
    return found


@pytest.mark.parametrize(
    ("trigger", "millis", "found"),
    [
        ("processingTime", 250, Trigger(TriggerKind.PROCESSING_TIME, 0.25)),
        ("processingTime", 0, Trigger(TriggerKind.PROCESSING_TIME, 0)),
        ("processingTime", 3_600_000, Trigger(TriggerKind.PROCESSING_TIME, 3600)),
        ("availableNow", None, Trigger(TriggerKind.AVAILABLE_NOW, 0)),
        ("once", None, Trigger(TriggerKind.ONCE, 0)),
    ],
)
def test_a_query_begins_with_the_trigger_that_its_job_gave_it(
    trigger: str, millis: int | None, found: Trigger
) -> None:
    started = begun(members(trigger=trigger, intervalMillis=millis), print)
    assert started.governed
    assert started.trigger == found


@pytest.mark.parametrize("trigger", ["continuous", "realTime", "ofALaterSpark"])
def test_one_whose_batches_spark_does_not_plan_is_not_governed(trigger: str) -> None:
    assert not begun(members(trigger=trigger, intervalMillis=None), print).governed


@pytest.mark.parametrize(
    ("told", "owner"),
    [
        ({"user": "ada", "session": "5f0c"}, ("ada", "5f0c")),
        ({"user": None, "session": None}, None),
        ({}, None),
    ],
)
def test_its_owner_is_the_user_and_session_of_spark_connect(
    told: dict[str, str], owner: tuple[str, str] | None
) -> None:
    assert begun(members(**told), print).owner == owner


@pytest.mark.parametrize(
    ("told", "resumed"), [({"resumed": True}, True), ({"resumed": False}, False), ({}, False)]
)
def test_it_may_have_been_running_before(told: dict[str, bool], resumed: bool) -> None:
    assert begun(members(**told), print).resumed is resumed


def seen(started: Started) -> tuple[float | None, int, int]:
    found = started.watermarks
    return (found.delay, found.count, found.of_branches)


def test_its_watermarks_are_those_of_its_plan() -> None:
    plan = (
        "Union\n:- EventTimeWatermark 9f-1, ts#5: timestamp, 10 seconds\n:  +- a\n"
        "+- EventTimeWatermark 9f-2, ts#6: timestamp, 5 seconds\n   +- b"
    )
    started = begun(members(plan=plan), print)
    assert seen(started) == (10.0, 2, 2)
    of_most = begun(members(plan=plan, watermarkPolicy="MAX"), print)
    assert seen(of_most) == (5.0, 2, 0)
    without = begun(members(), print)
    assert seen(without) == (None, 0, 0)


@pytest.mark.parametrize(("name", "said"), [("copy", "copy"), (None, "11-22"), ("", "11-22")])
def test_a_query_is_called_by_its_name_or_else_by_its_id(name: str | None, said: str) -> None:
    assert called(members(name=name)) == said
    assert begun(members(name=name), print).name == said


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("java.lang.IllegalStateException: the sink is full", "the sink is full"),
        ("a.B: c.D: no: more", "c.D: no: more"),
        ("java.lang.NullPointerException", "java.lang.NullPointerException"),
        ("java.lang.NullPointerException: ", ""),
        ("no class here: at all", "no class here: at all"),
        ("a.B:c", "a.B:c"),
        ("a.B: first line\nsecond: line", "first line\nsecond: line"),
        ("", ""),
    ],
)
def test_a_failure_is_told_without_the_name_of_its_class(failure: str, words: str) -> None:
    assert without_class(failure) == words


def test_a_query_has_failed_of_what_was_told_first() -> None:
    query = Started()
    assert (query.failure, query.causes) == (None, None)
    query.ended(json.dumps({"failure": "a.B: no room", "causes": "c.D: disk\ne.F: full"}))
    query.ended(json.dumps({"failure": "a.B: no room", "causes": ""}))
    query.ended(None)
    assert (query.failure, query.causes) == ("no room", "c.D: disk\ne.F: full")


def test_one_that_ends_without_a_failure_has_none() -> None:
    query = Started()
    query.ended(None)
    assert (query.failure, query.causes) == (None, None)


def test_what_is_known_of_its_batches_is_what_was_told_last() -> None:
    query = Started()
    assert query.last_progress is None
    for batch in ('{"batchId":0}', '{"batchId":1}'):
        query.last_progress = batch
    assert query.last_progress == '{"batchId":1}'


def test_a_query_is_stopped_by_the_id_of_its_run() -> None:
    stopped: list[str] = []
    begun(members(), stopped.append).stop()
    assert stopped == ["33-44"]
