"""What people ask for by annotations: read back what was written, and nothing out of nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api.annotations import (
    CHECKPOINT,
    PAUSED,
    checkpoint_requests,
    checkpoint_text,
    paused_sources,
    paused_text,
)

NAMES = st.text(st.characters(exclude_characters=",/", exclude_categories=["Z", "C"]), min_size=1, max_size=9)
MOMENTS = st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")

PAUSES = (
    ("", set()),
    ("q/a", {("q", "a")}),
    ("q/a, q/b ,r/a", {("q", "a"), ("q", "b"), ("r", "a")}),
    ("q", set()),
    ("q/a,,nonsense", {("q", "a")}),
)


@pytest.mark.parametrize(("text", "sources"), PAUSES, ids=[row[0] or "empty" for row in PAUSES])
def test_a_pause_names_queries_and_sources(text: str, sources: set[tuple[str, str]]) -> None:
    assert paused_sources({PAUSED: text}) == sources


def test_nothing_is_asked_for_without_annotations() -> None:
    assert paused_sources({}) == set()
    assert checkpoint_requests({}) == {}


def test_a_checkpoint_is_asked_of_all_queries_or_of_one() -> None:
    assert checkpoint_requests({CHECKPOINT: "08:00, delays/09:30,"}) == {"": "08:00", "delays": "09:30"}


@given(st.sets(st.tuples(NAMES, NAMES)))
def test_pauses_are_read_as_they_were_written(sources: set[tuple[str, str]]) -> None:
    assert paused_sources({PAUSED: paused_text(sources) or ""}) == sources


def test_the_last_pause_that_is_lifted_removes_the_annotation() -> None:
    assert paused_text(set()) is None


@given(st.dictionaries(st.just("") | NAMES, MOMENTS))
def test_requests_are_read_as_they_were_written(requests: dict[str, str]) -> None:
    assert checkpoint_requests({CHECKPOINT: checkpoint_text(requests)}) == requests


@given(st.text())
def test_no_text_is_a_reason_to_fail(text: str) -> None:
    paused_sources({PAUSED: text})
    checkpoint_requests({CHECKPOINT: text})
