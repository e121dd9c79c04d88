"""A backfilled join writes what the streaming join writes, row by row."""

from __future__ import annotations

import tempfile
from math import floor
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from laws.cover import audit_checkpoints
from pyspark.sql import SparkSession

from support.backfills import Batch, Event, Joining, closing
from support.examples import examples

pytestmark = pytest.mark.spark

KINDS = ("inner", "left_outer", "left_semi")
Case = tuple[tuple[int, int], tuple[int, int], list[Batch]]
"""Time bounds, delays, and what arrives: first the history, then a batch at a time."""


def made_up(seed: str) -> Case:
    """Inputs in which no live row is late: each is newer than the newest of its side before, less the delay.

    A query takes seconds, so few can be tried: each has many keys side by side, any of which may find a fault. What
    `hypothesis` draws first is the simplest there is, which finds none; so it draws no more than a seed.
    """
    random = Random(seed)
    earliest = random.randint(-4, 2)
    latest = earliest + random.randint(2, 6)
    delays = random.randint(0, 3), random.randint(0, 3)
    sides = [arrivals(random, delay) for delay in delays]
    return (earliest, latest), delays, list(zip(*sides, strict=True))


def arrivals(random: Random, delay: int) -> list[list[Event]]:
    """A history, and two batches that come later. Some times are no whole seconds, and some no whole milliseconds."""

    def event(first: int, last: int) -> Event:
        time = random.randint(first, last) + random.choice([0, 0, 0, 0.0005, 0.25, 0.9995])
        return Event(random.choice([*range(8), None]), random.choice([*[time] * 9, None]))

    batches = [[event(0, 19) for _ in range(120)]]
    reached = newest(batches[0], 0)
    for _ in range(2):
        begin = floor(reached) - delay + 1
        batches.append([event(begin, floor(reached) + 5) for _ in range(60)])
        reached = newest(batches[-1], reached)
    return batches


def newest(events: list[Event], before: float) -> float:
    return max((event.time for event in events if event.time is not None), default=before)


def at(*times: int) -> list[Event]:
    return [Event(0, time) for time in times]


ALL_IN_ONE: Case = ((-2, 3), (1, 2), [(at(0, 1, 3, 5, 9), at(0, 2, 8)), (at(10), at(11, 12)), ([], at(13))])
PARTNERS_CAME_BEFORE: Case = ((-4, -2), (0, 0), [(at(2, 6, 9), at(0, 9, 9)), (at(12), at(13)), (at(16), [])])
NOTHING_ON_THE_RIGHT: Case = ((0, 4), (1, 1), [(at(0, 4, 9), []), ([], at(4, 10)), (at(12), at(14))])


@pytest.mark.parametrize("how", KINDS)
@settings(
    max_examples=examples(1),
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 10**6))
def test_a_backfilled_join_writes_what_the_streaming_join_writes(
    spark: SparkSession, tmp_path: Path, how: str, seed: int
) -> None:
    writes_what_the_streaming_join_does(spark, tmp_path, how, made_up(f"{how} {seed}"))


@pytest.mark.parametrize(
    ("how", "case"),
    [
        ("left_outer", PARTNERS_CAME_BEFORE),
        ("left_outer", NOTHING_ON_THE_RIGHT),
        ("left_semi", ALL_IN_ONE),
    ],
    ids=["partners came before", "nothing on the right", "all in one"],
)
def test_so_it_does_where_it_is_not_plain(spark: SparkSession, tmp_path: Path, how: str, case: Case) -> None:
    writes_what_the_streaming_join_does(spark, tmp_path, how, case)


def writes_what_the_streaming_join_does(spark: SparkSession, tmp_path: Path, how: str, case: Case) -> None:
    (earliest, latest), (left_delay, right_delay), batches = case
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        joining = Joining(Path(folder), how, earliest, latest, left_delay, right_delay)
        joining.arrive(batches[:1])
        joined = joining.backfilled(spark)
        joining.arrive([*batches[1:], closing(batches)])
        found, expected = joining.compared(spark, joined)
        assert found == expected
        assert audit_checkpoints(Path(folder)) > 0, "the folder is gone when others are looked at"


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
