"""A control document that cannot be read, where no other is in force: nothing is read before its limits are known."""

from __future__ import annotations

import pytest

from headgate_contract import LiveControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.model import (
    Hold,
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
from support.scripted_spark import ScriptedSpark, Stream, Uncounted

LIMITED = QueryControl(
    interval_seconds=0.1,
    sources={"flights": SourceControl(rate_limit=RateControl(records_per_second=100, max_burst_seconds=1))},
)


def held(job: QueryControl | None = None) -> ScriptedSpark:
    """Return a run that has found such a document; `job` is what its options say."""
    sources = Stream("flights", {"0": 1000}), Uncounted("files", ReadLimit.FILES, [10] * 3)
    spark = ScriptedSpark(*sources, control=job)
    spark.planner.holds_for_control(True)
    return spark


def test_nothing_is_read() -> None:
    spark = held()
    spark.run_for(600)
    assert spark.batches == []
    assert spark.held_by("flights") is HeldBy.CONTROL
    assert spark.source("flights").held_seconds[HeldBy.CONTROL] > 500


def test_the_document_that_comes_holds_from_the_first_batch_on() -> None:
    spark = held()
    spark.run_for(10)
    spark.control(LIMITED)
    spark.planner.holds_for_control(False)
    spark.run_until(lambda: spark.sources["flights"].pending == 0, within=60)
    assert spark.batches[0].records["flights"] <= 100
    assert sum(batch.records.get("flights", 0) for batch in spark.batches) == 1000


@pytest.mark.parametrize("kind", [TriggerKind.AVAILABLE_NOW, TriggerKind.ONCE])
def test_a_run_that_ends_by_itself_waits_inside_its_trigger_until_there_is_one_or_it_is_stopped(
    kind: TriggerKind,
) -> None:
    def waiting() -> AskedPlanner:
        planner = AskedPlanner(QueryState("q", Trigger(kind), [Source("flights", ReadLimit.OFFSETS)], now=0))
        planner.holds_for_control(True)
        for now in range(3):
            answer = planner.admit("flights", {"0": 0}, now)
            assert isinstance(answer, Wait)
            assert answer.reason is HeldBy.CONTROL
        return planner

    stopped, told = waiting(), waiting()
    stopped.stop(3)
    assert stopped.admit("flights", {"0": 0}, 3) == Hold(HeldBy.STOP)
    told.control(LIMITED, 3)
    told.holds_for_control(False)
    answer = told.admit("flights", {"0": 0}, 3)
    if isinstance(answer, Survey):
        answer = told.plan("flights", {"flights": {"0": 1000}}, 3)
    assert answer == (TakeAll() if kind is TriggerKind.ONCE else TakeUpTo({"0": 100}))


def test_where_it_is_taken_away_the_job_runs_as_it_says_itself() -> None:
    spark = held()
    spark.run_for(10)
    spark.planner.holds_for_control(False)
    spark.run_until(lambda: spark.sources["flights"].pending == 0, within=1)
    assert spark.batches[0].records["flights"] == 1000


def test_what_the_job_says_itself_is_not_enough() -> None:
    spark = held(job=QueryControl(live=LiveControl(real_time=True), sources={"flights": SourceControl()}))
    spark.run_for(10)
    assert (spark.batches, spark.live_batches) == ([], [])
