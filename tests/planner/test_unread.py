"""How far a source is behind by its unread records: idle partitions do not count, and one lagging partition does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BacklogControl, BatchControl, LiveControl, QueryControl, SourceControl
from headgate_contract.lag_votes import LagVoter
from headgate_spark.planner.lag_votes import Lag, LagVotes
from headgate_spark.planner.model import Position, ReadLimit, SourceFigures
from headgate_spark.planner.reporting import UNTOLD, Remark
from headgate_spark.planner.unread import Behind, First, behind, places_to_look_at
from support.scripted_spark import BASE, ScriptedSpark, Stream

S = 1000


def test_the_oldest_of_the_active_partitions_counts_and_is_named() -> None:
    known = {"a": [First(5, 90 * S)], "b": [First(2, 30 * S)], "idle": [First(7, 1 * S)]}
    found = behind({"a": 5, "b": 2}, {"a": 9, "b": 9, "idle": 7}, known)
    assert found == Behind(oldest=30.0, bound=30.0, partition="b")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, Behind()),
        ({"a": [First(5, 90 * S)]}, Behind(oldest=90.0, partition="a")),
        ({"a": [First(5, 90 * S)], "b": [First(1, 20 * S)]}, Behind(oldest=90.0, bound=20.0, partition="a")),
        ({"a": [First(4, 90 * S)], "b": [First(1, 20 * S)]}, Behind(bound=20.0)),
        ({"a": [First(6, 90 * S)], "b": [First(2, 20 * S)]}, Behind(oldest=20.0, partition="b")),
        (
            {"a": [First(5, None, is_none=True, until=9)], "b": [First(2, 20 * S)]},
            Behind(oldest=20.0, bound=20.0, partition="b"),
        ),
        (
            {"a": [First(5, None, is_none=True, until=8)], "b": [First(2, 20 * S)]},
            Behind(oldest=20.0, partition="b"),
        ),
        (
            {"a": [First(5, None, is_none=True, until=9)], "b": [First(2, None, is_none=True, until=9)]},
            Behind(is_all_read=True),
        ),
        (
            {"a": [First(5, None, until=9)], "b": [First(2, 20 * S)]},
            Behind(oldest=20.0, bound=20.0, partition="b"),
        ),
        ({"a": [First(5, None, until=9)], "b": [First(2, None, until=9)]}, Behind()),
    ],
    ids=[
        "nothing is known",
        "of one partition nothing is",
        "one was looked at before where it is now",
        "both were",
        "what was looked at is ahead of where it is",
        "only markers of transactions are left of one",
        "records may have come behind those",
        "only markers are left",
        "one has no timestamps",
        "none has",
    ],
)
def test_what_is_known_of_two_active_partitions(
    known: Mapping[str, Sequence[First]], expected: Behind
) -> None:
    assert behind({"a": 5, "b": 2}, {"a": 9, "b": 9}, known) == expected


@given(
    logs=st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=8).map(sorted), min_size=1, max_size=4),
    data=st.data(),
)
def test_whatever_was_looked_at_the_truth_lies_between_what_is_told(
    logs: list[list[int]], data: st.DataObject
) -> None:
    """Event times that rise with the offset; each partition is anywhere, and was looked at there and before."""
    partitions = {str(n): log for n, log in enumerate(logs)}
    at = {partition: data.draw(st.integers(0, len(log))) for partition, log in partitions.items()}
    ends = {partition: len(log) for partition, log in partitions.items()}
    active = {partition: place for partition, place in at.items() if place < ends[partition]}
    known = {
        partition: [
            First(n, partitions[partition][n] * S)
            for n in sorted(data.draw(st.sets(st.integers(0, at[partition]))))
        ]
        for partition in active
    }
    known = {
        partition: [first for first in firsts if first.offset < ends[partition]]
        for partition, firsts in known.items()
    }
    truth = min((partitions[partition][place] for partition, place in active.items()), default=None)
    found = behind(active, ends, known)
    assert found.is_all_read is (truth is None)
    if truth is not None:
        assert found.oldest is None or found.oldest >= truth
        assert found.bound is None or found.bound <= truth
        if all(
            known[partition] and known[partition][-1].offset == place for partition, place in active.items()
        ):
            assert found.oldest == found.bound == truth


def figures(pending: int | None = 5) -> SourceFigures:
    return SourceFigures(
        name="flights",
        read_limit=ReadLimit.OFFSETS,
        pending_records=pending,
        planned_records_total=0,
        processed_records_total=0,
        idle_seconds=0.0,
        phase=False,
        paused=False,
        finished=False,
        rate_limit_records_per_second=None,
    )


@pytest.mark.parametrize(
    ("own", "found", "lag"),
    [
        (50.0, None, 50.0),
        (None, None, None),
        (None, Behind(oldest=800.0, bound=800.0, partition="a"), 200.0),
        (None, Behind(oldest=990.0, bound=990.0, partition="a"), 10.0),
        (None, Behind(oldest=800.0, partition="a"), 200.0),
        (None, Behind(oldest=990.0, partition="a"), None),
        (None, Behind(oldest=990.0, bound=800.0, partition="a"), None),
        (None, Behind(bound=990.0), 10.0),
        (None, Behind(oldest=5000.0, bound=5000.0, partition="a"), 0.0),
        (50.0, Behind(oldest=800.0, bound=800.0, partition="a"), 200.0),
        (500.0, Behind(oldest=990.0, bound=990.0, partition="a"), 500.0),
        (50.0, Behind(oldest=990.0, bound=990.0, partition="a"), 50.0),
        (50.0, Behind(), None),
        (500.0, Behind(), 500.0),
        (500.0, Behind(is_all_read=True), 0.0),
    ],
    ids=[
        "a source that cannot be asked",
        "nor has a watermark",
        "one partition lags",
        "none does",
        "one lags, of others nothing is known",
        "one does not, of others nothing is known",
        "of one it is known only that it may",
        "none can, by what was seen before",
        "dated in the future, and not too far",
        "the watermark is live, one partition is not",
        "the partition is live, the watermark is not",
        "both are live",
        "the watermark is live, of the records nothing is known yet",
        "the watermark is not",
        "only markers are unread",
    ],
)
def test_a_lag_is_the_larger_of_both_and_unknown_while_it_could_be_on_either_side(
    own: float | None, found: Behind | None, lag: float | None
) -> None:
    assert Lag(figures(), own, found, 1000.0).of(LagVoter.WATERMARK_LAG, 100.0) == lag


@pytest.mark.parametrize(
    ("at_the_end_of_a_batch", "is_back"),
    [
        (Behind(oldest=640.0, bound=300.0, partition="b"), True),
        (Behind(oldest=640.0, bound=440.0, partition="b"), False),
    ],
    ids=["the partition that lags may still do", "no partition does any more"],
)
def test_a_partition_that_was_not_looked_at_yet_starts_no_dwell_over_that_it_could_have_lasted(
    at_the_end_of_a_batch: Behind, is_back: bool
) -> None:
    """One partition lags by 11 minutes, the other by 6: above the threshold of 5, and not above that of re-entry."""
    votes = LagVotes()
    backlog = BacklogControl(watermark_lag_seconds=300.0)
    votes.follow(QueryControl(sources={"flights": SourceControl(backlog=backlog)}))

    def cast(now: float, found: Behind) -> None:
        votes.cast({"flights": Lag(figures(), None, found, now)}, now)

    cast(0.0, Behind(oldest=0.0, bound=0.0, partition="a"))
    for seconds in range(0, 70, 10):
        lags = Behind(oldest=340.0 + seconds, bound=340.0 + seconds, partition="a")
        cast(1000.0 + seconds, lags if seconds != 30 else at_the_end_of_a_batch)
    cast(1070.0, Behind(oldest=410.0, bound=410.0, partition="a"))
    assert votes.backlog is is_back


def test_a_source_with_nothing_pending_is_not_behind_whatever_is_known() -> None:
    assert Lag(figures(0), None, Behind(), 1000.0).of(LagVoter.WATERMARK_LAG, 100.0) == 0.0


def test_it_is_looked_where_the_source_is_and_where_it_will_be_and_nowhere_twice() -> None:
    active, ends = {"a": 5, "b": 2}, {"a": 9, "b": 9, "c": 4}
    planned = {"a": 8, "b": 9, "c": 4}
    assert places_to_look_at(active, ends, planned, {}) == {"a": (5, 8), "b": (2,)}
    known = {"a": [First(5, S), First(8, 2 * S)], "b": [First(2, None, until=8)]}
    assert places_to_look_at(active, ends, planned, known) == {"b": (2,)}


@dataclass
class Looks:
    """Logs whose event time is that of each offset; they are looked at when the test says so."""

    times: Mapping[str, Sequence[float]]
    found: dict[str, list[First]] = field(default_factory=dict)
    wanted: list[tuple[Mapping[str, Sequence[int]], Position]] = field(default_factory=list)
    can_tell: bool = True

    def look(self, source: str, places: Mapping[str, Sequence[int]], ends: Position) -> None:
        self.wanted = [(dict(places), dict(ends))]

    def known(self, source: str) -> Mapping[str, Sequence[First]] | None:
        return self.found if self.can_tell else None

    def answer(self) -> None:
        for places, ends in self.wanted:
            for partition, offsets in places.items():
                firsts = [
                    First(n, round(self.times[partition][n] * S), until=ends[partition]) for n in offsets
                ]
                self.found.setdefault(partition, []).extend(firsts)
        self.wanted.clear()


def spark_with(looks: Looks, lag: float = 300.0, **settings: object) -> tuple[ScriptedSpark, Stream]:
    stream = Stream("flights", {partition: len(times) for partition, times in looks.times.items()})
    control = QueryControl(
        interval_seconds=60,
        interval_during_backlog_seconds=120,
        sources={"flights": SourceControl(backlog=BacklogControl(watermark_lag_seconds=lag))},
        **settings,  # type: ignore[arg-type]
    )
    spark = ScriptedSpark(stream, control=control, records_per_second=1, unread=looks)
    spark.planner.tell_time(0.0)
    return spark, stream


def test_one_lagging_partition_puts_a_query_without_watermark_into_backlog_and_no_batch_waits_for_it() -> (
    None
):
    looks = Looks({"0": [995.0] * 40, "1": [100.0] * 40})
    spark, _ = spark_with(looks)
    spark.planner.trigger_begins((), spark.now)
    spark.ask("flights")
    assert spark.planner.records_in_flight == 80, "the first batch is planned while nobody has looked yet"
    assert not spark.planner.figures(spark.now).backlog
    looks.answer()
    told = spark.planner.figures(spark.now)
    assert told.backlog
    assert told.sources[0].backlog_votes == (LagVoter.WATERMARK_LAG,)
    assert told.sources[0].unread_partition == "1"
    assert told.sources[0].unread_since == 100.0


def test_when_a_batch_ends_it_is_known_already_what_it_has_left_unread() -> None:
    looks = Looks({"0": [995.0] * 20 + [100.0] * 20})
    spark, _ = spark_with(looks, batch=BatchControl(initial_records=20, max_records=20))
    spark.arrivals = lambda _: looks.answer()  # what was asked for is there when the next trigger begins
    spark.round()
    assert not spark.figures.backlog
    spark.run_until(lambda: len(spark.batches) > 1, within=60)
    assert [first.offset for first in looks.found["0"]] == [0, 20]
    late = spark.batches[1].planned_at - spark.batches[0].ended_at
    assert late <= 2 * BASE, "as the second of a backlog, at once"


def test_a_source_whose_lag_nobody_can_tell_is_named_after_two_batches() -> None:
    untold, told = Looks({"0": [995.0] * 40}), Looks({"0": [995.0] * 40})
    untold.known = lambda _: None  # type: ignore[method-assign, assignment, return-value]
    for looks, expected in ((untold, {Remark(UNTOLD, "flights")}), (told, set())):
        spark, _ = spark_with(looks, batch=BatchControl(initial_records=10, max_records=10))
        spark.run_until(lambda spark=spark: len(spark.batches) == 1)
        assert set(spark.planner.remarks()) == set()
        spark.run_until(lambda spark=spark: len(spark.batches) == 2, within=300)
        assert set(spark.planner.remarks()) == expected
        assert set(spark.planner.remarks(has_event_times=True)) == set()
        spark.planner.read_to(990.0)
        assert set(spark.planner.remarks()) == set()


def test_in_real_time_mode_unread_records_tell_nothing_until_the_batch_has_ended() -> None:
    """Its position is that of the last commit: what is unread behind that was read long ago."""
    looks = Looks({"0": [1000.0] * 2000})
    spark, stream = spark_with(looks, lag=30.0, live=LiveControl(real_time=True, batch_seconds=60))
    stream.latest["0"], spark.records_per_second = 10, 1000
    told: list[SourceFigures] = []

    def arrive(seconds: float) -> None:
        stream.arrive(max(1, round(10 * seconds)))
        looks.answer()
        if seconds == 60:
            told.append(spark.figures.sources[0])

    spark.arrivals = arrive
    spark.run_until(lambda: bool(told), within=120)
    assert told[0].pending_records
    assert (told[0].unread_since, told[0].unread_partition, told[0].is_all_read) == (None, None, None)
    assert told[0].backlog_votes == ()


def test_while_it_cannot_tell_it_is_asked_for_what_is_unread_now_and_for_nothing_once_all_is_read() -> None:
    looks = Looks({"0": [100.0] * 40}, can_tell=False)
    spark, stream = spark_with(looks, batch=BatchControl(initial_records=30, max_records=30))
    spark.planner.trigger_begins((), spark.now)
    spark.ask("flights")
    assert looks.wanted == [({"0": (0, 30)}, {"0": 40})]
    assert not spark.figures.backlog
    looks.answer()
    looks.can_tell = True
    assert spark.figures.backlog
    looks.can_tell = False
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(10)
    assert looks.wanted == [({}, {"0": 40})], "what it could not be told of may be gone"
