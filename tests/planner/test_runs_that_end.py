"""AvailableNow and Once: a trigger without a batch ends the run, so nothing may end it too early."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.gate import BASE_SECONDS
from headgate_spark.planner.model import (
    BatchReport,
    Fail,
    Hold,
    HybridMemory,
    ReadLimit,
    Source,
    Survey,
    TakeAll,
    TakeUpTo,
    Trigger,
    TriggerKind,
    Wait,
)
from headgate_spark.planner.state import QueryState
from support.asked import AskedPlanner
from support.examples import examples
from support.scripted_spark import ScriptedSpark, Stream, Uncounted

AVAILABLE_NOW = Trigger(TriggerKind.AVAILABLE_NOW)
ONCE = Trigger(TriggerKind.ONCE)
BATCH = BatchControl(initial_records=1000)


def run(
    *sources, trigger: Trigger = AVAILABLE_NOW, within: float = 36_000, memory=None, resumed=None, **settings
) -> ScriptedSpark:
    control = QueryControl(interval_seconds=60, batch=BATCH, **settings)
    spark = ScriptedSpark(*sources, control=control, trigger=trigger, memory=memory, resumed=resumed)
    spark.run_until(lambda: False, within=within)
    return spark


def a_stream(pending: int = 10_000, name: str = "flights") -> Stream:
    return Stream(name, {"0": pending, "1": pending})


def after(history: str) -> SourceControl:
    return SourceControl(after=history)


def test_everything_is_read_in_batches_and_then_the_run_ends():
    spark = run(a_stream(), a_stream(name="weather"))
    assert spark.ended == "idle"
    assert sum(spark.sizes) == 40_000
    assert spark.sizes[0] == 1000


def test_the_gate_is_open():
    spark = run(a_stream(), min_pause_seconds=100)
    assert spark.batches[-1].ended_at - spark.began == pytest.approx(sum(b.seconds for b in spark.batches))


def test_a_query_of_one_source_reads_in_its_first_trigger():
    spark = run(a_stream())
    assert spark.batches[0].planned_at == spark.began


def test_a_first_source_with_nothing_ends_nothing():
    spark = run(Stream("flights", {"0": 0}), a_stream(name="weather"))
    assert sum(spark.sizes) == 20_000


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize(
    "read_limits",
    [[ReadLimit.OFFSETS] * 2, [ReadLimit.OFFSETS] * 6, [ReadLimit.OFFSETS, ReadLimit.ROWS, ReadLimit.FILES]],
)
def test_no_source_has_the_first_batch_for_itself(read_limits, has_run):
    names = [f"s{i}" for i in range(len(read_limits))]
    sources = [
        a_stream(name=name) if read_limit is ReadLimit.OFFSETS else Uncounted(name, read_limit, [10] * 100)
        for name, read_limit in zip(names, read_limits, strict=True)
    ]
    resumed = {s.name: dict(s.start) for s in sources if isinstance(s, Stream)} if has_run else None
    spark = run(*sources, resumed=resumed)
    assert spark.ended == "idle"
    assert spark.batches[0].records.keys() == set(names)
    assert {name: source.pending for name, source in spark.sources.items()} == dict.fromkeys(names, 0)
    if set(read_limits) == {ReadLimit.OFFSETS}:
        read = list(spark.batches[0].records.values())
        assert max(read) - min(read) <= 1, "they have as much, so they are read alike"


@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES, ReadLimit.GATE])
@pytest.mark.parametrize("order", [("events", "flights"), ("flights", "events")])
def test_a_source_that_may_have_nothing_does_not_end_the_run_while_another_waits_for_tokens(
    order, read_limit
):
    streams = {"events": Uncounted("events", read_limit, [10] * 3), "flights": Stream("flights", {"0": 50})}
    limits = {"flights": SourceControl(rate_limit=RateControl(records_per_second=2))}
    spark = run(*(streams[name] for name in order), sources=limits)
    assert spark.ended == "idle"
    assert sum(spark.sizes) == 80


@pytest.mark.parametrize("backlog", [{}, {"backlog": True, "interval_during_backlog_seconds": 0}])
@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES])
@pytest.mark.parametrize("order", [("empty", "events", "other"), ("events", "empty", "other")])
def test_no_source_is_left_for_its_turn_behind_one_that_may_have_nothing(order, read_limit, backlog):
    counts = {"empty": 0, "events": 5, "other": 3}
    control = QueryControl(batch=BatchControl(initial_records=1, max_growth=1, max_records=1), **backlog)
    sources = [Uncounted(name, read_limit, [1] * counts[name]) for name in order]
    spark = ScriptedSpark(*sources, control=control, trigger=AVAILABLE_NOW)
    spark.run_until(lambda: spark.ended is not None)
    assert spark.ended == "idle"
    assert not any(source.pending for source in spark.sources.values())


@pytest.mark.parametrize("files", [[], [10] * 5])
@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES])
@pytest.mark.parametrize("order", [("events", "flights"), ("flights", "events")])
def test_one_batch_for_a_backlog_has_all_of_a_stream_beside_a_source_that_cannot_be_counted(
    order, read_limit, files
):
    streams = {"events": Uncounted("events", read_limit, list(files)), "flights": a_stream()}
    spark = run(*(streams[name] for name in order), backlog=True, interval_during_backlog_seconds=0)
    assert spark.ended == "idle"
    assert not any(source.pending for source in spark.sources.values())
    assert spark.batches[0].records["flights"] == 20_000


def test_a_source_at_its_frozen_end_is_finished():
    spark = run(a_stream())
    assert spark.source("flights").finished


def test_with_data_left_it_waits_for_tokens_instead_of_ending():
    limits = {"flights": SourceControl(rate_limit=RateControl(records_per_second=500))}
    spark = run(a_stream(), Stream("weather", {"0": 0}), sources=limits)
    assert spark.ended == "idle"
    assert sum(spark.sizes) == 20_000
    assert spark.now - spark.began >= (20_000 - 500 * 10) / 500


def test_a_stop_ends_the_wait_for_tokens():
    planner = AskedPlanner(QueryState("q", AVAILABLE_NOW, [Source("a", ReadLimit.OFFSETS)], now=0))
    limit = {"a": SourceControl(rate_limit=RateControl(records_per_second=0.01))}
    planner.control(QueryControl(sources=limit), 0)
    start = {"0": 0}

    def ask(now: float):
        answer = planner.admit("a", start, now)
        return planner.plan("a", {"a": {"0": 9}}, now) if isinstance(answer, Survey) else answer

    start = ask(0).ends
    planner.batch_ended(BatchReport({"a": 1}, 0.5, 0.5))
    assert ask(1) == Wait(1.0, HeldBy.RATE_LIMIT)
    planner.stop(2)
    assert ask(2).reason is HeldBy.STOP


def test_a_source_that_cannot_tell_its_latest_position_is_asked_again_as_soon_as_in_any_run():
    stream = a_stream()
    stream.reachable = False
    planner = AskedPlanner(QueryState("q", AVAILABLE_NOW, [Source("a", ReadLimit.OFFSETS)], now=0))
    planner.control(QueryControl(), 0)
    planner.admit("a", {"0": 0}, 0)
    assert planner.plan("a", {}, 0) == Wait(BASE_SECONDS, HeldBy.UNKNOWN)


def test_it_does_not_wait_for_one_source_while_another_reads():
    flights = a_stream()
    flights.reachable = False
    control = QueryControl(batch=BATCH)
    spark = ScriptedSpark(flights, a_stream(name="weather"), control=control, trigger=AVAILABLE_NOW)
    spark.sources["weather"].start = {"0": 9000, "1": 9000}
    spark.sources["weather"].opened = True
    spark.planner.admit("flights", flights.position, spark.now)
    spark.planner.plan("flights", {}, spark.now)
    spark.planner.admit("weather", spark.sources["weather"].position, spark.now)
    spark.planner.plan("weather", {}, spark.now)
    assert spark.round() == {"flights": Hold(HeldBy.UNKNOWN), "weather": TakeUpTo({"0": 9500, "1": 9500})}


def test_one_batch_for_a_backlog_is_one_batch_although_sources_are_seen_one_by_one():
    spark = run(a_stream(), a_stream(name="weather"), interval_during_backlog_seconds=0, backlog=True)
    assert spark.sizes == [40_000]


@settings(max_examples=examples(20))
@given(st.permutations("abcdef"), st.data(), st.booleans())
def test_one_batch_for_a_backlog_that_is_cut_is_shared_by_all_from_the_first_one_on(order, data, ends):
    order = order[: data.draw(st.integers(2, 6))]
    pending = {name: data.draw(st.integers(1000, 5000), label=name) for name in order}
    control = QueryControl(
        interval_during_backlog_seconds=0, backlog=True, batch=BatchControl(max_records=1000)
    )
    streams = [Stream(name, {"0": pending[name]}) for name in sorted(order)]
    spark = ScriptedSpark(*streams, control=control, trigger=AVAILABLE_NOW if ends else None, order=order)
    spark.run_until(lambda: not any(stream.pending for stream in streams))
    whole = sum(pending.values())
    for number, batch in enumerate(spark.batches[:-1], 1):
        assert batch.total == 1000
        for name, records in pending.items():
            read = sum(each.records.get(name, 0) for each in spark.batches[:number])
            assert read / records == pytest.approx(number * 1000 / whole, abs=0.01)


def test_a_source_that_can_tell_nothing_before_spark_asks_it_is_looked_at_then():
    """As where the checkpoint's log has a form that nobody knows."""
    sources = [Source(name, ReadLimit.OFFSETS) for name in "ab"]
    planner = AskedPlanner(QueryState("q", AVAILABLE_NOW, sources, now=0, resumed={}, unplanned=()))
    planner.control(QueryControl(), 0)
    assert planner.admit("a", {"0": 0}, 0) == Survey(("a", "b"))
    assert planner.plan("a", {"a": {"0": 5}}, 0) == TakeUpTo({"0": 5})
    assert planner.admit("b", {"0": 0}, 0) == Survey(("b",))
    assert planner.plan("b", {"b": {"0": 7}}, 0) == TakeUpTo({"0": 7})


