"""What is read from a query's progress and plan."""

import json

import pytest

from headgate_spark.engine.batches import parse
from headgate_spark.engine.watermarks import watermarks, watermarks_below_union, watermarks_of


def progress(**members):
    base = {
        "batchId": 4,
        "durationMs": {"addBatch": 900, "triggerExecution": 1250},
        "eventTime": {"max": "2026-11-21T10:00:00.000Z", "watermark": "2026-11-21T09:59:50.000Z"},
        "stateOperators": [{"numRowsTotal": 10}, {"numRowsTotal": 5}],
        "sources": [{"numInputRows": 100}, {"numInputRows": 7}],
    }
    return json.dumps(base | members)


def test_a_batch_is_read():
    found = parse(progress())
    assert found is not None
    assert (found.batch_id, found.duration_seconds, found.source_rows, found.state_rows) == (
        4,
        1.25,
        (100, 7),
        15,
    )
    assert found.max_event_time - found.watermark == 10


def test_a_trigger_that_ran_no_batch_is_no_progress():
    assert parse(progress(durationMs={"latestOffset": 1, "triggerExecution": 1})) is None


def test_a_watermark_that_was_never_set_is_unknown():
    assert parse(progress(eventTime={"watermark": "1970-01-01T00:00:00.000Z"})).watermark is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("9999-12-31T23:59:59.999Z", 253_402_300_799.999),
        ("+10000-01-01T00:00:00.000Z", 253_402_300_800),
        ("+55840-11-08T22:13:20.000Z", 1_700_000_000_000),  # milliseconds in the place of seconds
        ("+294247-01-10T04:00:54.775Z", 9_223_372_036_854.775),  # the last moment that Spark knows
    ],
)
def test_a_moment_after_the_year_9999_is_read_as_spark_writes_it(text, seconds):
    found = parse(progress(eventTime={"max": text, "watermark": text}))
    assert (found.max_event_time, found.watermark) == (seconds, seconds)


def test_a_query_without_watermark_or_state_says_so():
    found = parse(progress(eventTime={}, stateOperators=[]))
    assert (found.watermark, found.max_event_time, found.state_rows) == (None, None, None)


def test_rows_that_one_store_does_not_count_are_unknown_of_the_query():
    assert parse(progress(stateOperators=[{"numRowsTotal": 10}, {}])).state_rows is None


DELAYS = (
    ("no watermark", "Project [a#1]\n+- Relation", None),
    ("one", "EventTimeWatermark 9f-1, ts#5: timestamp, 10 seconds\n+- x", 10.0),
    ("of an older Spark", "EventTimeWatermark ts#5: timestamp, 1 hours\n+- x", 3600.0),
    ("made of parts", "EventTimeWatermark ts#5: timestamp, 1 days 2 hours 0.5 seconds\n", 93600.5),
    ("the largest of two", "EventTimeWatermark a#1, 90 minutes\n:- EventTimeWatermark b#2, 2 hours", 7200.0),
    ("months count 31 days", "EventTimeWatermark a#1, 1 months", 31 * 86400.0),
)


@pytest.mark.parametrize(("plan", "seconds"), [row[1:] for row in DELAYS], ids=[row[0] for row in DELAYS])
def test_the_delay_of_the_watermark_is_read_from_the_plan(plan, seconds):
    assert watermarks_of(plan).delay == seconds


UNIONS = (
    (
        "one after the union",
        "EventTimeWatermark a#1, 1 hours\n+- Union false, false\n   :- Relation a\n   +- Relation b",
        0,
    ),
    (
        "one per branch",
        "Aggregate\n+- ~Union false, false\n   :- ~EventTimeWatermark a#1, 1 hours\n   :  +- Relation a\n"
        "   +- Project\n      +- ~EventTimeWatermark b#2, 1 hours\n         +- Relation b",
        2,
    ),
    (
        "one after a union, which is read twice",
        "~Union false, false\n:- Filter\n:  +- ~EventTimeWatermark 9f-1, a#1, 1 hours\n:     +- ~Union false, false\n"
        ":        +- Relation a\n+- ~EventTimeWatermark 9f-1, a#1, 1 hours\n   +- ~Union false, false\n"
        "      +- Relation a",
        1,
    ),
    (
        "beside the union",
        "Join\n:- Union false, false\n:  :- Relation a\n:  +- Relation b\n"
        "+- EventTimeWatermark c#3, 1 hours\n   +- Relation c",
        0,
    ),
)


def test_a_watermark_that_is_read_twice_is_one():
    plan = "Join Inner\n:- ~EventTimeWatermark 9f-1, a#1: timestamp, 1 hours\n:  +- a\n"
    twice = "+- ~EventTimeWatermark {}, a#3: timestamp, 1 hours\n   +- a"
    assert [watermarks(plan + twice.format(other)) for other in ("9f-1", "9f-2")] == [1, 2]


@pytest.mark.parametrize(("plan", "count"), [row[1:] for row in UNIONS], ids=[row[0] for row in UNIONS])
def test_watermarks_below_a_union_are_counted(plan, count):
    assert watermarks_below_union(plan) == count
