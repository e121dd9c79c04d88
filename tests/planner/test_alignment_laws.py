"""Whatever the records and their order: laws that alignment never breaks. Hypothesis makes up the logs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.model import Trigger, TriggerKind
from support.aligned_spark import Driver, Query, floor, member
from support.event_logs import NO_TIME, FakeEventTimes, LateEventTimes
from support.examples import examples

HOUR = 3600.0

steady = st.tuples(st.integers(0, 5000), st.integers(1, 900), st.integers(0, 60)).map(
    lambda s: [s[0] + n * s[1] for n in range(s[2])]
)
disordered = st.lists(st.integers(0, 20_000) | st.just(NO_TIME), max_size=40)
logs = st.lists(steady | disordered, min_size=1, max_size=3).map(
    lambda ls: {str(n): x for n, x in enumerate(ls)}
)
drifts = st.sampled_from([0.0, 0.3, 2.0, 30.0])


def control(names: tuple[str, ...], drift: float, idle_after: float, grant: int) -> QueryControl:
    return QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=5,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_growth=1, max_records=grant),
        sources={name: member(drift, idle_after=idle_after) for name in names},
    )


def told_drifts(query: Query) -> list[float]:
    """Return what is told of how far its sources are ahead."""
    standings = [source.alignment for source in query.spark.figures.sources]
    return [s.drift for s in standings if s is not None and s.drift is not None]


def run_to_the_end(driver):
    """Let twenty minutes pass, or fewer if everything has been read."""
    for _ in range(20):
        driver.run_for(60)
        if all(query.is_through for query in driver.queries.values()):
            break


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=examples(40))
@given(st.lists(st.lists(logs, min_size=1, max_size=2), min_size=1, max_size=2), drifts, st.integers(1, 60))
def test_no_record_is_past_the_limit_and_nothing_goes_back(times, queries, drift, grant):
    driver = Driver(times)
    running = []
    for n, sources in enumerate(queries):
        named = {f"source-{n}-{m}": partitions for m, partitions in enumerate(sources)}
        running.append(driver.query(f"query-{n}", control(tuple(named), drift, HOUR, grant), **named))
    for _ in range(60):
        query = min(running, key=lambda q: q.spark.now)
        before = query.ends
        query.spark.round()
        latest = query.latest_since(before)
        assert latest is None or latest <= floor(running) + drift * 1000
        assert all(0 <= told <= drift for told in told_drifts(query))


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=examples(40))
@given(st.lists(st.lists(logs, min_size=1, max_size=2), min_size=1, max_size=2), drifts, st.integers(1, 60))
def test_nobody_starves_when_partitions_without_records_are_let_go(times, queries, drift, grant):
    driver = Driver(times)
    running = []
    for n, sources in enumerate(queries):
        named = {f"source-{n}-{m}": partitions for m, partitions in enumerate(sources)}
        running.append(driver.query(f"query-{n}", control(tuple(named), drift, 0.5, grant), **named))
    run_to_the_end(driver)
    for query in running:
        assert query.is_through


named_logs = st.lists(logs, min_size=1, max_size=3).map(
    lambda every: {f"source-{n}": partitions for n, partitions in enumerate(every)}
)


@st.composite
def run_that_ends(draw):
    """Logs of up to three sources, how they are controlled, and where a checkpoint has them, if there is one."""
    sources = draw(named_logs)
    groups = {name: draw(st.sampled_from(["first", "first", "second", None])) for name in sources}
    drift, idle_after = draw(drifts), draw(st.sampled_from([0.5, HOUR]))
    rate = draw(st.sampled_from([None, None, 20.0]))
    members = {
        name: SourceControl()
        if group is None
        else member(drift, group=group, idle_after=idle_after, rate=rate)
        for name, group in groups.items()
    }
    if len(sources) > 1 and draw(st.booleans()):
        history, live = draw(st.permutations(list(sources)))[:2]
        members[live] = replace(members[live], after=history)
    resumed = draw(st.booleans())
    starts = {
        name: {partition: draw(st.integers(0, len(log))) for partition, log in partitions.items()}
        for name, partitions in sources.items()
    }
    return sources, members, starts if resumed else None


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=examples(60))
@given(run_that_ends(), st.integers(1, 60))
def test_a_run_that_ends_by_itself_reads_everything_and_ends(times, run, grant):
    sources, members, starts = run
    query = Driver(times).query(
        "query",
        replace(control((), 0.0, 0.5, grant), sources=members),
        Trigger(TriggerKind.AVAILABLE_NOW),
        starts=starts,
        resumed=starts is not None,
        **sources,
    )
    query.spark.run_until(lambda: query.spark.ended is not None)
    assert query.spark.ended == "idle"
    assert query.is_through


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=examples(20))
@given(
    logs,
    logs,
    st.sampled_from([0.3, 2.0, 30.0]),
    st.tuples(st.sampled_from([0.0, 1.0, 5.0]), st.sampled_from([1.0, 300.0])),
)
def test_queries_with_unlike_intervals_keep_each_other_going(times, flights, weather, drift, intervals):
    driver = Driver(times)
    running = [
        driver.query(
            name,
            replace(control((name,), drift, 0.5, 60), backlog=False, interval_seconds=interval),
            **{name: partitions},
        )
        for name, partitions, interval in zip(("one", "other"), (flights, weather), intervals, strict=True)
    ]
    run_to_the_end(driver)
    for query in running:
        assert query.is_through


@settings(max_examples=examples(30))
@given(logs, logs, st.floats(0.5, 50), st.integers(1, 60))
def test_a_batch_never_takes_more_than_the_tokens_and_the_grant(limited, free, rate, grant):
    driver = Driver()
    base = control(("limited", "free"), 1.0, 0.5, grant)
    limit = RateControl(records_per_second=rate)
    sources: dict[str, SourceControl] = dict(base.sources)
    sources["limited"] = SourceControl(
        alignment=sources["limited"].alignment, rate_limit=limit, rate_limit_during_backlog=limit
    )
    query = driver.query("query", base, limited=limited, free=free)
    query.spark.control(
        QueryControl(
            interval_seconds=1,
            interval_during_backlog_seconds=5,
            backlog=True,
            batch=base.batch,
            sources=sources,
        )
    )
    driver.run_for(60)
    began = query.spark.began
    for batch in query.spark.batches:
        assert batch.total <= grant
    planned = [(b.planned_at, b.records["limited"]) for b in query.spark.batches if "limited" in b.records]
    for at, _ in planned:
        total = sum(records for then, records in planned if then <= at)
        assert total <= rate * (at - began) + max(1.0, rate * 5) + 1
