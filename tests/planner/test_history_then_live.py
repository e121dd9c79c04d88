"""`after` in a running query: the phase, the switch, restarts."""

import pytest

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.model import HybridMemory, ReadLimit
from headgate_spark.planner.reporting import RESTLESS
from support.scripted_spark import ScriptedSpark, Stream, Uncounted


def control(**after: str) -> QueryControl:
    return QueryControl(
        interval_seconds=5,
        interval_during_backlog_seconds=60,
        batch=BatchControl(initial_records=10_000),
        sources={name: SourceControl(after=history) for name, history in after.items()},
    )


def history(pending: int = 1_000_000) -> Stream:
    return Stream("history", {"0": pending})


def live(pending: int = 500, name: str = "live") -> Stream:
    return Stream(name, {"0": pending})


def told(spark: ScriptedSpark) -> dict[str, str | None]:
    return {remark.text: remark.source for remark in spark.planner.remarks()}


def phases(spark: ScriptedSpark) -> dict[str, bool]:
    return {s.name: s.phase for s in spark.figures.sources}


def test_the_live_source_is_held_until_the_history_has_been_read():
    past, present = history(), live()
    spark = ScriptedSpark(present, past, control=control(live="history"))
    spark.run_until(lambda: present.pending == 0)
    assert past.pending == 0
    first = next(b for b in spark.batches if b.records.get("live"))
    assert sum(b.records.get("history", 0) for b in spark.batches[: spark.batches.index(first)]) == 1_000_000


def test_while_the_live_source_waits_the_query_is_in_backlog_whatever_the_document_says():
    spark = ScriptedSpark(live(), history(), control=control(live="history"))
    assert spark.figures.backlog
    assert spark.figures.interval_seconds == 60
    assert phases(spark) == {"live": True, "history": True}
    spark.run_until(lambda: spark.sources["live"].pending == 0)
    assert not spark.figures.backlog
    assert phases(spark) == {"live": False, "history": False}


def test_what_arrives_in_the_history_later_is_ordinary_input():
    past = history(1000)
    spark = ScriptedSpark(live(), past, control=control(live="history"))
    spark.run_until(lambda: spark.sources["live"].pending == 0)
    past.arrive(50)
    spark.run_for(6)
    assert past.pending == 0
    assert not spark.source("history").phase


def test_the_end_is_kept_before_the_first_batch_and_the_switch_before_the_first_live_record():
    past, present = history(1000), live()
    spark = ScriptedSpark(present, past, control=control(live="history"))
    spark.run_until(lambda: past.pending == 0)
    assert spark.saved == [HybridMemory({"history": {"0": 1000}}, frozenset())]
    spark.run_until(lambda: present.pending == 0)
    assert spark.saved[-1].finished == {"history"}


def test_a_restart_goes_on_where_the_last_run_stopped():
    past, present = history(), live()
    spark = ScriptedSpark(present, past, control=control(live="history"))
    spark.run_until(lambda: len(spark.batches) == 2)
    past.arrive(10**7)
    again = ScriptedSpark(present, past, control=control(live="history"), memory=spark.saved[-1])
    again.run_until(lambda: bool(present.start["0"]))
    assert past.start["0"] < 10**7


def test_a_restart_after_the_switch_does_not_go_back():
    past, present = history(10**6), live()
    memory = HybridMemory({"history": {"0": 1000}}, frozenset({"history"}))
    spark = ScriptedSpark(present, past, control=control(live="history"), memory=memory)
    assert not spark.figures.backlog
    spark.run_until(lambda: bool(spark.batches))
    assert spark.batches[0].records["live"] > 0


def test_a_checkpoint_that_was_set_back_into_the_history_is_in_it_again():
    first = ScriptedSpark(live(), history(), control=control(live="history"))
    first.run_until(lambda: first.sources["live"].pending == 0)
    past, present = history(), live()
    past.start = {"0": 400_000}
    spark = ScriptedSpark(
        present,
        past,
        control=control(live="history"),
        memory=first.saved[-1],
        resumed={"live": {"0": 0}, "history": {"0": 400_000}},
    )
    assert phases(spark) == {"live": True, "history": True}
    spark.run_until(lambda: present.pending == 0)
    assert [name for batch in spark.batches for name, read in batch.records.items() if read][-1] == "live"
    assert all(not batch.records.get("live") for batch in spark.batches[:-1])
    assert spark.saved[-1] == first.saved[-1]


def test_the_middle_of_a_chain_is_not_passed_where_its_first_link_is_read_again():
    memory = HybridMemory({"a": {"0": 1000}, "b": {"0": 0}}, frozenset({"a", "b"}))
    streams = [Stream("a", {"0": 1000}, {"0": 10}), Stream("b", {"0": 0}), Stream("c", {"0": 5})]
    spark = ScriptedSpark(
        *streams,
        control=control(b="a", c="b"),
        memory=memory,
        resumed={"a": {"0": 10}, "b": {"0": 0}, "c": {"0": 0}},
    )
    spark.run_until(lambda: streams[2].pending == 0)
    assert not spark.batches[0].records.get("c")


