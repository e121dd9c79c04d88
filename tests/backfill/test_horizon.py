"""Which rows of a history are replayed: tables, and that no live row in time can have a partner among the others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate_spark.backfill.horizon import Bounds, Horizon, horizon, micros

SECOND = 1_000_000


def seconds(earliest: float, latest: float, left: float = 0, right: float = 0) -> Bounds:
    return Bounds(*(timedelta(seconds=span) for span in (earliest, latest, left, right)))


@pytest.mark.parametrize(
    ("newest", "bounds", "expected"),
    [
        ((100, 100), seconds(-10, 10), (90, 90)),
        ((100, 100), seconds(-10, 10, left=5, right=20), (70, 70)),
        ((100, 40), seconds(0, 10), (30, 40)),
        ((100, 100), seconds(20, 30), (70, 100)),
        ((100, 100), seconds(-30, -20), (100, 70)),
    ],
    ids=[
        "both ways",
        "the later watermark",
        "the side behind",
        "partners come later",
        "partners came before",
    ],
)
def test_the_horizon_is_the_watermark_less_what_partners_may_lie_apart(
    newest: tuple[int, int], bounds: Bounds, expected: tuple[int, int]
) -> None:
    left, right = (second * SECOND for second in newest)
    assert horizon(left, right, bounds) == Horizon(*(second * SECOND for second in expected))


@pytest.mark.parametrize("newest", [(None, 5), (5, None), (None, None)])
def test_a_side_without_rows_has_everything_replayed(newest: tuple[int | None, int | None]) -> None:
    assert horizon(*newest, seconds(0, 1)) == Horizon(None, None)


def test_the_watermark_is_rounded_down_as_spark_does() -> None:
    assert horizon(1_999, 1_999, seconds(0, 0)) == Horizon(1_000, 1_000)


spans = st.integers(-50, 50).map(lambda ms: timedelta(milliseconds=ms))
delays = st.integers(0, 50).map(lambda ms: timedelta(milliseconds=ms))
times = st.integers(0, 200_000)


@given(times, times, spans, spans, delays, delays, times, times)
def test_who_is_not_replayed_has_no_partner_that_comes_in_time(
    newest_left: int,
    newest_right: int,
    earliest: timedelta,
    latest: timedelta,
    left_delay: timedelta,
    right_delay: timedelta,
    left: int,
    right: int,
) -> None:
    assume(earliest <= latest)
    assume(micros(earliest) <= right - left <= micros(latest))
    since = horizon(newest_left, newest_right, Bounds(earliest, latest, left_delay, right_delay))
    assert since.left is not None
    assert since.right is not None
    left_is_in_time = left >= newest_left - micros(left_delay)
    right_is_in_time = right >= newest_right - micros(right_delay)
    if right_is_in_time and left <= newest_left:
        assert left >= since.left
    if left_is_in_time and right <= newest_right:
        assert right >= since.right
