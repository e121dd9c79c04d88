"""A query goes live in real-time mode when it has caught up, and back to micro-batches when that cannot hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import (
    AlignmentControl,
    BacklogControl,
    BatchControl,
    LiveControl,
    QueryControl,
    RateControl,
    ReentryControl,
    SourceControl,
)
from headgate_contract.held import HeldBy
from headgate_spark.planner import real_time
from headgate_spark.planner.model import (
    GoLive,
    Hold,
    Position,
    QueryFigures,
    ReadLimit,
    Trigger,
    TriggerKind,
)
from headgate_spark.planner.real_time import FELL_BEHIND, RealTime
from headgate_spark.planner.unread import First
from support.scripted_spark import BASE, ScriptedSpark, Stream, Uncounted

PER_SECOND = 1000
BATCH = 60.0
SOURCES = ("delays", "flights", "gates")


def control(*, dwell: float = 60.0, **more: object) -> QueryControl:
    source = SourceControl(**more)  # type: ignore[arg-type]
    return QueryControl(
        interval_seconds=5,
        interval_during_backlog_seconds=120,
        live=LiveControl(real_time=True, batch_seconds=BATCH),
        reentry=ReentryControl(dwell_seconds=dwell),
        sources={"flights": source},
    )


def spark_with(declared: QueryControl, pending: int = 0, **more: object) -> tuple[ScriptedSpark, Stream]:
    stream = Stream("flights", {"0": pending})
    more = {"resumed": {"flights": {"0": 0}}} | more
    spark = ScriptedSpark(stream, control=declared, records_per_second=PER_SECOND, **more)  # type: ignore[arg-type]
    return spark, stream


def is_live(spark: ScriptedSpark) -> bool:
    return bool(spark.figures.real_time)


def test_one_that_has_nothing_to_read_goes_live_at_once() -> None:
    spark, _ = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=2 * BASE)
    assert is_live(spark)
    assert spark.batches == []
    assert spark.answers == {"flights": GoLive(BATCH)}


def test_the_first_batch_of_a_query_is_a_micro_batch() -> None:
    spark, _ = spark_with(control(), 1, resumed=None)
    spark.run_until(lambda: is_live(spark), within=10)
    assert spark.sizes == [1]


@pytest.mark.parametrize("names", [("flights",), ("delays", "flights"), SOURCES])
def test_a_new_query_with_nothing_to_read_goes_live_after_an_empty_micro_batch(names: Sequence[str]) -> None:
    streams = [Stream(name, {"0": 0}) for name in names]
    spark = ScriptedSpark(*streams, control=control())
    spark.run_until(lambda: is_live(spark), within=1)
    assert (spark.sizes, len(spark.live_batches)) == ([], 1)
    assert spark.figures.no_data_batches == 2, "the one of real-time mode is empty, too"
    streams[0].arrive(1)
    spark.run_for(BATCH)
    assert [batch.total for batch in spark.live_batches] == [0, 1]


def test_a_new_query_that_stays_in_micro_batches_begins_with_no_empty_one() -> None:
    for declared in (QueryControl(), control(paused=True)):
        spark, _ = spark_with(declared, resumed=None)
        spark.run_for(10)
        assert spark.figures.no_data_batches == 0


def test_it_catches_up_in_micro_batches_that_wait_for_no_interval() -> None:
    spark, stream = spark_with(replace(control(), interval_seconds=60), 20_000)
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND / 2))
    spark.run_until(lambda: is_live(spark), within=120)
    ends = [batch.ended_at for batch in spark.batches]
    assert [batch.planned_at for batch in spark.batches[1:]] == pytest.approx(ends[:-1])
    assert spark.batches[-1].seconds <= 5
    assert spark.live_batches[0].planned_at == pytest.approx(ends[-1])


def test_a_quick_batch_that_has_left_records_behind_does_not_show_that_it_has_caught_up() -> None:
    spark, _ = spark_with(replace(control(), batch=BatchControl(initial_records=100, max_records=100)), 1000)
    spark.run_until(lambda: is_live(spark), within=600)
    assert max(spark.sizes) == 100
    assert sum(spark.sizes) == 1000


def test_what_has_come_while_it_was_kept_from_it_is_read_in_micro_batches_first() -> None:
    spark, stream = spark_with(control(), 10)
    spark.run_until(lambda: is_live(spark), within=10)
    spark.control(control(paused=True))
    spark.run_for(BATCH)
    stream.arrive(20_000)
    spark.control(control())
    spark.run_until(lambda: is_live(spark), within=600)
    assert sum(spark.sizes) == 20_010


def test_it_does_not_go_live_while_a_source_cannot_be_asked_what_it_has() -> None:
    spark, streams = spark_of_several(("delays", "flights"))
    streams[1].reachable = False
    spark.run_for(10)
    assert spark.live_batches == []
    streams[1].reachable = True
    spark.run_until(lambda: is_live(spark), within=10)


def test_a_source_is_never_idle_while_a_batch_of_it_runs() -> None:
    """It reads what comes; how much is only known when the batch has ended."""
    spark, _ = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    idle: list[float | None] = []
    spark.arrivals = lambda seconds: idle.append(spark.source("flights").idle_seconds if seconds else None)
    spark.round()
    assert idle == [None, 0.0]


def test_a_query_in_backlog_does_not_go_live() -> None:
    declared = control(backlog=BacklogControl(pending_records=1000), dwell=0)
    spark, stream = spark_with(declared, 100_000)
    spark.round()
    assert spark.figures.backlog
    spark.run_until(lambda: is_live(spark), within=600)
    assert not spark.figures.backlog
    stream.arrive(1)
    assert sum(spark.sizes) == 100_000


def test_it_goes_back_when_a_vote_says_yes() -> None:
    declared = control(backlog=BacklogControl(pending_records=1000), dwell=0)
    spark, stream = spark_with(declared)
    spark.run_until(lambda: is_live(spark), within=10)
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND))
    spark.live_records_per_second = PER_SECOND * 0.9
    spark.run_until(lambda: spark.figures.backlog, within=10 * BATCH)
    assert spark.figures.real_time is False
    assert spark.answers != {"flights": GoLive(BATCH)}


def test_a_lag_does_not_vote_while_a_batch_of_it_runs_and_does_once_that_has_ended() -> None:
    """What it reads meanwhile is told at the end of the batch: until then its lag grows by a second a second."""
    spark, stream = spark_with(control(backlog=BacklogControl(watermark_lag_seconds=20), dwell=0))
    scraped: list[QueryFigures] = []

    def arrive(seconds: float) -> None:
        stream.arrive(max(1, round(100 * seconds)))
        if seconds == BATCH:
            scraped.append(spark.figures)

    spark.arrivals = arrive
    spark.planner.tell_time(0.0)
    spark.planner.read_to(spark.now)
    spark.run_until(lambda: is_live(spark), within=60)
    (at_its_end,) = scraped
    assert at_its_end.sources[0].pending_records
    assert not at_its_end.backlog
    spark.planner.read_to(spark.now)
    spark.round()
    assert is_live(spark)
    spark.round()
    assert spark.figures.backlog, "the batch has ended, and has brought nothing newer"
    assert not is_live(spark)


def test_it_goes_back_when_records_are_unread_that_were_there_when_its_batch_began() -> None:
    spark, stream = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND))
    spark.live_records_per_second = PER_SECOND / 3
    spark.run_until(lambda: not is_live(spark), within=10 * BATCH)
    behind = len(spark.live_batches)
    assert behind == 3, "one with nothing to read, one that leaves two thirds, one that takes half of these"
    spark.live_records_per_second = math.inf
    assert spark.figures.real_time_refused == FELL_BEHIND
    assert [FELL_BEHIND in remark.text for remark in spark.planner.remarks()] == [True]
    left = spark.live_batches[-1].ended_at
    spark.arrivals = lambda _: None
    spark.run_until(lambda: is_live(spark), within=600)
    spark.run_for(2 * BATCH)
    assert spark.figures.real_time_refused is None
    assert spark.live_batches[behind].planned_at - left >= 60, "the dwell"


def test_what_comes_at_the_end_of_a_batch_is_no_falling_behind() -> None:
    spark, stream = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    spark.live_records_per_second = 0
    stream.arrive(0)
    spark.arrivals = lambda _: stream.arrive(10**6) if stream.latest["0"] == 0 else None
    spark.round()
    assert is_live(spark), "none of them was there when its batch began"


def test_each_time_that_it_falls_behind_it_stays_away_for_longer() -> None:
    spark, stream = spark_with(control(dwell=30))
    spark.records_per_second = 1000 * PER_SECOND  # it has caught up long before
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND / 2))
    spark.live_records_per_second = PER_SECOND / 8
    begins: list[float] = []
    left: list[float] = []
    while len(begins) < 3:
        spark.run_until(lambda: is_live(spark), within=3600)
        begins.append(spark.live_batches[-1].planned_at)
        spark.run_until(lambda: not is_live(spark), within=3600)
        left.append(spark.live_batches[-1].ended_at)
    away = [begin - end for end, begin in zip(left, begins[1:], strict=False)]
    assert 30 <= away[0] < 60 <= away[1] < 120


def away_after_a_fall(spark: ScriptedSpark, stream: Stream) -> float:
    """For how long a query that is live stays away after it has fallen behind."""
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND))
    spark.live_records_per_second = PER_SECOND / 8
    spark.run_until(lambda: not is_live(spark), within=3600)
    left = spark.live_batches[-1].ended_at
    spark.arrivals, spark.live_records_per_second = lambda _: None, math.inf
    spark.run_until(lambda: is_live(spark), within=600)
    return spark.live_batches[-1].planned_at - left


def test_how_long_it_stays_away_has_a_bound_and_a_fall_of_long_ago_adds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(real_time, "LAST_RETRY_SECONDS", 90)
    live = LiveControl(real_time=True, batch_seconds=5)
    spark, stream = spark_with(replace(control(dwell=25), live=live))
    spark.run_until(lambda: is_live(spark), within=10)
    away = [away_after_a_fall(spark, stream) for _ in range(3)]
    spark.run_for(2 * 90)
    away.append(away_after_a_fall(spark, stream))
    for seconds, expected in zip(away, (25, 50, 90, 25), strict=True):
        assert expected <= seconds < expected + 10


def test_one_that_stays_away_for_no_time_may_fall_behind_as_often_as_it_likes() -> None:
    live = LiveControl(real_time=True, batch_seconds=5)
    spark, stream = spark_with(replace(control(dwell=0.0), live=live))
    spark.records_per_second = 1000 * PER_SECOND
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND))
    spark.live_records_per_second = PER_SECOND / 8
    for _ in range(1100):
        spark.run_until(lambda: is_live(spark), within=60)
        spark.run_until(lambda: not is_live(spark), within=60)
    assert spark.figures.real_time_refused == FELL_BEHIND


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"rate_limit": RateControl(records_per_second=10)}, "rate limit"),
        ({"alignment": AlignmentControl(group="air", max_drift_seconds=1)}, "aligned"),
        ({"paused": True}, "paused"),
    ],
)
def test_what_cannot_hold_there_keeps_it_in_micro_batches_and_is_told(
    said: dict[str, object], words: str
) -> None:
    spark, _ = spark_with(control(**said))
    spark.run_for(10)
    assert spark.figures.real_time is False
    assert words in (spark.figures.real_time_refused or "")
    assert "flights" in (spark.figures.real_time_refused or "")
    assert [words in remark.text for remark in spark.planner.remarks()] == [True]
    spark.control(control())
    spark.run_until(lambda: is_live(spark), within=10)
    assert spark.figures.real_time_refused is None


def test_a_run_that_ends_by_itself_does_not_go_live() -> None:
    spark, _ = spark_with(control(), 10, trigger=Trigger(TriggerKind.AVAILABLE_NOW))
    spark.run_for(10)
    assert spark.ended == "idle"
    assert "AvailableNow" in (spark.figures.real_time_refused or "")


def test_one_that_cannot_be_counted_does_not_go_live() -> None:
    spark = ScriptedSpark(Uncounted("flights", ReadLimit.FILES, [10]), control=control())
    spark.run_for(10)
    assert spark.live_batches == []
    assert "counted" in (spark.figures.real_time_refused or "")


def test_a_query_of_which_it_is_not_asked_says_nothing_of_it() -> None:
    spark, _ = spark_with(QueryControl())
    spark.run_for(10)
    assert spark.live_batches == []
    assert spark.figures.real_time is None
    assert spark.figures.real_time_refused is None


@pytest.mark.parametrize(
    ("passes", "retries"),
    [(False, [60, 120, 240]), (True, [5, 10, 20])],
    ids=["what the query is like", "slots that others hold"],
)
def test_a_refusal_is_answered_by_a_micro_batch_in_the_same_trigger_and_tried_again_later(
    passes: bool, retries: list[float]
) -> None:
    spark, stream = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    stream.arrive(10)
    spark.planner.trigger_begins(("flights",), spark.now)
    assert spark.ask("flights") == GoLive(BATCH)
    for retry in retries:
        spark.planner.real_time_refused("too few slots", spark.now, passes=passes)
        again = spark.ask("flights")
        assert not isinstance(again, GoLive)
        assert spark.figures.real_time_refused == "too few slots"
        assert spark.figures.real_time is False
        refused = spark.now
        assert next_live_batch(spark) - refused == pytest.approx(retry, abs=1)
        spark.planner.trigger_begins((), spark.now)
    spark.run_until(lambda: spark.figures.real_time_refused is None, within=600)


def next_live_batch(spark: ScriptedSpark) -> float:
    before = len(spark.live_batches)
    spark.run_until(lambda: len(spark.live_batches) > before, within=600)
    return spark.live_batches[-1].planned_at


def test_one_that_was_live_since_waits_after_a_refusal_as_after_the_first() -> None:
    spark, _ = spark_with(control())
    for _ in range(3):
        spark.run_until(lambda: is_live(spark), within=100)
        spark.run_for(3 * BATCH)
        spark.planner.real_time_refused("a batch has failed", spark.now, passes=False)
        refused = spark.now
        assert next_live_batch(spark) - refused == pytest.approx(60, abs=1)


def test_what_was_refused_is_tried_at_once_where_it_is_declared_anew() -> None:
    spark, _ = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    spark.planner.real_time_refused("too few slots", spark.now, passes=False)
    spark.run_for(10)
    assert not is_live(spark)
    spark.control(replace(control(), live=LiveControl(real_time=True, batch_seconds=30)))
    spark.run_until(lambda: is_live(spark), within=1)
    assert spark.answers == {"flights": GoLive(30)}


def test_a_query_that_is_refused_for_days_is_tried_again_each_hour() -> None:
    refused = RealTime(has_run=True)
    for _ in range(5000):
        refused.refused("too few slots", 0.0, passes=False)
    assert refused.changes_at(0.0) == 3600


def test_a_batch_that_has_not_come_to_pass_is_none() -> None:
    spark, stream = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    stream.arrive(10)
    spark.planner.trigger_begins((), spark.now)
    assert spark.figures.real_time is False


@pytest.mark.parametrize("lost", [("delays",), ("flights",)])
def test_where_one_source_was_not_told_none_is_read_so_and_the_query_has_not_fallen_behind(
    lost: tuple[str, ...],
) -> None:
    """An answer that is late is a hold, and the shim takes a query with one out of real-time mode."""
    order = ("delays", "flights")
    spark, streams = spark_of_several(order)
    spark.run_until(lambda: is_live(spark), within=10)
    for stream in streams:
        stream.arrive(20)
    spark.planner.trigger_begins(order, spark.now)
    assert spark.ask("delays") == GoLive(BATCH)
    spark.planner.trigger_goes_on([name for name in order if name not in lost], spark.now)
    after = spark.ask("flights")
    assert after == (GoLive(BATCH) if lost == ("flights",) else Hold(HeldBy.UNKNOWN))
    spark.planner.trigger_begins([name for name in order if name not in lost], spark.now)
    assert not is_live(spark)
    assert not isinstance(spark.ask("delays"), GoLive), "what has come meanwhile is read in a micro-batch"
    assert spark.figures.real_time_refused is None


def test_nothing_goes_live_while_it_is_stopped() -> None:
    spark, _ = spark_with(control())
    spark.planner.stop(spark.now)
    spark.run_for(10)
    assert spark.live_batches == []


def spark_of_several(
    order: Sequence[str], backlog: BacklogControl | None = None
) -> tuple[ScriptedSpark, list[Stream]]:
    streams = [Stream(name, {"0": 0, "1": 0}) for name in sorted(order)]
    source = SourceControl(backlog=backlog)
    spark = ScriptedSpark(
        *streams,
        control=replace(control(), sources=dict.fromkeys(order, source)),
        records_per_second=PER_SECOND,
        resumed={name: {"0": 0, "1": 0} for name in order},
        order=order,
    )
    return spark, streams


@given(
    order=st.permutations(SOURCES).flatmap(lambda each: st.sampled_from([each[:2], each])),
    threshold=st.sampled_from([None, 1000]),
)
def test_whatever_order_several_sources_are_asked_in_none_is_behind_before_it_was_asked(
    order: list[str], threshold: int | None
) -> None:
    spark, streams = spark_of_several(
        order, None if threshold is None else BacklogControl(pending_records=threshold)
    )
    spark.run_until(lambda: is_live(spark), within=10)

    def arrive(seconds: float) -> None:
        for stream in streams:
            stream.arrive(round(100 * seconds))

    spark.arrivals = arrive
    ends = spark.now + 3600
    while spark.now < ends:
        spark.round()
        assert is_live(spark)
    assert spark.sizes == []


@given(order=st.permutations(SOURCES), slow=st.sampled_from(SOURCES))
def test_one_of_several_sources_that_falls_behind_brings_the_query_back(order: list[str], slow: str) -> None:
    spark, streams = spark_of_several(order)
    spark.run_until(lambda: is_live(spark), within=10)
    (stream,) = (each for each in streams if each.name == slow)
    spark.arrivals = lambda seconds: stream.arrive(round(PER_SECOND * seconds))
    spark.live_records_per_second = PER_SECOND / 3
    spark.run_until(lambda: not is_live(spark), within=10 * BATCH)
    assert not is_live(spark)
    assert len(spark.live_batches) == (3 if order[0] == slow else 4), (
        "of one that is asked later it is told later"
    )


@dataclass
class OfTransactions(Stream):
    """A log that ends with the marker of a transaction. Real-time mode ends behind the last record, before it."""

    looks: dict[str, list[First]] = field(default_factory=dict)

    def read_on(self, records: float) -> int:
        self.latest = {partition: end - 1 for partition, end in self.latest.items()}
        read = super().read_on(records)
        self.latest = {partition: end + 1 for partition, end in self.latest.items()}
        return read

    def look(self, source: str, places: Mapping[str, Sequence[int]], ends: Position) -> None:
        for partition, offsets in places.items() if source == self.name else ():
            self.looks[partition] = [
                First(n, None, is_none=n == ends[partition] - 1, until=ends[partition]) for n in offsets
            ]

    def known(self, source: str) -> Mapping[str, Sequence[First]] | None:
        return self.looks if source == self.name else None


@pytest.mark.parametrize("order", [("flights",), ("flights", "delays"), ("delays", "flights")])
@pytest.mark.parametrize("can_tell", [True, False])
def test_the_marker_of_a_transaction_that_nothing_comes_behind_is_no_falling_behind(
    order: Sequence[str], can_tell: bool
) -> None:
    stream = OfTransactions("flights", {"0": 1, "1": 1})
    others = [Stream(name, {"0": 0}) for name in order if name != "flights"]
    spark = ScriptedSpark(
        stream,
        *others,
        control=control(),
        resumed={"flights": {"0": 0, "1": 0}} | {other.name: {"0": 0} for other in others},
        unread=stream if can_tell else None,  # type: ignore[arg-type]
        order=order,
    )
    spark.run_until(lambda: is_live(spark), within=10)
    stream.arrive(20)
    for _ in range(6):
        spark.round()
    assert [batch.records["flights"] for batch in spark.live_batches[:2]] == [0, 18]
    assert is_live(spark) is can_tell
    assert (spark.figures.real_time_refused != FELL_BEHIND) is can_tell


def test_a_record_that_is_left_alone_is_told_from_a_marker_once_it_was_looked_at() -> None:
    spark, stream = spark_with(control())
    spark.run_until(lambda: is_live(spark), within=10)
    stream.arrive(20)
    spark.live_records_per_second = 19 / BATCH
    spark.round()
    assert (stream.pending, is_live(spark)) == (1, True)
    spark.live_records_per_second = 0
    spark.round()
    spark.round()
    assert spark.figures.real_time_refused == FELL_BEHIND


@given(
    arriving=st.lists(st.integers(0, 3 * PER_SECOND), min_size=1, max_size=30),
    live_pace=st.integers(1, 3 * PER_SECOND),
    pending=st.integers(0, 10**6),
    threshold=st.sampled_from([None, 100, 10_000]),
)
def test_whatever_comes_each_record_is_read_once_and_counted(
    arriving: list[int], live_pace: int, pending: int, threshold: int | None
) -> None:
    backlog = None if threshold is None else BacklogControl(pending_records=threshold)
    spark, stream = spark_with(control(backlog=backlog, dwell=1), pending)
    spark.live_records_per_second = live_pace
    for rate in arriving:
        spark.arrivals = lambda seconds, rate=rate: stream.arrive(round(seconds * rate))
        spark.run_for(20)
    read = sum(spark.sizes) + sum(batch.total for batch in spark.live_batches)
    source = spark.source("flights")
    assert stream.start["0"] == read == source.processed_records_total == source.planned_records_total
    spark.arrivals = lambda _: None
    spark.run_until(lambda: stream.pending == 0, within=1e6)
    assert stream.pending == 0


DOCUMENTS: dict[str, QueryControl] = {
    "live so": control(dwell=1),
    "live otherwise": replace(control(dwell=1), live=LiveControl()),
    "in backlog": replace(control(dwell=1), backlog=True),
    "paused": control(dwell=1, paused=True),
    "limited": control(dwell=1, rate_limit=RateControl(records_per_second=PER_SECOND)),
}


@given(
    told=st.lists(st.tuples(st.sampled_from(sorted(DOCUMENTS)), st.floats(0, 40)), min_size=1, max_size=6),
    stops=st.booleans(),
)
def test_whatever_documents_come_in_the_midst_of_a_switch_each_record_is_read_once(
    told: list[tuple[str, float]], stops: bool
) -> None:
    spark, stream = spark_with(control(dwell=1), 5_000)
    spark.arrivals = lambda seconds: stream.arrive(round(seconds * PER_SECOND / 2))
    for name, seconds in told:
        spark.control(DOCUMENTS[name])
        spark.run_for(seconds)
    if stops:
        spark.planner.stop(spark.now)
        spark.run_until(lambda: spark.figures.sources[0].held_by is HeldBy.STOP, within=2 * BATCH)
        planned = len(spark.batches), len(spark.live_batches)
        spark.run_for(2 * BATCH)
        assert (len(spark.batches), len(spark.live_batches)) == planned, "nothing is planned after a stop"
    read = sum(spark.sizes) + sum(batch.total for batch in spark.live_batches)
    source = spark.source("flights")
    assert stream.start["0"] == read == source.processed_records_total == source.planned_records_total