def test_everything_paused_fails_with_a_remedy():
    spark = run(a_stream(), sources={"flights": SourceControl(paused=True)})
    assert spark.ended.startswith("query delays: every source is paused")
    assert "unpause" in spark.ended


def test_one_paused_source_does_not_keep_the_others_from_ending():
    spark = run(a_stream(), a_stream(name="weather"), sources={"weather": SourceControl(paused=True)})
    assert spark.ended == "idle"
    assert sum(spark.sizes) == 20_000


@pytest.mark.parametrize("order", [("flights", "weather"), ("weather", "flights")])
def test_what_is_left_of_a_paused_source_is_known_at_the_end(order):
    streams = {"flights": a_stream(), "weather": a_stream(name="weather")}
    spark = run(*(streams[name] for name in order), sources={"weather": SourceControl(paused=True)})
    assert spark.planner.left_by_pause == {"weather": 20_000}


def test_nothing_is_left_of_a_paused_source_that_has_nothing():
    sources = {name: SourceControl(paused=True) for name in ("weather", "events")}
    spark = run(
        a_stream(), Stream("weather", {"0": 0}), Uncounted("events", ReadLimit.FILES, [7]), sources=sources
    )
    assert spark.planner.left_by_pause == {"events": None}


@pytest.mark.parametrize("order", [("history", "live"), ("live", "history")])
def test_the_live_source_is_released_in_the_planning_that_finds_the_history_at_its_end(order):
    streams = {"history": a_stream(name="history"), "live": a_stream(500, "live")}
    spark = run(*(streams[name] for name in order), sources={"live": after("history")})
    assert spark.ended == "idle"
    assert sum(spark.sizes) == 21_000
    assert not any(b.records.get("history") and b.records.get("live") for b in spark.batches)


