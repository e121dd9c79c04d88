"""Whatever people and data do: properties that no sequence of events may break.

Hypothesis makes up the events; a failing sequence is printed and can be pasted back as an `@example`.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.bucket import burst_of
from headgate_spark.planner.model import NOTHING_READ, Hold, TakeUpTo
from support.examples import examples
from support.planning_laws import RateLaw
from support.scripted_spark import BASE, ScriptedSpark, Stream

NAMES = ("flights", "weather", "airports")
PATIENCE = 3
"""Batches of a backlog after which a source with work must have been read, if nothing holds it."""

rates = st.none() | st.builds(
    RateControl,
    records_per_second=st.none() | st.floats(1, 1e5),
    records_per_checkpoint=st.none() | st.integers(1, 10**5),
    max_burst_seconds=st.floats(0, 20),
)
sources = st.builds(
    SourceControl,
    paused=st.sampled_from([False, False, False, True]),
    rate_limit=rates,
    rate_limit_during_backlog=rates,
)
controls = st.builds(
    QueryControl,
    interval_seconds=st.none() | st.floats(0.01, 20),
    interval_during_backlog_seconds=st.none() | st.just(0.0) | st.floats(20, 120),
    min_pause_seconds=st.sampled_from([0.0, 0.0, 2.0]),
    backlog=st.booleans(),
    batch=st.builds(
        BatchControl,
        initial_records=st.integers(10, 10**5),
        max_growth=st.floats(1.5, 8),
        max_records=st.integers(10, 10**7),
    ),
    sources=st.dictionaries(st.sampled_from(NAMES), sources),
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.sampled_from(NAMES), st.integers(1, 10**6)),
        st.tuples(st.just("control"), controls),
        st.tuples(st.just("run"), st.floats(0.1, 15)),
        st.tuples(st.just("lose"), st.sampled_from(NAMES)),
        st.tuples(st.just("find"), st.sampled_from(NAMES)),
        st.tuples(st.just("grow"), st.sampled_from(NAMES), st.integers(0, 1000)),
        st.tuples(st.just("shrink"), st.sampled_from(NAMES)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("clock back"), st.floats(0.1, 100)),
    ),
    max_size=20,
)


@dataclass
class Watched:
    """A run that is watched round by round."""

    spark: ScriptedSpark
    laws: dict[str, RateLaw] = field(default_factory=lambda: defaultdict(RateLaw))
    passed_over: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    new_partitions: int = 0
    """Records in partitions that have no position yet."""

    def round(self) -> None:
        now, before = self.spark.now, self.spark.figures
        pending = {s.name: s.pending for s in self.spark.sources.values()}
        starts = {name: sum(s.start.values()) for name, s in self.spark.sources.items()}
        batches = len(self.spark.batches)
        self.new_partitions = sum(
            n
            for s in self.spark.sources.values()
            for partition, n in s.latest.items()
            if partition not in s.start
        )
        answers = self.spark.round()
        for name, answer in answers.items():
            self._check_rate(name, answer, starts[name], now)
        if len(self.spark.batches) > batches:
            self._check_grant()
        if before.backlog and len(self.spark.batches) > batches:
            self._check_turns(answers, pending)
        self._check_counters(before)

    def _check_rate(self, name: str, answer, start: int, now: float) -> None:
        rate = self.spark.source(name).rate_limit_records_per_second
        planned = sum(answer.ends.values()) - start if isinstance(answer, TakeUpTo) else 0
        source = self.spark.controlled.sources.get(name, SourceControl())
        limit = source.rate_limit_during_backlog if self.spark.figures.backlog else source.rate_limit
        cycle = self.spark.figures.interval_seconds + self.spark.controlled.min_pause_seconds
        burst = burst_of(rate, cycle, limit.max_burst_seconds) if limit and rate else 0.0
        self.laws[name].check(rate, burst, planned, now)
        if limit is not None and limit.records_per_checkpoint is not None:
            assert planned <= limit.records_per_checkpoint

    def _check_grant(self) -> None:
        """A new partition is read whole: its source alone knows where it begins; nothing else passes the grant."""
        grant = self.spark.figures.grant_records
        assert grant <= self.spark.controlled.batch.max_records
        assert self.spark.batches[-1].total <= grant + self.new_partitions

    def _check_turns(self, answers, pending) -> None:
        for name, answer in answers.items():
            held = isinstance(answer, Hold) and answer.reason is not HeldBy.GRANT
            was_served = isinstance(answer, TakeUpTo)
            self.passed_over[name] = (
                0 if held or was_served or not pending[name] else self.passed_over[name] + 1
            )
            assert self.passed_over[name] <= PATIENCE

    def _check_counters(self, before) -> None:
        after = self.spark.figures
        for was, is_now in zip(before.sources, after.sources, strict=True):
            assert is_now.planned_records_total >= was.planned_records_total
            assert is_now.processed_records_total <= is_now.planned_records_total
            assert all(is_now.held_seconds[reason] >= seconds for reason, seconds in was.held_seconds.items())

    def restart(self) -> None:
        old = self.spark
        memory = old.saved[-1] if old.saved else NOTHING_READ
        self.spark = ScriptedSpark(*old.sources.values(), control=old.controlled, memory=memory, now=old.now)
        self.laws.clear()


def happen(run: Watched, event) -> None:
    match event:
        case "arrive", name, records:
            run.spark.sources[name].arrive(records)
        case "control", control:
            run.spark.control(control)
        case "run", seconds:
            until = run.spark.now + seconds
            while run.spark.now < until:
                run.round()
        case "lose" | "find" as what, name:
            run.spark.sources[name].reachable = what == "find"
        case "grow", name, records:
            stream = run.spark.sources[name]
            stream.latest[str(len(stream.latest))] = records
        case "shrink", name:
            stream = run.spark.sources[name]
            if len(stream.latest) > 1:
                stream.latest.popitem()
        case ("restart",):
            run.restart()
        case "clock back", seconds:
            run.spark.now -= seconds


def a_run() -> Watched:
    streams = (
        Stream(name, {str(partition): 100 * partition for partition in range(n + 1)})
        for n, name in enumerate(NAMES)
    )
    return Watched(ScriptedSpark(*streams, control=QueryControl()))


@settings(max_examples=examples(60), deadline=None)
@given(events)
def test_nothing_goes_back_or_too_far_no_rate_is_broken_and_nobody_starves(history):
    run = a_run()
    for event in history:
        happen(run, event)


@settings(max_examples=examples(30), deadline=None)
@given(events)
def test_whatever_happened_a_query_without_limits_reads_everything(history):
    run = a_run()
    for event in history:
        happen(run, event)
    for stream in run.spark.sources.values():
        stream.reachable = True
    run.spark.now += 200
    run.spark.control(QueryControl(interval_seconds=1, backlog=True))
    run.spark.run_until(lambda: not any(s.pending for s in run.spark.sources.values()), within=3600)
    assert not any(s.pending for s in run.spark.sources.values())
    run.spark.run_for(20 * BASE)
    assert [s.pending_records for s in run.spark.figures.sources] == [0, 0, 0]


@settings(max_examples=examples(15), deadline=None)
@given(
    rate=st.floats(20, 1e6),
    interval=st.sampled_from([0.1, 0.3, 1, 2.5, 10]),
    part=st.floats(0.05, 0.95),
    phase=st.floats(0, BASE),
    backlog=st.booleans(),
    sizes=st.lists(st.integers(0, 10**6), min_size=1, max_size=8),
)
def test_a_rate_is_reached_while_records_are_pending_and_batches_are_shorter_than_the_bucket_is_deep(
    rate, interval, part, phase, backlog, sizes
):
    limit = RateControl(records_per_second=rate)
    control = QueryControl(
        interval_seconds=interval,
        backlog=backlog,
        batch=BatchControl(initial_records=10**8),
        sources={"flights": SourceControl(rate_limit=limit, rate_limit_during_backlog=limit)},
    )
    stream = Stream("flights", {str(partition): size for partition, size in enumerate([10**9, *sizes])})
    spark = ScriptedSpark(
        stream,
        control=control,
        fixed_seconds=part * interval,
        records_per_second=1e12,
        now=1000 + phase,
        on_ticks=True,
    )
    spark.run_for(20 * max(1, interval))
    first, last = spark.batches[0], spark.batches[-1]
    reached = sum(batch.total for batch in spark.batches[1:])
    assert 0.99 * rate <= reached / (last.planned_at - first.planned_at) <= 1.01 * rate
    assert spark.now - last.planned_at < 2 * max(1, interval)


@pytest.mark.parametrize("phase", [0.0, 0.03, 0.07])
@pytest.mark.parametrize("interval", [0.25, 0.999, 1.005, 1.05, 1.09, 1.11, 2.55, 9.95])
def test_a_rate_is_reached_though_the_interval_ends_between_two_triggers(interval, phase):
    rate = 1000
    flights = SourceControl(rate_limit=RateControl(records_per_second=rate))
    control = QueryControl(interval_seconds=interval, sources={"flights": flights})
    spark = ScriptedSpark(
        Stream("flights", {"0": 10**9}),
        control=control,
        records_per_second=1e12,
        now=1000 + phase,
        on_ticks=True,
    )
    spark.run_for(100 * interval)
    first, last = spark.batches[0], spark.batches[-1]
    reached = sum(batch.total for batch in spark.batches[1:])
    assert reached >= 0.99 * rate * (last.planned_at - first.planned_at)
    law, burst = RateLaw(), burst_of(rate, interval, 10)
    for batch in spark.batches:
        law.check(rate, burst, batch.total, batch.planned_at)


@settings(max_examples=examples(30), deadline=None)
@given(
    fixed=st.floats(0.05, 4),
    speed=st.floats(1000, 10**6),
    target=st.floats(5, 120),
    initial=st.integers(10, 10**6),
)
def test_in_a_backlog_batches_of_a_linear_cost_come_to_take_the_interval(fixed, speed, target, initial):
    control = QueryControl(
        interval_seconds=5,
        interval_during_backlog_seconds=target,
        backlog=True,
        batch=BatchControl(initial_records=initial, max_records=10**12),
    )
    streams = (Stream(name, {"0": 10**12, "1": 10**11}) for name in NAMES)
    spark = ScriptedSpark(*streams, control=control, fixed_seconds=fixed, records_per_second=speed)
    spark.run_until(lambda: len(spark.batches) == 20)
    assert target / 2 <= spark.batches[-1].seconds <= 2 * target
