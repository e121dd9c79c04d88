"""A query is planned by the same laws whoever Spark asks first, and whichever calls to the planner fail."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support import planning_laws as laws
from support.governed_by_script import GovernedQuery

COUNTS = st.integers(1, 12)
RANDOM = st.integers(0, 2**32).map(Random)
FAULTY = st.sampled_from([0.0, 0.05, 0.3])


def names(count: int) -> list[str]:
    return [f"s{i}" for i in range(count)]


def query(
    count: int, control: QueryControl, random: Random, *, records: int, faulty: float = 0.0
) -> GovernedQuery:
    return GovernedQuery(names(count), dict.fromkeys(names(count), records), control, random, faulty)


def settled(asked: GovernedQuery) -> None:
    """Let two triggers pass without a fault: then everything that was lost has been told."""
    asked.faulty = 0.0
    asked.trigger()
    asked.trigger()


@given(COUNTS, RANDOM, FAULTY)
def test_a_batch_reads_every_source_that_has_something(count: int, random: Random, faulty: float):
    control = QueryControl(interval_seconds=2, batch=BatchControl(initial_records=10_000, max_records=10_000))
    asked = query(count, control, random, records=10**7, faulty=faulty)
    asked.run_for(20)
    laws.every_source_is_read(asked.triggers)
    if not faulty:  # a batch that came late is not made up for, but the next one is in time
        laws.commits_are_apart(asked.triggers, 2)
        assert asked.batches >= 9


@given(COUNTS, RANDOM)
def test_a_backlog_is_one_batch_where_it_is_to_be(count: int, random: Random):
    control = QueryControl(interval_seconds=5, interval_during_backlog_seconds=0, backlog=True)
    asked = query(count, control, random, records=1000)
    asked.run_for(10)
    assert [dict(trigger.read) for trigger in asked.triggers if trigger.read] == [
        dict.fromkeys(names(count), 1000)
    ]


@given(COUNTS, RANDOM, FAULTY)
def test_rates_hold_and_no_token_is_lost(count: int, random: Random, faulty: float):
    limit = SourceControl(rate_limit=RateControl(records_per_second=100))
    control = QueryControl(interval_seconds=1, sources=dict.fromkeys(names(count), limit))
    asked = query(count, control, random, records=10**7, faulty=faulty)
    asked.run_for(20)
    laws.rates_hold(asked.triggers, 100, burst=110)
    settled(asked)
    begun = len(asked.triggers)
    asked.run_for(20)
    laws.no_token_is_lost(asked.triggers[begun:], 100)
    laws.rates_hold(asked.triggers, 100, burst=110)


@given(COUNTS, RANDOM, FAULTY)
def test_what_never_came_to_spark_is_not_counted_as_planned(count: int, random: Random, faulty: float):
    asked = query(count, QueryControl(interval_seconds=0.2), random, records=5000, faulty=faulty)
    asked.run_for(5)
    settled(asked)
    asked.run_for(5)
    assert set(asked.position.values()) == {5000}
    laws.what_is_booked_was_read(asked.planned, asked.triggers)


@settings(max_examples=40)
@given(COUNTS, RANDOM, FAULTY, st.lists(st.floats(0.1, 3), max_size=3))
def test_so_it_is_when_the_query_is_restarted(count: int, random: Random, faulty: float, after: list[float]):
    control = QueryControl(interval_seconds=1, batch=BatchControl(initial_records=1000, max_records=1000))
    asked = query(count, control, random, records=10**7, faulty=faulty)
    for seconds in after:
        asked.run_for(seconds)
        asked.restart()
    begun = len(asked.triggers)
    asked.run_for(5)
    settled(asked)
    asked.run_for(2)
    laws.every_source_is_read(asked.triggers)
    while asked.triggers[-1].read:
        asked.trigger()
    laws.what_is_booked_was_read(asked.planned, asked.triggers[begun:])


@given(COUNTS, RANDOM)
def test_a_query_with_nothing_to_read_is_left_alone(count: int, random: Random):
    asked = query(count, QueryControl(interval_seconds=1), random, records=10)
    asked.run_for(5)
    begun = len(asked.triggers)
    asked.run_for(30)
    assert sum(trigger.asked for trigger in asked.triggers[begun:]) <= 40 * count


@given(COUNTS, RANDOM, FAULTY)
def test_a_query_that_is_stopped_plans_nothing_more_and_comes_to_a_boundary(
    count: int, random: Random, faulty: float
):
    asked = query(count, QueryControl(interval_seconds=0.2), random, records=10**7, faulty=faulty)
    asked.run_for(2)
    (run,) = asked.governor.stop()
    begun = len(asked.triggers)
    asked.faulty = 0.0
    for _ in range(4):
        asked.trigger()
    assert run.at_boundary.is_set()
    assert not any(trigger.read for trigger in asked.triggers[begun:])
