"""Durations as people read them: one unit or two, however long they are."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.reconcile.times import duration_text, eta_text, measured, moment, seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3.0, "0s"),
        (0.0, "0s"),
        (0.0004, "0s"),
        (0.4404, "440ms"),
        (0.9996, "1s"),
        (4.24, "4.2s"),
        (9.96, "10s"),
        (75.3, "1m15s"),
        (3599.6, "1h"),
        (3723.456, "1h2m"),
        (3600.0 * 119 + 59.9, "119h1m"),
        (86_400.0 * 400, "9600h"),
        (float("inf"), "2562047h"),
    ],
)
def test_a_measured_time_has_two_units_at_most(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.floats(0, 1e9))
def test_what_is_shown_is_near_what_was_measured_and_never_longer_than_two_units(seconds: float) -> None:
    shown = measured(seconds)
    assert shown is not None
    assert abs(shown.total_seconds() - seconds) <= max(0.0005, seconds / 20) + 1e-9
    assert len(re.findall(r"[a-z]+", duration_text(seconds))) <= 2
    assert measured(shown.total_seconds()) == shown, "what has been rounded stays as it is"


@pytest.mark.parametrize("value", [-(2.0**53), 2.0**53])
def test_a_number_that_a_driver_makes_up_is_told_as_the_nearest_that_there_is(value: float) -> None:
    assert moment(value).year == (9999 if value > 0 else 1)
    assert duration_text((seconds(value) or timedelta(0)).total_seconds()) == (
        "2562047h" if value > 0 else "0s"
    )


def test_what_is_not_known_stays_so() -> None:
    assert measured(None) is None
    assert [eta_text(eta) for eta in (None, "never", 0.3, 3725.0)] == [None, "never", "0s", "1h2m"]
    assert measured(12.34) == timedelta(seconds=12)
