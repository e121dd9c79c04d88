"""Durations: the form of CEL, to the digit."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api.duration import format_duration, parse_duration
from headgate_contract.durations import nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", timedelta(0)),
        ("250ms", timedelta(milliseconds=250)),
        ("0.5ms", timedelta(microseconds=500)),
        ("5s", timedelta(seconds=5)),
        ("1.5s", timedelta(seconds=1.5)),
        ("1h30m", timedelta(minutes=90)),
        ("1m1h", timedelta(minutes=61)),
        ("90m90m", timedelta(hours=3)),
        ("2562047h", timedelta(hours=2_562_047)),
    ],
)
def test_a_duration_is_a_sum_of_numbers_with_units(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5", "5 has no unit; write for example 250ms"),
        ("1.5", "1.5 has no unit"),
        ("-5s", "'-5s' is negative"),
        ("-5", "-5 has no unit"),
        ("", "'' is not a duration"),
        ("5d", "'5d' is not a duration"),
        ("5 s", "'5 s' is not a duration"),
        ("5s\n", "is not a duration"),
        ("\u0665s", "is not a duration"),
        ("2562047.1h", "must be at most 2562047h"),
        ("1" * 5000 + "s", "5001 characters of at most 32"),
    ],
)
def test_what_is_no_duration_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_duration(text)


def test_what_is_finer_than_a_nanosecond_is_cut_as_go_cuts_it() -> None:
    assert nanoseconds("9.9999999ms") == 9_999_999
    assert parse_duration("9.9999999ms") < timedelta(milliseconds=10)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(microseconds=1), "0.001ms"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=2), "48h"),
        (timedelta(hours=1, milliseconds=5), "1h0.005s"),
    ],
)
def test_a_duration_is_written_in_its_shortest_form(value: timedelta, text: str) -> None:
    assert format_duration(value) == text


@given(microseconds=st.integers(0, 2_562_047 * 3_600_000_000))
def test_what_is_written_reads_back_the_same(microseconds: int) -> None:
    value = timedelta(microseconds=microseconds)

    assert parse_duration(format_duration(value)) == value


def test_a_negative_duration_is_not_written() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        format_duration(timedelta(seconds=-1))
