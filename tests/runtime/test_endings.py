"""What a driver keeps of queries that have ended: what still explains something, and never more than so much."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from headgate_contract import metrics as m
from headgate_spark.engine import endings, strangers
from headgate_spark.engine.endings import MOST
from headgate_spark.engine.governor import Governor
from headgate_spark.exporter import DriverCollector, Exporter
from support.asked import admit
from support.engine import Unmeasured, begins, described, failure, noticed, services_with

AT = '{"orders":{"0":5}}'


def a_governor(measures: Unmeasured | Exporter | None = None) -> Governor:
    return Governor(services_with(observer=measures or Unmeasured()))


def begin(governor: Governor, number: int, name: str = "copy") -> None:
    begins(governor, run=f"r{number}", name=name)
    governor.opened(number, described(number, run=f"r{number}", query=name))
    admit(governor, number, AT)


@given(fails=st.lists(st.booleans(), min_size=1, max_size=6), runs_on=st.booleans())
def test_only_the_last_run_of_a_query_explains_how_the_driver_ends(fails: list[bool], runs_on: bool) -> None:
    governor = a_governor()
    for number, has_failed in enumerate(fails):
        begin(governor, number)
        governor.closed(number, failure(f"hiccup {number}") if has_failed else None)
    if runs_on:
        begin(governor, len(fails))
    explains = [f"query copy: hiccup {len(fails) - 1}"] if fails[-1] and not runs_on else []
    assert governor.endings.explanations == explains
    assert list(governor.endings.failures.values()) == explains


def test_of_queries_without_names_the_last_ones_are_kept_and_told() -> None:
    exporter = Exporter("flights")
    governor = a_governor(exporter)
    for number in range(4 * MOST):
        begin(governor, number, name="")
        exporter.batch_took(governor.runs[0].name, 1.0)
        governor.closed(number, failure("no such file") if number % 2 else None)
    assert len(governor.endings.runs) == MOST
    assert len(governor.endings.failures) == MOST // 2
    assert len(governor.endings.explanations) == MOST // 2
    executors = SimpleNamespace(wanted=None, running=None, refused=None)
    collector = DriverCollector("flights", governor, executors)
    told = [s for family in collector.collect() for s in family.samples if s.name == m.QUERY_ACTIVE.name]
    assert len(told) == MOST
    (histogram,) = (f for f in exporter.registry.collect() if f.name == m.QUERY_BATCH_DURATION.name)
    assert len({sample.labels["query"] for sample in histogram.samples}) == MOST


def test_a_query_that_runs_keeps_its_histogram_however_many_others_have_ended() -> None:
    exporter = Exporter("flights")
    governor = a_governor(exporter)
    begin(governor, 0)
    governor.closed(0, None)
    begin(governor, 1)
    exporter.batch_took("copy", 1.0)
    for number in range(2, 2 + 2 * MOST):
        begin(governor, number, name="")
        governor.closed(number, None)
    (histogram,) = (f for f in exporter.registry.collect() if f.name == m.QUERY_BATCH_DURATION.name)
    assert "copy" in {sample.labels["query"] for sample in histogram.samples}


def test_queries_that_opened_nothing_and_those_that_are_not_planned_leave_nothing_when_they_end() -> None:
    governor = a_governor()
    for number in range(100):
        begins(governor, run=f"r{number}", name=f"id{number}")
        noticed(governor, run=f"c{number}", name=f"continuous{number}", unplanned="continuous")
        for run in ("r", "c"):
            governor.ended(f"{run}{number}", None)
    assert governor.table.unplanned == []
    assert (governor.table._started, governor.table._noticed) == ({}, {})
    assert governor.table.has_had_any


def test_queries_under_ever_new_names_and_on_ever_new_checkpoints_leave_no_memory_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (endings, strangers):
        monkeypatch.setattr(module, "MOST", 5)
    exporter = Exporter("flights")
    governor = a_governor(exporter)

    def held_after(numbers: Iterable[int]) -> int:
        for number in numbers:
            run, name = f"r{number}", f"query-{number}"
            checkpoint = f"s3a://bucket/checkpoints/of-query/{number}"
            with capture_logs():
                begins(governor, run=run, name=name)
                governor.opened(number, described(number, run=run, query=name, checkpoint=checkpoint))
                governor.admit(number, "1.1:", AT)
                exporter.batch_took(name, 1.0)
                governor.closed(number, None)
                governor.ended(run, None)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = held_after(range(300, 600))
        left = held_after(range(600, 900)) - before
    finally:
        tracemalloc.stop()
    assert left < 300 * len("s3a://bucket/checkpoints/of-query/300"), "bytes"