@pytest.mark.parametrize("order", [("history", "live"), ("live", "history")])
@pytest.mark.parametrize("read_limit", [ReadLimit.OFFSETS, ReadLimit.ROWS])
def test_an_empty_history_ends_nothing(order, read_limit):
    live = (
        a_stream(name="live") if read_limit is ReadLimit.OFFSETS else Uncounted("live", read_limit, [20_000])
    )
    streams = {"history": Stream("history", {"0": 0}), "live": live}
    spark = run(*(streams[name] for name in order), sources={"live": after("history")})
    assert (spark.ended, sum(spark.sizes)) == ("idle", 20_000)


@pytest.mark.parametrize("order", [("history", "live"), ("live", "history")])
def test_a_history_whose_end_was_not_seen_any_more_is_known_to_be_at_its_end(order):
    """The run before was stopped after the last batch of the history, before the planning that would have seen it."""
    past = Stream("history", {"0": 500}, start={"0": 500})
    streams = {"history": past, "live": a_stream(name="live")}
    memory = HybridMemory({"history": {"0": 500}}, frozenset())
    spark = run(
        *(streams[name] for name in order),
        sources={"live": after("history")},
        memory=memory,
        resumed={"history": {"0": 500}},
    )
    assert (spark.ended, sum(spark.sizes)) == ("idle", 20_000)


def test_a_history_that_cannot_be_looked_at_before_it_is_asked_fails_the_run_with_what_to_do():
    """As a V1 source, or one whose offset in the checkpoint cannot be read; and it is asked after the live source."""
    sources = [Source("live", ReadLimit.OFFSETS), Source("history", ReadLimit.OFFSETS)]
    planner = AskedPlanner(QueryState("q", AVAILABLE_NOW, sources, now=0, resumed={"history": {"0": 500}}))
    planner.control(QueryControl(sources={"live": after("history")}), 0)
    assert planner.admit("live", {"0": 0}, 0) == Survey(("live", "history"))
    assert planner.plan("live", {"live": {"0": 9}}, 0) == Hold(HeldBy.AFTER)
    assert planner.admit("history", {"0": 500}, 0) == Survey(("history",))
    answer = planner.plan("history", {"history": {"0": 500}}, 0)
    assert isinstance(answer, Fail)
    assert answer.message.endswith("run it again: where the history ends is known now")


