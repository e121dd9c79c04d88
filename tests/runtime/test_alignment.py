"""What a driver says of sources that are declared as members of a group and cannot be aligned."""

from __future__ import annotations

from structlog.testing import capture_logs

from headgate_contract import QueryControl
from headgate_spark.engine.records import RunRecords
from headgate_spark.kafka.event_times import KafkaEventTimes
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.model import ReadLimit, Source, Trigger
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.snapshots import SnapshotEnds
from headgate_spark.planner.state import QueryState
from headgate_spark.planner.unread import UnreadTimes
from support.aligned_spark import member

SOURCES = [
    Source(read_limit.value, read_limit) for read_limit in ReadLimit if read_limit is not ReadLimit.BYTES
]


def never_connected(*_: object) -> object:
    raise AssertionError("no source of Kafka was opened")


def test_sources_of_every_lane_without_event_times_are_named_once_each_with_the_remedy() -> None:
    alignment = RunRecords(
        "delays", Groups(), KafkaEventTimes(never_connected), UnreadTimes(), SnapshotEnds()
    )
    control = QueryControl(sources={source.name: member(30) for source in SOURCES})
    alignment.join(control, control.sources, 0.0)
    planner = QueryPlanner(QueryState("delays", Trigger(), SOURCES, now=0.0, alignment=alignment.part))
    with capture_logs() as told:
        for now in (0.0, 1.0):
            planner.control(control, now)
            alignment.warn()
    assert [(line["query"], line["source"], line["problem"]) for line in told] == [
        (
            "delays",
            read_limit,
            f"source {read_limit} has no event times; only Kafka sources have them. Take alignment out of it",
        )
        for read_limit in ("offsets", "rows", "files", "gate")
    ]
    assert not alignment.part.has_members
