"""A query is planned by the same laws whoever Spark asks first, and whichever calls to the planner fail."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.model import Trigger
from support import planning_laws as laws
from support.aligned_spark import member
from support.examples import examples
from support.governed_by_script import BASE, GovernedQuery

COUNTS = st.integers(1, 12)
RANDOM = st.integers(0, 2**32).map(Random)
FAULTY = st.sampled_from([0.0, 0.05, 0.3])


def names(count: int) -> list[str]:
    return [f"s{i}" for i in range(count)]


def query(
    count: int,
    control: QueryControl,
    random: Random,
    *,
    records: int,
    faulty: float = 0.0,
    late: bool = True,
) -> GovernedQuery:
    latest = dict.fromkeys(names(count), records)
    return GovernedQuery(names(count), latest, control, random, faulty, late=late)


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


@settings(max_examples=examples(40))
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
    asked = query(count, QueryControl(interval_seconds=0.2), random, records=5000, faulty=faulty, late=False)
    asked.run_for(5)
    settled(asked)
    asked.run_for(5)
    assert set(asked.position.values()) == {5000}
    laws.what_is_booked_was_read(asked.planned, asked.triggers)


@st.composite
def endings(draw: st.DrawFn) -> list[tuple[float, str, int]]:
    """Draw when and how runs end: between batches, when some sources have been asked, or in a batch."""
    how = st.sampled_from(["between batches", "in mid-round", "in mid-batch"])
    return draw(st.lists(st.tuples(st.floats(0.1, 3), how, st.integers(0, 12)), max_size=3))


def end_runs(asked: GovernedQuery, ends: list[tuple[float, str, int]]) -> None:
    for seconds, how, count in ends:
        asked.run_for(seconds)
        if how == "in mid-round":
            asked.restart_in_mid_round(count)
        elif how == "in mid-batch":
            asked.restart_in_mid_batch()
        else:
            asked.restart()


@settings(max_examples=examples(60))
@given(COUNTS, RANDOM, FAULTY, endings())
def test_so_it_is_when_the_query_is_restarted(
    count: int, random: Random, faulty: float, ends: list[tuple[float, str, int]]
):
    control = QueryControl(interval_seconds=1, batch=BatchControl(initial_records=1000, max_records=1000))
    asked = query(count, control, random, records=10**7, faulty=faulty, late=False)
    end_runs(asked, ends)
    begun = len(asked.triggers)
    before = asked.planned
    asked.run_for(5)
    settled(asked)
    asked.run_for(2)
    laws.every_source_is_read(asked.triggers)
    while asked.triggers[-1].read:
        asked.trigger()
    since = {name: n - before.get(name, 0) for name, n in asked.planned.items()}
    laws.what_is_booked_was_read(since, asked.triggers[begun:])


@settings(max_examples=examples(30))
@given(COUNTS, RANDOM, FAULTY, endings(), st.sampled_from([300, 1000]))
def test_members_of_a_group_keep_their_limit_and_read_everything(
    count: int, random: Random, faulty: float, ends: list[tuple[float, str, int]], grant: int
):
    steps = {name: random.choice([10, 50, 200]) for name in names(count)}
    logs = {name: list(range(0, 10_000, step)) for name, step in steps.items()}
    control = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=5,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources=dict.fromkeys(logs, member(1.0, idle_after=3600)),
    )
    latest = {name: len(log) for name, log in logs.items()}
    asked = GovernedQuery(list(logs), latest, control, random, faulty, times=logs, late=False)
    end_runs(asked, ends)
    for _ in range(60):
        asked.run_for(10)
        asked.faulty = 0.0
        if asked.position == latest:
            break
    assert asked.position == latest
    laws.none_is_past_the_limit(asked.triggers, logs, 1000, dict.fromkeys(logs, 0))


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


@settings(max_examples=examples(10))
@given(COUNTS, RANDOM, st.floats(0, 20))
def test_the_jobs_own_trigger_keeps_the_grid_of_the_wall_clock_also_after_a_restart(
    count: int, random: Random, since: float
):
    interval, latest = 20.0, dict.fromkeys(names(count), 0)
    epoch = 80_000_000 * interval + since - 1000.0
    asked = GovernedQuery(
        names(count), latest, QueryControl(), random, job=Trigger(interval_seconds=interval), epoch=epoch
    )
    for _ in range(2):
        begun = len(asked.triggers)
        while len([trigger for trigger in asked.triggers[begun:] if trigger.read]) < 3:
            latest.update({name: n + 1 for name, n in latest.items()})
            asked.trigger()
        _, *regular = [trigger.at + epoch for trigger in asked.triggers[begun:] if trigger.read]
        assert all(at % interval <= 3 * BASE for at in regular), [at % interval for at in regular]
        asked.restart()
