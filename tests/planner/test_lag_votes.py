"""A query enters its backlog by its own lag, at the next trigger, and leaves it by the operator's rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate_contract import BacklogControl, QueryControl, ReentryControl, SourceControl
from headgate_contract.lag_votes import LagVoter
from headgate_spark.planner.lease import VOTE_LOOK_SECONDS
from support.scripted_spark import BASE, ScriptedSpark, Stream

PER_SECOND = 1000


def control(
    *,
    pending: int | None = None,
    lag: float | None = None,
    live: bool = False,
    normal: float = 60,
    **more: object,
) -> QueryControl:
    backlog = BacklogControl(pending_records=pending, watermark_lag_seconds=lag, live=live)
    return QueryControl(
        interval_seconds=normal,
        interval_during_backlog_seconds=120,
        sources={"flights": SourceControl(backlog=backlog)},
        **more,  # type: ignore[arg-type]
    )


def spark_with(declared: QueryControl, pending: int = 0, **more: object) -> tuple[ScriptedSpark, Stream]:
    stream = Stream("flights", {"0": pending})
    spark = ScriptedSpark(stream, control=declared, records_per_second=PER_SECOND, **more)  # type: ignore[arg-type]
    spark.planner.tell_time(0.0)
    return spark, stream


def test_its_first_batch_is_one_of_a_backlog_where_more_waits_than_may() -> None:
    spark, _ = spark_with(control(pending=1000), 10**6)
    spark.round()
    assert spark.figures.backlog
    assert spark.figures.interval_seconds == 120
    assert spark.figures.sources[0].backlog_votes == (LagVoter.PENDING_RECORDS,)


def test_exactly_the_threshold_is_none() -> None:
    spark, _ = spark_with(control(pending=1000), 1000)
    spark.round()
    assert not spark.figures.backlog


@pytest.mark.parametrize("normal", [3600, 5, 1])
def test_one_that_waits_for_its_gate_enters_a_backlog_without_waiting_for_it(normal: float) -> None:
    spark, stream = spark_with(
        control(pending=1000, normal=normal, reentry=ReentryControl(dwell_seconds=0)), 10
    )
    spark.run_until(lambda: len(spark.batches) == 1, within=20)
    spark.run_for(0.4)
    began = len(spark.batches)
    stream.arrive(100_000)
    came = spark.now
    looks = len(spark.surveys)
    spark.run_until(lambda: len(spark.batches) > began, within=60)
    planned_at = spark.batches[-1].planned_at
    assert planned_at - came <= VOTE_LOOK_SECONDS + BASE, "the next look at a closed gate"
    assert [at for at, _ in spark.surveys[looks:]] == [planned_at], (
        "it is planned in the trigger that has found it"
    )


@pytest.mark.parametrize("after", [200.1, 200.4, 200.7])
def test_an_idle_query_with_an_open_gate_finds_its_backlog_as_soon(after: float) -> None:
    spark, stream = spark_with(control(pending=1000, reentry=ReentryControl(dwell_seconds=0)), 10)
    spark.run_for(after)
    stream.arrive(100_000)
    came = spark.now
    spark.run_until(lambda: len(spark.batches) > 1, within=60)
    assert spark.figures.backlog
    assert spark.batches[-1].planned_at - came <= VOTE_LOOK_SECONDS + BASE


@pytest.mark.parametrize(
    ("arrives", "reentry", "asked_most"),
    [
        (1_500, ReentryControl(dwell_seconds=0), 30),
        (100_000, ReentryControl(allowed=False), 30),
        (100_000, ReentryControl(dwell_seconds=3600), 32),
    ],
    ids=["fewer than re-entry takes", "no re-entry", "the dwell has begun"],
)
def test_at_a_closed_gate_the_planner_is_asked_for_what_may_change_the_verdict(
    arrives: int, reentry: ReentryControl, asked_most: int
) -> None:
    """Records that come without crossing a threshold cost a look of the shim, not a planning."""
    spark, stream = spark_with(control(pending=1000, normal=3600, reentry=reentry), 10)
    spark.run_until(lambda: len(spark.batches) == 1, within=20)
    asked, began = spark.asked, spark.now
    spark.arrivals = lambda _: stream.arrive(round(arrives * (spark.now - began) / 30) - stream.pending)
    spark.run_for(30)
    assert len(spark.batches) == 1
    assert 25 <= spark.asked - asked <= asked_most


def test_the_vote_after_a_batch_that_ends_a_backlog_does_not_wait_for_a_look() -> None:
    spark, _ = spark_with(control(pending=1000), 10**5, fixed_seconds=0.01)
    spark.records_per_second = 10**8
    spark.run_until(lambda: len(spark.batches) == 1, within=20)
    assert spark.figures.backlog
    spark.round()
    assert not spark.figures.backlog


@pytest.mark.parametrize("voting", [{"flights"}, {"flights", "weather"}])
@pytest.mark.parametrize("order", [("flights", "weather"), ("weather", "flights")])
def test_what_a_closed_gate_finds_is_planned_with_all_sources_or_not_yet(
    voting: set[str], order: tuple[str, str]
) -> None:
    """A source that nobody has looked at for a second is looked at again before anything is planned."""
    backlog = BacklogControl(pending_records=1000)
    sources = {name: SourceControl(backlog=backlog if name in voting else None) for name in order}
    declared = QueryControl(
        interval_seconds=5,
        interval_during_backlog_seconds=0,
        reentry=ReentryControl(dwell_seconds=0),
        sources=sources,
    )
    streams = {name: Stream(name, {"0": 10}) for name in order}
    spark = ScriptedSpark(*streams.values(), control=declared, order=order)
    spark.run_until(lambda: len(spark.batches) == 1, within=20)
    spark.run_for(0.2)
    for stream in streams.values():
        stream.arrive(100_000)
    looks = len(spark.surveys)
    spark.run_until(lambda: len(spark.batches) > 1, within=20)
    assert spark.batches[-1].records == dict.fromkeys(order, 100_000), "one batch has all that is there"
    assert len(spark.surveys) - looks == (1 if len(voting) == 2 else 2)


def test_a_lag_is_in_force_at_the_trigger_in_which_it_crosses_its_threshold() -> None:
    at_once = ReentryControl(above_seconds=300, dwell_seconds=0)
    spark, stream = spark_with(control(lag=300, normal=3600, reentry=at_once), 10)
    spark.round()
    stream.arrive(5)
    spark.planner.read_to(spark.now)
    crossed = spark.now + 300
    spark.run_until(lambda: len(spark.batches) > 1, within=600)
    assert spark.figures.backlog
    late = spark.batches[-1].planned_at - crossed
    assert 0 < late <= 3 * BASE, "a lease ends when the lag may have crossed"


def test_a_lag_that_grows_while_a_batch_runs_is_told_while_it_runs() -> None:
    spark, stream = spark_with(control(lag=300, normal=3600), 10)
    spark.planner.read_to(spark.now)
    stream.arrive(5)
    spark.planner.trigger_begins((), spark.now)
    spark.ask("flights")
    assert not spark.planner.figures(spark.now).backlog
    later = spark.planner.figures(spark.now + 299), spark.planner.figures(spark.now + 301)
    assert [each.backlog for each in later] == [False, False], (
        "it has said no: that is re-entry, after a dwell"
    )
    assert spark.planner.figures(spark.now + 601).backlog is False
    assert spark.planner.figures(spark.now + 662).backlog


def stepped(seconds: float, lag: float = 10.0) -> tuple[ScriptedSpark, Callable[[float], bool]]:
    """A live query that always has records to read and is `lag` behind; then the clock of its machine is set.

    Returned is what lets time pass, and tells the verdict.
    """
    spark, stream = spark_with(control(lag=300, normal=1))
    spark.arrivals = lambda _: stream.arrive(5)

    def runs_for(seconds: float) -> bool:
        deadline = spark.now + seconds
        while spark.now < deadline:
            spark.planner.read_to(spark.now - lag)  # by the clock as it was
            spark.round()
        return spark.figures.backlog

    runs_for(2)
    spark.planner.tell_time(seconds)
    return spark, runs_for


@pytest.mark.parametrize(("lasts", "backlog"), [(55, False), (65, True)])
def test_a_clock_that_steps_forward_begins_a_backlog_only_where_it_stays_so_for_the_dwell(
    lasts: float, backlog: bool
) -> None:
    """All that it reads seems an hour old then. Nobody can tell that from records that are."""
    spark, runs_for = stepped(3600)
    assert runs_for(lasts) is backlog
    spark.planner.tell_time(0.0)
    assert runs_for(1) is False, "the clock is right again"


@pytest.mark.parametrize("lag", [10.0, 1000.0])
def test_a_clock_that_steps_back_ends_a_backlog_at_most_and_the_lag_counts_again_once_it_is_right(
    lag: float,
) -> None:
    spark, runs_for = stepped(-3600, lag)
    assert runs_for(120) is False, "a watermark in the future is a lag of 0"
    spark.planner.tell_time(0.0)
    assert runs_for(58) is False, "the dwell goes by a clock that nobody sets"
    assert runs_for(5) is (lag > 300)


@pytest.mark.parametrize("seconds", [3600, -100])
def test_a_clock_that_steps_in_the_midst_of_a_dwell_makes_it_neither_shorter_nor_longer(
    seconds: float,
) -> None:
    spark, stream = spark_with(control(lag=300, normal=1))
    spark.arrivals = lambda _: stream.arrive(5)
    spark.planner.read_to(spark.now)
    spark.run_for(2)
    spark.planner.read_to(spark.now - 1000)
    for set_to, until, backlog in ((0, 10, False), (seconds, 45, False), (seconds, 15, True)):
        spark.planner.tell_time(set_to)
        spark.run_for(until)
        assert spark.figures.backlog is backlog


def test_a_watermark_that_stands_still_because_nothing_comes_is_no_backlog() -> None:
    spark, _ = spark_with(control(lag=300), 10)
    spark.round()
    spark.planner.read_to(spark.now)
    spark.run_for(3600)
    assert not spark.figures.backlog


@pytest.mark.parametrize(
    ("of_several", "stands_still", "backlog"),
    [
        (True, "idle", False),
        (True, "paused", False),
        (True, "read", True),
        (False, "idle", True),
    ],
)
def test_a_watermark_that_may_wait_for_another_source_tells_nothing_of_this_one(
    of_several: bool, stands_still: str, backlog: bool
) -> None:
    declared = control(lag=300, normal=3600)
    weather = SourceControl(paused=stands_still == "paused")
    declared = replace(declared, sources={**declared.sources, "weather": weather})
    streams = Stream("flights", {"0": 10}), Stream("weather", {"0": 10})
    spark = ScriptedSpark(*streams, control=declared, records_per_second=PER_SECOND)
    spark.planner.tell_time(0.0)
    spark.arrivals = lambda _seconds: [
        stream.arrive(1) for stream in streams if stream.name == "flights" or stands_still == "read"
    ]
    spark.planner.read_to(spark.now, of_several=of_several)
    spark.run_for(1000)
    assert spark.figures.backlog is backlog


def test_what_came_in_during_a_batch_counts_when_it_ends() -> None:
    spark, stream = spark_with(control(pending=1000, normal=1), 50_000)
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * 100))
    spark.round()
    spark.run_until(lambda: not spark.figures.backlog, within=3600)
    assert spark.sizes[:2] == pytest.approx([50_000, 5_000], rel=0.01), (
        "the second batch is one of the backlog, too"
    )
    assert spark.batches[1].planned_at == pytest.approx(spark.batches[0].ended_at), "it has not waited"
    assert stream.pending <= 1000


def test_it_comes_back_by_re_entry_alone() -> None:
    again = ReentryControl(pending_records_above=5000, dwell_seconds=30)
    spark, stream = spark_with(control(pending=1000, normal=3600, reentry=again), 10)
    spark.run_for(5)
    stream.arrive(4000)
    spark.run_for(600)
    assert not spark.figures.backlog, "above the threshold, and not above that of re-entry"
    stream.arrive(2000)
    began, batches = spark.now, len(spark.batches)
    spark.run_until(lambda: len(spark.batches) > batches, within=600)
    assert spark.figures.backlog
    assert spark.batches[-1].planned_at - began == pytest.approx(31.5, abs=1.5), (
        "seen within three seconds, then 30"
    )


def test_never_is_until_the_next_run() -> None:
    never = ReentryControl(allowed=False)
    spark, stream = spark_with(control(pending=1000, normal=3600, reentry=never), 10)
    spark.run_for(5)
    stream.arrive(10**6)
    spark.run_for(1000)
    assert not spark.figures.backlog
    spark, _ = spark_with(control(pending=1000, normal=3600, reentry=never), 10**6)
    spark.round()
    assert spark.figures.backlog


def test_a_run_that_goes_on_with_earlier_votes_comes_back_by_re_entry() -> None:
    spark, _ = spark_with(control(pending=1000, live=True), 1500)
    spark.round()
    assert not spark.figures.backlog


def test_that_it_went_on_is_heard_once() -> None:
    spark, _ = spark_with(control(pending=1000), 10**7)
    spark.round()
    spark.control(control(pending=1000, live=True))
    spark.round()
    assert spark.figures.backlog


def test_a_threshold_that_is_taken_back_ends_its_backlog() -> None:
    spark, _ = spark_with(control(pending=1000), 10**7)
    spark.round()
    spark.control(control(pending=None))
    assert not spark.figures.backlog
    assert not spark.figures.votes or spark.figures.sources[0].backlog_votes == ()


def test_what_is_not_known_begins_no_backlog_and_ends_none() -> None:
    spark, stream = spark_with(control(pending=1000), 10**7)
    stream.reachable = False
    spark.run_for(5)
    assert not spark.figures.backlog
    stream.reachable = True
    spark.run_for(3)
    assert spark.figures.backlog
    stream.reachable = False
    spark.run_for(30)
    assert spark.figures.backlog


def test_a_paused_source_keeps_its_last_word() -> None:
    declared = control(pending=1000)
    spark, _ = spark_with(declared, 10**7)
    spark.round()
    paused = SourceControl(paused=True, backlog=declared.sources["flights"].backlog)
    spark.control(
        QueryControl(interval_seconds=60, interval_during_backlog_seconds=120, sources={"flights": paused})
    )
    spark.run_for(300)
    assert spark.figures.backlog
