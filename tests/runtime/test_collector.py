"""What a scrape says of runs that are made up: of alignment, of failures, and where everything is known."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest

from headgate.adapters.metrics.scrape import LONGEST_LINE
from headgate_contract import RefusalReason
from headgate_contract import metrics as m
from headgate_contract.held import HeldBy
from headgate_contract.lag_votes import LagVoter
from headgate_spark import __version__
from headgate_spark.exporter import MOST_NAMED, DriverCollector, Exporter, of_member
from headgate_spark.planner.model import AlignmentFigures, QueryFigures, ReadLimit, SourceFigures
from support.engine import MadeUpCheckpoint, a_run

LABELS = ("delays", "flights")


def samples(**more: object) -> list[tuple[str, tuple[str, ...], float | None]]:
    standing = AlignmentFigures(limit=None, floor=None, drift=None, held_by=None, **more)  # type: ignore[arg-type]
    found = ((metric.name, labels, value) for metric, labels, value in of_member(LABELS, standing))
    return [sample for sample in found if sample[2] is not None]


def test_of_a_member_of_which_nothing_is_known_nothing_is_said():
    assert samples() == []


def test_records_that_do_not_count_are_named_by_partition_and_offset():
    assert samples(unreadable={"f/1": 3}, far_ahead={"f/0": 7}) == [
        ("headgate_source_event_time_unreadable_partitions", LABELS, 1.0),
        ("headgate_source_event_time_unreadable_offset", (*LABELS, "f/1"), 3.0),
        ("headgate_source_event_time_far_ahead_offset", (*LABELS, "f/0"), 7.0),
    ]


def test_of_many_partitions_all_are_counted_and_a_few_are_named():
    many = {f"f/{n}": n for n in range(500)}
    told = samples(unreadable=many, far_ahead=many)
    assert told[0][2] == 500.0
    assert len(told) == 1 + 2 * MOST_NAMED


class FailedQueries:
    """A governor all of whose queries have failed, one of them before it had opened anything."""

    failures = 0
    publish_failures: Mapping[tuple[str, str], int] = {}
    runs: tuple[object, ...] = ()
    documents = SimpleNamespace(generation=None, refused={}, failures=0, unread=None, unknown=None)
    table = SimpleNamespace(unplanned=(), unmatched=(), unheeded=(), unfenced=(), is_stopping=False)
    endings = SimpleNamespace(
        runs=(SimpleNamespace(name="delays"),),
        failures={"delays": "query delays: no room", "totals": "query totals: no such option"},
    )


def test_queries_that_have_failed_are_told_with_the_cause():
    executors = SimpleNamespace(wanted=None, running=None, refused=None)
    collector = DriverCollector("flights", FailedQueries(), executors)  # type: ignore[arg-type]
    told = {
        (sample.name, *sorted(sample.labels.items())[1:]): sample.value
        for family in collector.collect()
        for sample in family.samples
        if sample.name.startswith("headgate_query")
    }
    assert told == {
        ("headgate_query_active", ("query", "delays")): 0.0,
        ("headgate_query_active", ("query", "totals")): 0.0,
        ("headgate_query_failed", ("cause", "query delays: no room"), ("query", "delays")): 1.0,
        ("headgate_query_failed", ("cause", "query totals: no such option"), ("query", "totals")): 1.0,
    }


def test_a_source_that_cannot_be_asked_is_told_with_the_cause_before_its_first_planning():
    run = a_run("delays", MadeUpCheckpoint())
    cause = "query delays: source flights: broker:9092 has not answered yet"
    run.sources.by_handle[1] = SimpleNamespace(
        name="flights", out_of_reach=cause, retention_margin=lambda now: None
    )  # type: ignore[assignment]
    governor = FailedQueries()
    governor.runs = (run,)
    collector = DriverCollector("flights", governor, SimpleNamespace(wanted=None, running=None, refused=None))  # type: ignore[arg-type]
    (sample,) = (
        sample
        for family in collector.collect()
        for sample in family.samples
        if sample.name == "headgate_source_out_of_reach"
    )
    assert sample.labels == {"application": "flights", "query": "delays", "source": "flights", "cause": cause}


@pytest.mark.parametrize("letter", ["a", '"', "飛", "🛩"])
def test_names_of_any_length_leave_every_line_of_the_page_one_that_the_operator_takes(letter: str):
    names = [letter * 5_000 + end for end in "xy"]  # topics of one source; a client's name of its query
    runs = [a_run(name, MadeUpCheckpoint()) for name in names]
    for run in runs:
        run.started.owner = (names[0], names[1])
        run.sources.by_handle[1] = SimpleNamespace(
            name=names[0], out_of_reach=names[1], retention_margin=lambda now: None
        )  # type: ignore[assignment]
    governor = FailedQueries()
    governor.runs = tuple(runs)
    exporter = Exporter(names[0], lineage=names[1])
    exporter.spark_is("4.3.0")
    exporter.batch_took(names[0], 1.0)
    with exporter.planner_call():
        pass
    collector = DriverCollector(names[0], governor, SimpleNamespace(wanted=None, running=None, refused=None))  # type: ignore[arg-type]
    exporter.registry.register(collector)
    page = generate_latest(exporter.registry)
    assert max(len(line) for line in page.splitlines()) < LONGEST_LINE
    told = {
        sample.labels["query"]
        for family in collector.collect()
        for sample in family.samples
        if sample.name == "headgate_query_started_timestamp_seconds"
    }
    assert len(told) == 2
    exporter.forget(names[0])
    assert b"batch_duration_seconds_count{" not in generate_latest(exporter.registry)


def known_of_a_source() -> SourceFigures:
    """A source of which everything is known."""
    alignment = AlignmentFigures(
        limit=30.0,
        floor=10.0,
        drift=20.0,
        held_by="delays/weather",
        held_by_partition="w/0",
        out_of_orderness=1.0,
        unreadable={"f/1": 3},
        far_ahead={"f/0": 7},
    )
    return SourceFigures(
        name="flights",
        read_limit=ReadLimit.OFFSETS,
        pending_records=5,
        planned_records_total=7,
        processed_records_total=7,
        idle_seconds=0.0,
        phase=True,
        paused=True,
        finished=True,
        rate_limit_records_per_second=9.0,
        held_seconds=dict.fromkeys(HeldBy, 1.0),
        held_lately_seconds=dict.fromkeys(HeldBy, 1.0),
        alignment=alignment,
        backlog_votes=tuple(LagVoter),
        unread_since=10.0,
        unread_partition="f/0",
        snapshot_problem="partition f/0: the record at offset 3 does not tell",
        is_all_read=False,
    )


def known_of_a_run(source: SourceFigures) -> SimpleNamespace:
    """A run of which everything is known, with one source."""
    figures = QueryFigures(
        name="delays",
        backlog=True,
        interval_seconds=5.0,
        grant_records=1,
        throughput_records_per_second=2.0,
        memory_bound_records=3,
        cost_bound_records=4,
        data_batches=5,
        no_data_batches=6,
        sources=(source,),
        watermark_held_by="weather",
        votes=True,
        real_time=True,
        real_time_refused="too few slots",
    )
    return SimpleNamespace(
        name="delays",
        run_id="r1",
        lock=threading.RLock(),
        figures=lambda: figures,
        batches=SimpleNamespace(
            last=SimpleNamespace(watermark=100.0, state_rows=8),
            last_ended_at=120.0,
            event_time=SimpleNamespace(reached=110.0, of_last_batch=115.0, future_batches=2),
        ),
        settings=SimpleNamespace(origins=(("flights", "paused", "option"),)),
        started=SimpleNamespace(owner=("ada", "5f0c2f4e")),
        started_at=90.0,
        trigger_problem="Spark does not let its trigger be shortened",
        memory=SimpleNamespace(spilled_bytes=9),
        state=SimpleNamespace(memory=SimpleNamespace(repeated=1)),
        sources=SimpleNamespace(
            out_of_reach={"flights": "query delays: source flights: broker:9092 has not answered yet"},
            retention_margins=lambda: {"flights": 0.5},
        ),
    )


EXECUTORS = SimpleNamespace(wanted=2, running=1, refused="exceeded quota: small")


def known_of_a_driver(source: SourceFigures) -> Any:
    """A governor of which everything is known, with one query of one source."""
    return SimpleNamespace(
        documents=SimpleNamespace(
            generation=3,
            refused=dict.fromkeys(RefusalReason, 1),
            failures=1,
            unread="it is cut short",
            unknown="it says more",
        ),
        table=SimpleNamespace(
            unplanned=("clicks",),
            unmatched=("property a: no query b",),
            unheeded=("query delays: alignment of flights does nothing",),
            unfenced=("no right",),
            is_stopping=True,
        ),
        endings=SimpleNamespace(failures={"totals": "query totals: no such option"}, runs=[]),
        failures=1,
        publish_failures={("delays", "flights"): 1},
        runs=[known_of_a_run(source)],
    )


def told_where_everything_is_known() -> Mapping[str, Any]:
    """Every family of a scrape of a driver of which everything is known, by its name in the contract."""
    exporter = Exporter("flights", "a1/1")
    exporter.batch_took("delays", 1.0)
    exporter.spark_is("4.3.0")
    with exporter.planner_call():
        pass
    governor = known_of_a_driver(known_of_a_source())
    exporter.registry.register(DriverCollector("flights", governor, EXECUTORS))  # type: ignore[arg-type]
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: family
        for family in exporter.registry.collect()
    }


def test_where_everything_is_known_a_scrape_has_all_of_the_contract_and_nothing_else() -> None:
    told = told_where_everything_is_known()

    assert {
        (name, family.type, frozenset(label for s in family.samples for label in s.labels) - {"le"})
        for name, family in told.items()
    } == {(metric.name, metric.kind.value, frozenset({"application", *metric.labels})) for metric in m.ALL}


def test_a_scrape_that_asks_for_set_flags_has_all_but_flags_that_are_0() -> None:
    governor = known_of_a_driver(replace(known_of_a_source(), paused=False, finished=False))
    port = Exporter("flights").serve(governor, EXECUTORS, 0, "127.0.0.1")  # type: ignore[arg-type]

    def samples_of(asked: str) -> set[str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics{asked}", timeout=60) as page:
            lines = page.read().decode().splitlines()
        return {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}

    of_a_source = '{application="flights",query="delays",source="flights"}'
    left_out = {f"{metric.name}{of_a_source}" for metric in (m.SOURCE_PAUSED, m.SOURCE_FINISHED)}
    assert samples_of("") - samples_of(f"?{m.ONLY_SET}") == left_out
    assert f"{m.SOURCE_PHASE.name}{of_a_source}" in samples_of(f"?{m.ONLY_SET}")


def test_a_driver_says_which_headgate_it_has_also_where_nobody_has_said_whose_it_is() -> None:
    for lineage in ("", "a1/1"):
        [info] = [f for f in Exporter("flights", lineage).registry.collect() if f.name == m.DRIVER_INFO.name]
        assert [(s.labels, s.value) for s in info.samples] == [
            ({"application": "flights", "version": __version__, "lineage": lineage}, 1.0)
        ]


def test_the_normal_pace_is_nothing_that_a_source_is_held_back_by() -> None:
    def reasons(metric: m.Metric) -> set[str]:
        return {sample.labels["reason"] for sample in told_where_everything_is_known()[metric.name].samples}

    assert reasons(m.SOURCE_HELD) == {reason.value for reason in HeldBy}
    assert reasons(m.SOURCE_HELD_BACK) == {reason.value for reason in HeldBy if not reason.is_normal_pace}
    assert reasons(m.SOURCE_HELD) > reasons(m.SOURCE_HELD_BACK)
