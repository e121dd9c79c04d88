"""Logs that end before what was read of them: the query ends, or goes on from there, as it would without us."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from headgate_contract import QueryControl, SourceControl
from headgate_spark.engine.changed_logs import PATIENCE_SECONDS, Retreat
from headgate_spark.engine.queries import Started
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import Trigger, TriggerKind
from support.asked import admit, plan
from support.engine import a_run

QUERY = {"id": "11-22", "runId": "33-44", "name": "delays"}
SOON = PATIENCE_SECONDS / 2


class FakeStore:
    def load(self) -> None:
        return None

    def save(self, value: object) -> None:
        pass


@dataclass
class FakeCheckpoint:
    hybrid: FakeStore = field(default_factory=FakeStore)
    batches: FakeStore = field(default_factory=FakeStore)

    def resumption(self) -> Resumption:
        return Resumption()


Ask = Callable[[float, dict[str, int], dict[str, int]], str]


def asking(
    *, trigger: TriggerKind = TriggerKind.PROCESSING_TIME, paused: bool = False, **options: str
) -> Ask:
    """Return how a query of one topic is asked: at a time, where it is, and where its partitions end."""
    now = [0.0]
    started = Started(Trigger(trigger), True)
    run = a_run("delays", FakeCheckpoint(), started=started, clock=lambda: now[0])
    run.take_control(QueryControl(interval_seconds=0, sources={"orders": SourceControl(paused=paused)}))
    members = {"handle": 1, "query": QUERY, "checkpoint": "file:/ck", "api": "v2", "format": "kafka"}
    run.open(Descriptor.parse(json.dumps({**members, "options": {"subscribe": "orders", **options}})))

    def ask(at: float, start: dict[str, int], latest: dict[str, int]) -> str:
        now[0] = at
        answer = admit(run, 1, json.dumps({"orders": start}))
        told = json.dumps({"orders": latest}, separators=(",", ":"))  # as Kafka's source writes it
        return plan(run, 1, {"1": told}) if answer == "survey:1" else answer

    return ask


def test_a_log_that_goes_on_ending_too_early_ends_the_query_with_the_remedy():
    ask = asking()
    assert not ask(0, {"0": 100}, {"0": 40}).startswith("fail:")
    assert not ask(SOON, {"0": 100}, {"0": 41}).startswith("fail:")
    assert ask(PATIENCE_SECONDS, {"0": 100}, {"0": 42}) == (
        "fail:query delays: source orders: orders/0 ends at offset 42 and was read up to 100: its last records were "
        "lost, or the topic was created anew; start from a new checkpoint, or let the job go on from there (option "
        "failOnDataLoss=false)"
    )


def test_so_it_does_where_other_partitions_have_records():
    ask = asking()
    assert ask(0, {"0": 100, "1": 0}, {"0": 40, "1": 10}) == 'offset:{"orders":{"0":100,"1":10}}'
    assert ask(PATIENCE_SECONDS, {"0": 100, "1": 10}, {"0": 40, "1": 20}).startswith("fail:")


def test_what_does_not_last_was_none():
    ask = asking()
    ask(0, {"0": 100}, {"0": 40})
    ask(SOON, {"0": 100}, {"0": 100})
    assert not ask(PATIENCE_SECONDS, {"0": 100}, {"0": 40}).startswith("fail:")
    assert ask(2 * PATIENCE_SECONDS, {"0": 100}, {"0": 120}) == 'offset:{"orders":{"0":120}}'


def test_a_job_that_does_not_fail_on_data_loss_goes_on_from_the_end():
    ask = asking(failOnDataLoss="false")
    ask(0, {"0": 100, "1": 5}, {"0": 40, "1": 5})
    with capture_logs() as told:
        assert (
            ask(PATIENCE_SECONDS, {"0": 100, "1": 5}, {"0": 40, "1": 5}) == 'offset:{"orders":{"0":40,"1":5}}'
        )
    assert ["orders/0 ends at offset 40" in line["problem"] for line in told] == [True]
    assert (
        ask(PATIENCE_SECONDS + 1, {"0": 40, "1": 5}, {"0": 50, "1": 5}) == 'offset:{"orders":{"0":50,"1":5}}'
    )


def test_a_run_that_ends_by_itself_does_not_end_as_if_there_were_nothing_to_read():
    ask = asking(trigger=TriggerKind.AVAILABLE_NOW)
    assert ask(0, {"0": 100}, {"0": 40}).startswith("fail:")


def test_a_paused_source_is_left_alone():
    ask = asking(paused=True)
    answers = [ask(at, {"0": 100}, {"0": 40}) for at in (0, PATIENCE_SECONDS, 2 * PATIENCE_SECONDS)]
    assert not any(answer.startswith("fail:") for answer in answers)


def test_a_partition_that_is_away_for_a_moment_is_no_deleted_one():
    ask = asking()
    position, without = {"0": 100, "1": 5}, {"0": 120}
    assert ask(0, position, position).startswith("lease:")
    with capture_logs() as told:
        assert [ask(at, position, without) for at in (1, 1 + SOON)] == ["hold", "hold"]
    assert [line["partitions"] for line in told] == [["orders/1"]]
    assert ask(2 + SOON, position, {"0": 130, "1": 7}) == 'offset:{"orders":{"0":130,"1":7}}'


def test_a_partition_that_stays_away_is_left_to_spark():
    ask = asking()
    position, without = {"0": 100, "1": 5}, {"0": 120}
    assert ask(1, position, without) == "hold"
    assert ask(1 + PATIENCE_SECONDS, position, without) == 'offset:{"orders":{"0":120}}'


def test_spark_is_asked_about_one_that_stays_away_also_where_the_others_have_nothing_new():
    """It ends the query, or forgets the partition: what is planned has an end without it."""
    ask = asking()
    position, without = {"0": 100, "1": 5}, {"0": 100}
    assert ask(1, position, without) == "hold"
    assert ask(1 + PATIENCE_SECONDS, position, without) == 'offset:{"orders":{"0":100}}'
    assert ask(2 + PATIENCE_SECONDS, without, without) == "hold", "it goes on without it"


def test_so_it_is_in_a_run_that_ends_by_itself_and_where_none_is_left():
    ask = asking(trigger=TriggerKind.AVAILABLE_NOW)
    assert ask(0, {"0": 100, "1": 5}, {"0": 100}) == 'offset:{"orders":{"0":100}}'
    ask = asking(trigger=TriggerKind.AVAILABLE_NOW)
    assert ask(0, {"0": 100}, {}) == 'offset:{"orders":{}}'


def test_each_partition_that_goes_has_its_own_moment():
    ask = asking()
    position = {"0": 100, "1": 5, "2": 9}
    assert ask(1, position, {"0": 120, "2": 9}) == "hold"
    assert ask(1 + SOON, position, {"0": 120}) == "hold"
    assert ask(1 + PATIENCE_SECONDS, position, {"0": 120}) == "hold"
    assert ask(1 + SOON + PATIENCE_SECONDS, position, {"0": 120}) == 'offset:{"orders":{"0":120}}'


def test_a_run_that_ends_by_itself_has_a_frozen_end_and_does_not_wait_for_another():
    ask = asking(trigger=TriggerKind.AVAILABLE_NOW)
    assert ask(0, {"0": 100, "1": 5}, {"0": 120}) == 'offset:{"orders":{"0":120}}'


@pytest.mark.parametrize("unknown", [(None, {"o/0": 4}), ({"o/0": 9}, None)])
def test_what_is_not_known_changes_nothing(unknown: tuple[dict[str, int] | None, dict[str, int] | None]):
    retreat = Retreat()
    retreat.look({"o/0": 9}, {"o/0": 4}, now=0)
    retreat.look(*unknown, now=SOON)
    assert retreat.lasts(PATIENCE_SECONDS)
