"""A backfilled join writes what the streaming join writes, row by row."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from support.backfills import Batch, Event, Joining, closing

pytestmark = pytest.mark.spark

KINDS = ("inner", "left_outer", "left_semi")
Case = tuple[tuple[int, int], tuple[int, int], list[Batch]]
"""Time bounds, delays, and what arrives: first the history, then a batch at a time."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Inputs in which no live row is late: each is newer than the newest of its side before, less the delay."""
    earliest, latest = sorted(draw(st.tuples(st.integers(-4, 4), st.integers(-4, 4))))
    delays = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    sides = [draw(arrivals(delay)) for delay in delays]
    return (earliest, latest), delays, list(zip(*sides, strict=True))


@st.composite
def arrivals(draw: st.DrawFn, delay: int) -> list[list[Event]]:
    keys = st.sampled_from([0, 0, 1, 1, 2, 3, None])
    batches = [draw(st.lists(st.builds(Event, keys, st.integers(0, 19) | st.none()), max_size=30))]
    reached = newest(batches[0], 0)
    for _ in range(2):
        times = st.integers(reached - delay + 1, reached + 5) | st.none()
        batches.append(draw(st.lists(st.builds(Event, keys, times), max_size=10)))
        reached = newest(batches[-1], reached)
    return batches


def newest(events: list[Event], before: int) -> int:
    return max((event.time for event in events if event.time is not None), default=before)


def at(*times: int) -> list[Event]:
    return [Event(0, time) for time in times]


ALL_IN_ONE: Case = ((-2, 3), (1, 2), [(at(0, 1, 3, 5, 9), at(0, 2, 8)), (at(10), at(11, 12)), ([], at(13))])
PARTNERS_CAME_BEFORE: Case = ((-4, -2), (0, 0), [(at(2, 6, 9), at(0, 9, 9)), (at(12), at(13)), (at(16), [])])
NOTHING_ON_THE_RIGHT: Case = ((0, 4), (1, 1), [(at(0, 4, 9), []), ([], at(4, 10)), (at(12), at(14))])


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(how=st.sampled_from(KINDS), case=cases())
@example(how="left_outer", case=ALL_IN_ONE)
@example(how="left_outer", case=PARTNERS_CAME_BEFORE)
@example(how="left_outer", case=NOTHING_ON_THE_RIGHT)
@example(how="left_semi", case=ALL_IN_ONE)
def test_a_backfilled_join_writes_what_the_streaming_join_writes(
    spark: SparkSession, tmp_path: Path, how: str, case: Case
) -> None:
    (earliest, latest), (left_delay, right_delay), batches = case
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        joining = Joining(Path(folder), how, earliest, latest, left_delay, right_delay)
        joining.arrive(batches[:1])
        joined = joining.backfilled(spark)
        joining.arrive([*batches[1:], closing(batches)])
        found, expected = joining.compared(spark, joined)
        assert found == expected


@pytest.mark.parametrize("how", KINDS)
def test_the_history_alone_comes_to_what_the_streaming_join_has_made_of_it(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    joining = Joining(tmp_path, how, -2, 3, 1, 2)
    joining.arrive([([*at(0, 1, 5, 9, 20), Event(None, 3), Event(1, None)], at(0, 2, 8, 20))])
    joined = joining.backfilled(spark)
    by_the_batch = spark.read.parquet(f"{joining.checkpoint}.headgate/backfill/history").count()
    found, expected = joining.compared(spark, joined)
    assert found == expected
    assert found.total() == by_the_batch
