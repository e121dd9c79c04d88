"""A control document is reported as in force when every run acts by it, and no run keeps the others from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_contract import metrics as m
from headgate_spark import exporter as collector_module
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.run import QueryRun
from headgate_spark.exporter import DriverCollector
from support.asked import admit
from support.engine import begins, described, services_with

QUERIES = ("a", "b", "c")


def document(generation: int) -> ControlDocument:
    control = QueryControl(interval_seconds=generation, sources={"orders": SourceControl()})
    return ControlDocument(generation=generation, queries=dict.fromkeys(QUERIES, control))


class Defects:
    """Which runs fail to take a document."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of: set[str] = set()
        take = QueryRun.take_control

        def taken(run: QueryRun, control: QueryControl | None) -> None:
            if run.name in self.of:
                raise RuntimeError("can't start new thread")
            take(run, control)

        monkeypatch.setattr(QueryRun, "take_control", taken)


def three_queries(recalls: list[int]) -> Governor:
    governor = Governor(services_with(recall=lambda: recalls.append(1)))
    for handle, name in enumerate(QUERIES):
        begins(governor, run=f"r{handle}", name=name, user="ada", session="5f0c")
        governor.opened(handle, described(handle, query=name, run=f"r{handle}"))
    return governor


def acts_by(governor: Governor) -> dict[str, float | None]:
    return {
        run.name: run.settings.control.interval_seconds if run.settings.control else None
        for run in governor.runs
    }


def test_a_run_that_cannot_take_a_document_keeps_no_other_from_it_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defects, recalls = Defects(monkeypatch), list[int]()
    governor = three_queries(recalls)
    governor.take_document(document(1))
    assert governor.documents.generation == 1
    defects.of = {"a"}
    with capture_logs():
        governor.take_document(document(2))
        governor.deliver()
    assert acts_by(governor) == {"a": 1, "b": 2, "c": 2}
    assert governor.documents.generation == 1
    assert governor.documents.failures == 2
    assert len(recalls) == 2
    defects.of = set()
    governor.deliver()
    assert acts_by(governor) == {"a": 2, "b": 2, "c": 2}
    assert governor.documents.generation == 2
    assert len(recalls) == 3


def test_a_run_that_plans_is_not_waited_for_and_takes_the_document_before_it_plans_again() -> None:
    governor = three_queries([])
    run = governor.runs[0]
    planning, planned = threading.Event(), threading.Event()

    def plan() -> None:
        with run.lock:
            planning.set()
            assert planned.wait(60)

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(plan)
        assert planning.wait(60)
        governor.take_document(document(1))
        assert acts_by(governor) == {"a": None, "b": 1, "c": 1}
        assert governor.documents.generation is None
        planned.set()
        done.result(60)
    admit(governor, 0, '{"orders":{"0":5}}')
    assert acts_by(governor) == {"a": 1, "b": 1, "c": 1}
    governor.deliver()
    assert governor.documents.generation == 1


steps = st.one_of(
    st.sets(st.sampled_from(QUERIES)), st.sampled_from(["document", "look", "plan a", "end b", "begin d"])
)


@given(history=st.lists(steps, max_size=30))
def test_whatever_is_reported_every_open_run_acts_by(history: list[set[str] | str]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, capture_logs():
        defects = Defects(monkeypatch)
        governor = three_queries([])
        generation, begun = 0, 3
        for step in history:
            if isinstance(step, set):
                defects.of = step
            elif step == "document":
                generation += 1
                governor.take_document(document(generation))
            elif step == "look":
                governor.deliver()
            elif step == "plan a":
                admit(governor, 0, '{"orders":{"0":5}}')
            elif step == "end b":
                governor.closed(1, None)
            else:
                governor.opened(begun, described(begun, query="c", run=f"r{begun}"))
                begun += 1
            reported = governor.documents.generation
            assert reported is None or all(
                n is not None and n >= reported for n in acts_by(governor).values()
            )
        defects.of = set()
        governor.deliver()
        assert governor.documents.generation == (generation or None)
        assert set(acts_by(governor).values()) <= {generation or None}


@contextmanager
def planning(runs: Sequence[QueryRun]) -> Iterator[None]:
    """Have runs plan, each in a call of its own, meanwhile."""
    begun, planned = threading.Event(), threading.Event()

    def plan() -> None:
        with ExitStack() as locks:
            for run in runs:
                locks.enter_context(run.lock)
            begun.set()
            assert planned.wait(60)

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(plan)
        assert begun.wait(60)
        try:
            yield
        finally:
            planned.set()
        done.result(60)


def test_a_scrape_does_not_wait_for_a_run_that_plans_and_tells_what_it_told_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector_module, "PATIENCE_SECONDS", 0.01)
    governor = three_queries([])
    governor.take_document(document(1))
    collector = DriverCollector("flights", governor, SimpleNamespace(wanted=None, running=None, refused=None))

    def told(name: str) -> set[str]:
        return {s.labels["query"] for f in collector.collect() for s in f.samples if s.name == name}

    admit(governor, 0, '{"orders":{"0":5}}')
    with planning(governor.runs[2:]):
        assert told(m.QUERY_OWNER.name) == set(QUERIES), "whose it is is known before it has planned anything"
    assert told(m.QUERY_INTERVAL.name) == {"a"}
    with planning(governor.runs[:2]):
        assert told(m.QUERY_INTERVAL.name) == {"a"}
        assert told(m.QUERY_ACTIVE.name) == set(QUERIES)