def test_a_history_that_ends_before_its_end_now_is_at_its_end():
    past, present = Stream("history", {"0": 700}, {"0": 700}), live()
    spark = ScriptedSpark(
        present,
        past,
        control=control(live="history"),
        memory=HybridMemory({"history": {"0": 1000}}, frozenset({"history"})),
        resumed={"live": {"0": 0}, "history": {"0": 700}},
    )
    spark.run_for(1)
    assert present.pending == 0


def test_a_failed_save_plans_nothing():
    spark = ScriptedSpark(live(), history(), control=control(live="history"))
    spark.round()

    def full(memory: HybridMemory) -> None:
        raise OSError("disk full")

    spark.save = full
    with pytest.raises(OSError, match="disk full"):
        spark.round()
    assert spark.batches == []


def test_an_answer_that_a_failed_save_has_kept_back_is_undone_and_the_memory_is_kept_before_the_next():
    past, present = history(1000), live()
    spark = ScriptedSpark(present, past, control=control(live="history"))
    spark.round()

    def full(memory: HybridMemory) -> None:
        raise OSError("disk full")

    spark.save = full
    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            spark.round()
        spark.now += 0.1
    spark.save = spark.saved.append
    spark.run_until(lambda: bool(spark.batches))
    assert spark.saved == [HybridMemory({"history": {"0": 1000}}, frozenset())]
    assert spark.source("history").planned_records_total == sum(spark.sizes)


def test_a_chain_of_three_is_read_in_order():
    snapshot, log, present = live(2000, "snapshot"), live(3000, "log"), live()
    spark = ScriptedSpark(present, log, snapshot, control=control(log="snapshot", live="log"))
    spark.run_until(lambda: present.pending == 0)
    order = [
        name for batch in spark.batches for name in ("snapshot", "log", "live") if batch.records.get(name)
    ]
    assert order == ["snapshot", "log", "live"]


def test_a_source_that_waits_is_never_idle_and_its_pending_records_are_seen():
    spark = ScriptedSpark(live(), history(), control=control(live="history"), records_per_second=100)
    spark.run_for(150)
    assert spark.source("live").held_by is HeldBy.AFTER
    assert spark.source("live").idle_seconds == 0
    assert spark.source("live").pending_records == 500


@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES, ReadLimit.GATE])
def test_a_history_that_cannot_be_counted_ends_when_it_has_nothing_more(read_limit):
    past, present = Uncounted("history", read_limit, [5000] * 20), live()
    spark = ScriptedSpark(present, past, control=control(live="history"))
    spark.run_until(lambda: present.pending == 0, within=600)
    assert past.pending == 0
    assert all(batch.records.get("history", 0) == 0 for batch in spark.batches if batch.records.get("live"))


def test_an_empty_file_is_not_the_end_of_a_history():
    past, present = Uncounted("history", ReadLimit.FILES, [100, 0, 0, 0, 0, 100]), live()
    spark = ScriptedSpark(present, past, live(10**6, "other"), control=control(live="history"))
    spark.run_until(lambda: present.pending == 0, within=600)
    assert past.pending == 0
    assert not any(b.records.get("history") and b.records.get("live") for b in spark.batches)


def test_a_history_without_counts_ends_although_another_source_never_rests():
    past, present, busy = Uncounted("history", ReadLimit.GATE, [100]), live(), live(10**9, "busy")
    spark = ScriptedSpark(present, past, busy, control=control(live="history"))
    spark.run_until(lambda: present.pending == 0, within=3600)
    assert busy.pending > 0


def test_taking_the_chain_out_of_the_document_lets_the_source_go():
    spark = ScriptedSpark(live(), history(), control=control(live="history"))
    spark.run_until(lambda: len(spark.batches) == 1)
    spark.control(control())
    assert not spark.figures.backlog
    spark.run_until(lambda: len(spark.batches) == 2)
    assert spark.batches[1].records["live"] > 0


@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.GATE])
def test_a_history_that_never_comes_to_rest_is_named(read_limit):
    past, present = Uncounted("history", read_limit, [100]), live()
    spark = ScriptedSpark(present, past, control=control(live="history"))
    assert RESTLESS not in told(spark)
    for _ in range(12):
        spark.run_until(lambda: past.pending == 0)
        past.arrive(100)
    assert told(spark)[RESTLESS] == "history"
    spark.run_until(lambda: present.pending == 0)
    assert RESTLESS not in told(spark)


@pytest.mark.parametrize("read_limit", [ReadLimit.ROWS, ReadLimit.FILES, ReadLimit.GATE])
def test_a_long_history_is_not_taken_for_one_that_never_ends(read_limit):
    past, present = Uncounted("history", read_limit, [10_000] * 1000), live()
    spark = ScriptedSpark(present, past, control=control(live="history"), records_per_second=10_000)
    spark.run_until(lambda: past.pending == 0, within=10_000)
    assert RESTLESS not in told(spark)
