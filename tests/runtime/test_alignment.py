"""What a driver says of sources that cannot be aligned, and what it has groups wait for."""

from __future__ import annotations

from structlog.testing import capture_logs

from headgate_contract import AlignmentControl, ControlDocument, QueryControl, SourceControl
from headgate_spark.engine.records import RunRecords, follow
from headgate_spark.kafka.event_times import KafkaEventTimes
from headgate_spark.planner.alignment import Commitment, Groups, MemberPartition
from headgate_spark.planner.model import ReadLimit, Source, Trigger
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.snapshots import SnapshotEnds
from headgate_spark.planner.state import QueryState
from headgate_spark.planner.unread import UnreadTimes
from support.aligned_spark import member

SOURCES = [
    Source(read_limit.value, read_limit) for read_limit in ReadLimit if read_limit is not ReadLimit.BYTES
]

PROBLEM = "it has no event times; only Kafka sources have them. Take alignment out of it"


def never_connected(*_: object) -> object:
    raise AssertionError("no source of Kafka was opened")


def warnings_of(sources: list[Source]) -> list[tuple[str, list[str], str]]:
    """What the log says of sources that are all declared as members of a group, at two looks."""
    alignment = RunRecords(
        "delays", Groups(), KafkaEventTimes(never_connected), UnreadTimes(), SnapshotEnds()
    )
    control = QueryControl(sources={source.name: member(30) for source in sources})
    alignment.join(control, control.sources, 0.0)
    planner = QueryPlanner(QueryState("delays", Trigger(), sources, now=0.0, alignment=alignment.part))
    with capture_logs() as told:
        for now in (0.0, 1.0):
            planner.control(control, now)
            alignment.warn()
    assert not alignment.part.has_members
    return [(line["query"], line["sources"], line["problem"]) for line in told]


def test_sources_without_event_times_are_named_once_and_together_whatever_bounds_their_batches() -> None:
    assert warnings_of(SOURCES) == [("delays", ["offsets", "rows", "files", "gate"], PROBLEM)]


def test_of_many_sources_without_event_times_the_first_are_named_and_the_others_counted() -> None:
    sources = [Source(f"s{number}", ReadLimit.GATE) for number in range(32)]

    assert warnings_of(sources) == [
        ("delays", [*(f"s{number}" for number in range(10)), "and 22 more"], PROBLEM)
    ]


def test_a_group_waits_for_the_queries_that_the_document_lists():
    groups, declared = Groups(), AlignmentControl(group="trips", max_drift_seconds=5)
    listed = QueryControl(sources={"flights": SourceControl(alignment=declared)})
    follow(groups, ControlDocument(generation=1, queries={"slow": listed}))
    groups.publish("trips", "fast", Commitment((declared,), 1.0, {}), 0.0)
    assert groups.floor_of_others("trips", "fast", 4.9).unknown == MemberPartition("slow")
    assert groups.floor_of_others("trips", "fast", 5.0).unknown is None


def test_of_groups_that_everybody_has_left_nothing_stays():
    groups, declared = Groups(), AlignmentControl(group="trips", max_drift_seconds=5)
    for number in range(3):
        groups.publish(f"trips-{number}", "fast", Commitment((declared,), 1.0, {}), 0.0)
        groups.leave("fast")
    assert (groups._commitments, groups._begun) == ({}, {})
