"""Laws of alignment that hold whatever happens meanwhile: arrivals, new controls, sources and clocks out of reach."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import AlignmentControl, BatchControl, QueryControl, RateControl, SourceControl
from support.aligned_spark import Driver, Query, floor
from support.event_logs import NO_TIME, FakeEventTimes, LateEventTimes
from support.examples import examples

NEVER = 36_000.0
"""Seconds that no run takes: who is silent holds its group to the end."""

steady = st.tuples(st.integers(0, 5000), st.integers(1, 900), st.integers(1, 60)).map(
    lambda s: [s[0] + n * s[1] for n in range(s[2])]
)
disordered = st.tuples(
    st.integers(0, 3000), st.lists(st.integers(0, 20_000) | st.just(NO_TIME), max_size=40)
).map(lambda s: [s[0], *s[1]])
logs = st.lists(steady | disordered, min_size=1, max_size=3).map(
    lambda ls: {str(n): log for n, log in enumerate(ls)}
)
fleets = st.lists(st.lists(logs, min_size=1, max_size=2), min_size=1, max_size=3)
rates = st.sampled_from(
    [
        None,
        RateControl(records_per_second=0.7),
        RateControl(records_per_second=20),
        RateControl(records_per_checkpoint=3),
        RateControl(records_per_second=5, records_per_checkpoint=7),
    ]
)
HAPPENINGS = st.sampled_from([*["nothing"] * 9, "control", "arrival", "times", "source"])


@st.composite
def controls(draw: st.DrawFn, names: tuple[str, ...], drift: float) -> QueryControl:
    """Whatever a document may say of an aligned query."""
    grant = draw(st.sampled_from([1, 2, 7, 60, 1000]))
    return QueryControl(
        interval_seconds=draw(st.sampled_from([None, 1, 5])),
        interval_during_backlog_seconds=draw(st.sampled_from([0.0, None, 5, 30])),
        backlog=draw(st.booleans()),
        min_pause_seconds=draw(st.sampled_from([0, 0, 1])),
        batch=BatchControl(
            initial_records=grant,
            max_growth=draw(st.sampled_from([1, 4])),
            max_records=grant * draw(st.sampled_from([1, 100])),
        ),
        sources={
            name: SourceControl(
                alignment=AlignmentControl(
                    group="delays",
                    max_drift_seconds=drift,
                    idle_after_seconds=NEVER,
                    update_interval_seconds=draw(st.sampled_from([0.3, 1, 5])),
                ),
                rate_limit=draw(rates),
                rate_limit_during_backlog=draw(rates),
            )
            for name in names
        },
    )


def happens(data: st.DataObject, query: Query, drift: float) -> None:
    """Let something befall a query, or nothing."""
    match data.draw(HAPPENINGS):
        case "control":
            query.spark.control(data.draw(controls(tuple(query.logs), drift)))
        case "arrival":
            source = data.draw(st.sampled_from(sorted(query.logs)))
            partition = data.draw(st.sampled_from(sorted(query.logs[source])))
            newest = max(query.logs[source][partition])
            times = st.integers(newest, newest + 4000) | st.integers(0, 20_000)
            query.arrive(source, partition, *data.draw(st.lists(times, min_size=1, max_size=10)))
        case "times":
            query.times.reachable = not query.times.reachable
        case "source":
            source = query.spark.sources[data.draw(st.sampled_from(sorted(query.spark.sources)))]
            source.reachable = not source.reachable


def clear(query: Query, control: QueryControl) -> None:
    """Let everything be in reach again, and silent partitions go."""
    query.times.reachable = True
    for source in query.spark.sources.values():
        source.reachable = True
    sources = {
        name: replace(source, alignment=replace(source.alignment, idle_after_seconds=0.5))
        for name, source in control.sources.items()
        if source.alignment is not None
    }
    query.spark.control(replace(control, sources=sources))


@pytest.mark.parametrize("times", [FakeEventTimes, LateEventTimes])
@settings(max_examples=examples(10))
@given(fleets, st.sampled_from([0.0, 0.3, 2.0, 30.0]), st.data())
def test_no_record_is_past_the_limit_and_nobody_starves(times, fleet, drift, data):
    driver = Driver(times)
    running = []
    for n, sources in enumerate(fleet):
        named = {f"source-{n}-{m}": partitions for m, partitions in enumerate(sources)}
        control = data.draw(controls(tuple(named), drift))
        running.append(driver.query(f"query-{n}", control, **named))
    for _ in range(60):
        query = min(running, key=lambda q: q.spark.now)
        happens(data, query, drift)
        before = query.ends
        query.spark.round()
        latest = query.latest_since(before)
        assert latest is None or latest <= floor(running) + drift * 1000
    for query in running:
        clear(query, data.draw(controls(tuple(query.logs), drift)))
    driver.now = max(query.spark.now for query in running)
    for _ in range(60):
        driver.run_for(60)
        if all(query.is_through for query in running):
            break
    for query in running:
        assert query.is_through
