"""What a scrape says of alignment, of runs that are made up."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from headgate_spark.engine.run import QueryRun
from headgate_spark.exporter.collector import MOST_NAMED, DriverCollector, of_member
from headgate_spark.planner.model import AlignmentSnapshot

LABELS = ("delays", "flights")


def samples(**more: object) -> list[tuple[str, tuple[str, ...], float | None]]:
    standing = AlignmentSnapshot(limit=None, floor=None, drift=None, held_by=None, **more)  # type: ignore[arg-type]
    found = ((metric.name, labels, value) for metric, labels, value in of_member(LABELS, standing))
    return [sample for sample in found if sample[2] is not None]


def test_of_a_member_of_which_nothing_is_known_nothing_is_said():
    assert samples() == []


def test_records_that_do_not_count_are_named_by_split_and_offset():
    assert samples(unreadable={"f/1": 3}, far_ahead={"f/0": 7}) == [
        ("headgate_source_event_time_unreadable_splits", LABELS, 1.0),
        ("headgate_source_event_time_unreadable_offset", (*LABELS, "f/1"), 3.0),
        ("headgate_source_event_time_far_ahead_offset", (*LABELS, "f/0"), 7.0),
    ]


def test_of_many_splits_all_are_counted_and_a_few_are_named():
    many = {f"f/{n}": n for n in range(500)}
    told = samples(unreadable=many, far_ahead=many)
    assert told[0][2] == 500.0
    assert len(told) == 1 + 2 * MOST_NAMED


class FailedQueries:
    """A governor all of whose queries have failed, one of them before it had opened anything."""

    refused: Mapping[object, int] = {}
    failures = 0
    stopping = False
    generation = None
    publish_failures: Mapping[tuple[str, str], int] = {}
    runs: tuple[object, ...] = ()
    unplanned = ()
    ended_runs = (SimpleNamespace(name="delays"),)

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}

    def look_after_queries(self) -> None:
        self.failed = {"delays": "query delays: no room", "totals": "query totals: no such option"}


def test_queries_that_have_failed_are_told_with_the_cause():
    executors = SimpleNamespace(wanted=None, running=None)
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
    run = QueryRun("33-44", "delays", checkpoint=None)  # type: ignore[arg-type]
    cause = "query delays: source flights: broker:9092 has not answered yet"
    run.sources[1] = SimpleNamespace(source=SimpleNamespace(name="flights"), out_of_reach=cause)  # type: ignore[assignment]
    governor = FailedQueries()
    governor.runs = (run,)
    collector = DriverCollector("flights", governor, SimpleNamespace(wanted=None, running=None))  # type: ignore[arg-type]
    (sample,) = (
        sample
        for family in collector.collect()
        for sample in family.samples
        if sample.name == "headgate_source_out_of_reach"
    )
    assert sample.labels == {"application": "flights", "query": "delays", "source": "flights", "cause": cause}