def test_a_live_source_of_files_behind_an_empty_history_is_read():
    live, past = Uncounted("live", ReadLimit.FILES, [100]), Stream("history", {"0": 0})
    spark = run(live, past, sources={"live": after("history")})
    assert (spark.ended, sum(spark.sizes)) == ("idle", 100)


@pytest.mark.parametrize("order", [("history", "live"), ("live", "history")])
def test_a_query_that_has_run_before_it_was_told_of_its_history_goes_on(order):
    streams = {"history": Stream("history", {"0": 500}, start={"0": 500}), "live": a_stream(name="live")}
    resumed = {"history": {"0": 500}, "live": {"0": 0, "1": 0}}
    spark = run(*(streams[name] for name in order), sources={"live": after("history")}, resumed=resumed)
    assert (spark.ended, sum(spark.sizes)) == ("idle", 20_000)


def test_a_live_source_behind_a_paused_history_fails_the_run():
    spark = run(
        a_stream(name="history"),
        a_stream(name="live"),
        sources={"live": after("history"), "history": SourceControl(paused=True)},
    )
    assert "unpause history" in spark.ended


def test_a_live_source_behind_an_unknown_history_fails_the_run():
    spark = run(a_stream(name="live"), sources={"live": after("histroy")})
    assert "correct `after`" in spark.ended


@pytest.mark.parametrize("order", [("history", "live"), ("live", "history")])
@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES, ReadLimit.GATE])
@pytest.mark.parametrize("files", [[], [100] * 30])
def test_a_history_that_cannot_be_counted_is_read_in_one_batch(read_limit, files, order):
    streams = {"history": Uncounted("history", read_limit, files), "live": a_stream(500, "live")}
    spark = run(*(streams[name] for name in order), sources={"live": after("history")})
    assert spark.ended == "idle"
    assert sum(spark.sizes) == 1000 + sum(files)
    assert sum(1 for b in spark.batches if b.records.get("history")) == (1 if files else 0)


@pytest.mark.parametrize("order", list(permutations(("first", "second", "live"))))
@pytest.mark.parametrize("limits", list(product([ReadLimit.OFFSETS, ReadLimit.FILES], repeat=2)))
@pytest.mark.parametrize("files", [[], [100] * 30])
def test_a_chain_is_read_to_its_end_whatever_of_it_cannot_be_counted_and_has_nothing(order, limits, files):
    streams = {"live": a_stream(500, "live")}
    for name, limit in zip(("first", "second"), limits, strict=True):
        streams[name] = (
            Stream(name, {"0": sum(files)})
            if limit is ReadLimit.OFFSETS
            else Uncounted(name, limit, [*files])
        )
    chain = {"second": after("first"), "live": after("second")}
    spark = run(*(streams[name] for name in order), sources=chain)
    assert spark.ended == "idle"
    assert not any(source.pending for source in spark.sources.values())


def test_a_run_of_files_is_read_to_its_end():
    spark = run(Uncounted("events", ReadLimit.FILES, [100] * 50))
    assert (spark.ended, sum(spark.sizes)) == ("idle", 5000)


def test_once_is_one_batch_of_everything():
    spark = run(a_stream(10**6), trigger=ONCE)
    assert spark.answers == {"flights": TakeAll()}
    assert spark.sizes[0] == 2_000_000


def test_once_fails_when_everything_is_paused():
    planner = AskedPlanner(QueryState("q", ONCE, [Source("a", ReadLimit.GATE)], now=0))
    planner.control(QueryControl(sources={"a": SourceControl(paused=True)}), 0)
    assert isinstance(planner.admit("a", None, 0), Fail)


def test_a_query_that_is_not_listed_reads_everything_unseen():
    spark = ScriptedSpark(a_stream(10**6), a_stream(name="weather"), trigger=AVAILABLE_NOW)
    assert spark.round() == {"flights": TakeAll(), "weather": TakeAll()}
    assert spark.surveys == []


def test_of_a_source_that_was_read_nothing_is_left_though_nobody_can_count_it():
    spark = run(
        Uncounted("events", ReadLimit.FILES, [7]), a_stream(), sources={"flights": SourceControl(paused=True)}
    )
    assert spark.ended == "idle"
    assert spark.planner.left_by_pause == {"flights": 20_000}
