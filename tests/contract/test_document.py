"""The control document: what is written can be read, and nothing that is found can hurt."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import (
    AlignmentControl,
    BatchControl,
    ControlDocument,
    EventTimeControl,
    Inbox,
    QueryControl,
    RateControl,
    Refusal,
    RefusalReason,
    SourceControl,
)
from headgate_contract.receiving import read, write

seconds = st.floats(min_value=0, max_value=1e9, allow_nan=False)
positive = st.floats(min_value=1e-3, max_value=1e9, allow_nan=False)
names = st.text(min_size=1, max_size=12)


def optional(strategy):
    return st.none() | strategy


rates = st.builds(
    RateControl,
    records_per_second=optional(positive),
    records_per_checkpoint=optional(st.integers(1, 10**12)),
    max_burst_seconds=seconds,
)
sources = st.builds(
    SourceControl,
    paused=st.booleans(),
    max_future_seconds=seconds,
    rate_limit=optional(rates),
    rate_limit_during_backlog=optional(rates),
    alignment=optional(
        st.builds(
            AlignmentControl,
            group=names,
            max_drift_seconds=seconds,
            update_interval_seconds=positive,
            idle_after_seconds=optional(seconds),
        )
    ),
    event_time=optional(st.builds(EventTimeControl, column=names, format=optional(names))),
)
waiting = st.builds(SourceControl, after=names.map("before-".__add__))  # never a listed one: no cycles
queries = st.builds(
    QueryControl,
    interval_seconds=optional(seconds),
    interval_during_backlog_seconds=optional(seconds),
    min_pause_seconds=seconds,
    backlog=st.booleans(),
    reason=optional(names),
    checkpoint_request=optional(names),
    batch=st.builds(
        BatchControl,
        target_seconds=positive,
        initial_records=st.integers(1, 10**9),
        max_growth=st.floats(1, 100),
        max_records=st.integers(1, 10**12),
    ),
    sources=st.dictionaries(names, sources | waiting, max_size=3),
)
documents = st.builds(
    ControlDocument,
    generation=st.integers(0, 10**12),
    application=names,
    grace_period_seconds=seconds,
    executor_instances=optional(st.integers(0, 10**4)),
    queries=st.dictionaries(names, queries, max_size=3),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(documents)
def test_what_is_written_is_read_back(document):
    assert read(write(document)) == document


@given(documents, st.dictionaries(st.text(min_size=1).map("x-".__add__), json_values, max_size=3))
def test_unknown_members_are_ignored(document, extra):
    members = json.loads(write(document))
    members |= extra
    for query in members.get("queries", {}).values():
        query.update(extra)
    assert read(json.dumps(members)) == document


@given(documents, st.data())
def test_a_truncated_document_is_refused_and_the_last_one_stays(document, data):
    text = write(document)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    inbox = Inbox().receive(text).receive(cut)
    assert inbox.document == document
    assert inbox.refusal is not None
    assert inbox.refusal.reason is RefusalReason.MALFORMED


@pytest.mark.parametrize("number", ["1e400", "1" + "0" * 400, "1" + "0" * 5000, "NaN", "-Infinity"])
@pytest.mark.parametrize("member", ["generation", "gracePeriodSeconds", "executorInstances"])
def test_a_number_that_no_reader_could_keep_is_refused(member, number):
    members = {"schemaVersion": '"1.0"', "generation": "1", member: number}
    outcome = read("{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}")
    assert isinstance(outcome, Refusal)


@given(st.text() | json_values.map(json.dumps))
def test_no_text_raises(text):
    outcome = read(text)
    assert isinstance(outcome, ControlDocument | Refusal)


@given(documents, st.integers(2, 10**30), st.integers(0, 9))
def test_a_newer_major_version_is_refused_and_the_last_one_stays(document, major, minor):
    newer = json.loads(write(document)) | {"schemaVersion": f"{major}.{minor}"}
    inbox = Inbox().receive(write(document)).receive(json.dumps(newer))
    assert inbox.document == document
    assert inbox.refusal is not None
    assert inbox.refusal.reason is RefusalReason.NEWER_VERSION


def test_a_newer_minor_version_is_read():
    members = json.loads(write(ControlDocument(generation=3))) | {"schemaVersion": "1.99"}
    assert read(json.dumps(members)) == ControlDocument(generation=3)


@given(documents)
def test_an_older_generation_is_refused_and_the_last_one_stays(document):
    newer = replace(document, generation=document.generation + 1)
    inbox = Inbox().receive(write(newer)).receive(write(document))
    assert inbox.document == newer
    assert inbox.refusal is not None
    assert inbox.refusal.reason is RefusalReason.OLDER_GENERATION


def test_a_missing_document_keeps_the_last_one_and_is_refused_once():
    inbox = Inbox().receive(write(ControlDocument(generation=1)))
    gone = inbox.receive(None)
    assert gone.document == ControlDocument(generation=1)
    assert gone.refusal is not None
    assert gone.refusal.reason is RefusalReason.MISSING
    assert gone.receive(None) is gone


def test_a_document_that_was_never_there_is_no_refusal():
    assert Inbox().receive(None).refusal is None


def test_a_good_document_clears_the_refusal():
    inbox = Inbox().receive("{").receive(write(ControlDocument(generation=1)))
    assert inbox.refusal is None


def test_the_same_bad_text_is_refused_once():
    inbox = Inbox().receive("{")
    assert inbox.receive("{") is inbox


WRONG = (
    ({"schemaVersion": "1.0"}, "generation: is missing"),
    ({"generation": 1}, "schemaVersion: expected a string"),
    ({"schemaVersion": 1, "generation": 1}, "schemaVersion: expected a string"),
    ({"schemaVersion": "1.0", "generation": "1"}, "generation: expected a whole number, got '1'"),
    ({"schemaVersion": "1.0", "generation": True}, "generation: expected a whole number, got True"),
    ({"schemaVersion": "1.0", "generation": -1}, "generation is -1; it must be at least 0"),
    (
        {"schemaVersion": "1.0", "generation": 2**53},
        "generation is 9007199254740992; it must be at most 9007199254740991",
    ),
    ({"schemaVersion": "1.0", "generation": 1, "queries": []}, "queries: expected an object, got []"),
    (
        {"schemaVersion": "1.0", "generation": 1, "queries": {"q": {"intervalSeconds": "5s"}}},
        "queries[q].intervalSeconds: expected a finite number, got '5s'",
    ),
    (
        {"schemaVersion": "1.0", "generation": 1, "queries": {"q": {"sources": {"s": {"rateLimit": {
            "recordsPerSecond": 0}}}}}},
        "queries[q].sources[s].rateLimit: recordsPerSecond is 0.0; it must be more than 0",
    ),
    (
        {"schemaVersion": "1.0", "generation": 1, "gracePeriodSeconds": 1e10},
        "gracePeriodSeconds is 10000000000.0; it must be at most 9223369200",
    ),
    (
        {"schemaVersion": "1.0", "generation": 1, "queries": {"q": {"sources": {"s": {"rateLimit": {
            "recordsPerSecond": 1e308}}}}}},
        "queries[q].sources[s].rateLimit: recordsPerSecond is 1e+308; it must be at most 1000000000000",
    ),
    (
        {"schemaVersion": "1.0", "generation": 1, "queries": {"q": {"sources": {"s": {"after": "s"}}}}},
        "queries[q]: sources: s after s: it would never start; name the source that holds the history",
    ),
    (
        {"schemaVersion": "1.0", "generation": 1, "queries": {"q": {"sources": {
            "live": {"after": "log"}, "log": {"after": "live"}, "other": {"after": "live"}}}}},
        "queries[q]: sources: live after log after live: none of them would ever start; let one start by itself",
    ),
    *(
        (
            {"schemaVersion": "1.0", "generation": 1, "queries": {"q": {"sources": {"s": {"publishGroup": blank}}}}},
            "queries[q].sources[s]: publishGroup is blank; name a consumer group, or leave it out to publish nothing",
        )
        for blank in ("", " \t")
    ),
)  # fmt: skip


@pytest.mark.parametrize(("members", "message"), WRONG, ids=[m for _, m in WRONG])
def test_a_wrong_member_is_named_by_its_path(members, message):
    outcome = read(json.dumps(members))
    assert isinstance(outcome, Refusal)
    assert outcome.reason is RefusalReason.INVALID
    assert message in outcome.message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(number):
    text = '{"schemaVersion":"1.0","generation":1,"gracePeriodSeconds":' + number + "}"
    outcome = read(text)
    assert isinstance(outcome, Refusal)
    assert "gracePeriodSeconds: expected a finite number" in outcome.message
