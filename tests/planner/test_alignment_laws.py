"""Whatever the records and their order: laws that alignment never breaks. Hypothesis makes up the logs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support.aligned_spark import Driver, Query, member
from support.event_logs import NO_TIME, FakeEventTimes, LateEventTimes, event_time

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


def floor(queries: list[Query]) -> int:
    """Return what the slowest split has reached: none of them is ever released."""
    times = (
        event_time(log, query.ends[source][split])
        for query in queries
        for source, splits in query.logs.items()
        for split, log in splits.items()
    )
    return min((time for time in times if time is not None), default=NO_TIME)


def latest_read(query: Query, before: Mapping[str, Mapping[str, int]]) -> int | None:
    """Return the latest record that was read since."""
    read = (
        time
        for source, splits in query.logs.items()
        for split, log in splits.items()
        for time in log[before[source][split] : query.ends[source][split]]
    )
    return max(read, default=None)


def everything(query):
    return {s: {p: len(log) for p, log in splits.items()} for s, splits in query.logs.items()}


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=40)
@given(st.lists(st.lists(logs, min_size=1, max_size=2), min_size=1, max_size=2), drifts, st.integers(1, 60))
def test_no_record_is_past_the_limit_and_nothing_goes_back(times, queries, drift, grant):
    driver = Driver(times)
    running = []
    for n, sources in enumerate(queries):
        named = {f"source-{n}-{m}": splits for m, splits in enumerate(sources)}
        running.append(driver.query(f"query-{n}", control(tuple(named), drift, HOUR, grant), **named))
    for _ in range(60):
        query = min(running, key=lambda q: q.spark.now)
        before = query.ends
        query.spark.round()
        latest = latest_read(query, before)
        assert latest is None or latest <= floor(running) + drift * 1000


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=40)
@given(st.lists(st.lists(logs, min_size=1, max_size=2), min_size=1, max_size=2), drifts, st.integers(1, 60))
def test_nobody_starves_when_splits_without_records_are_let_go(times, queries, drift, grant):
    driver = Driver(times)
    running = []
    for n, sources in enumerate(queries):
        named = {f"source-{n}-{m}": splits for m, splits in enumerate(sources)}
        running.append(driver.query(f"query-{n}", control(tuple(named), drift, 0.5, grant), **named))
    for _ in range(20):
        driver.run_for(60)
        if all(query.ends == everything(query) for query in running):
            break
    for query in running:
        assert query.ends == everything(query)


@settings(max_examples=30)
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
