"""Groups of sources: who waits for whom, who cannot join, and what a person is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.api.status import Condition, ConditionStatus, QueryStatus, SourceStatus
from headgate_contract import metrics as names
from support.looping import Loop, application, is_read_by, query, says, source

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
NOON = 1_700_000_000.0


def member(name: str, drift: str = "5s", group: str = "trips", **more: Any) -> dict[str, Any]:
    return source(name=name, alignment={"group": group, "maxDrift": drift, **more})


def aligned(*members: dict[str, Any]) -> Loop:
    loop = Loop(declared=application(queries=[query(sources=list(members))]))
    loop.run_until_running()
    return loop


def reports(loop: Loop, **sources: dict[str, float]) -> None:
    """The driver reports drift, idle time and the like of each source, all of them under one limit."""
    loop.world.metrics.reports(sources=sources)
    loop.acknowledged_reconcile()


def at(drift: float, **more: float) -> dict[str, float]:
    return {
        "alignment_drift_seconds": drift,
        "alignment_limit_timestamp_seconds": NOON + 5,
        "alignment_floor_timestamp_seconds": NOON,
        **more,
    }


def condition(loop: Loop) -> Condition | None:
    assert loop.memory.status is not None
    return next((one for one in loop.memory.status.conditions if one.type == "Aligned"), None)


def said(loop: Loop) -> tuple[ConditionStatus, str, str]:
    found = condition(loop)
    assert found is not None
    return found.status, found.reason, found.message


def delays(loop: Loop) -> QueryStatus:
    assert loop.memory.status is not None
    return loop.memory.status.queries[0]


def of(loop: Loop, name: str) -> SourceStatus:
    return next(one for one in delays(loop).sources if one.name == name)


def test_nothing_is_said_of_alignment_where_none_is_declared() -> None:
    loop = Loop()
    loop.run_until_running()
    assert condition(loop) is None


def test_before_anything_is_known_nobody_can_tell() -> None:
    loop = Loop(declared=application(queries=[query(sources=[member("cars"), member("taxis")])]))
    loop.reconcile()
    assert said(loop) == (UNKNOWN, "MetricsUnavailable", "the metrics that would tell are not known")


def test_members_within_their_drift_are_aligned() -> None:
    loop = aligned(member("cars"), member("taxis"))
    reports(loop, cars=at(5.0), taxis=at(0.0))
    assert said(loop) == (TRUE, "WithinDrift", "the 2 sources of group trips are within 5s of each other")
    shown = of(loop, "cars").alignment
    assert shown is not None
    assert (shown.group, shown.held_by) == ("trips", None)
    assert shown.drift is not None
    assert shown.drift.total_seconds() == 5
    assert shown.limit is not None
    assert shown.limit.timestamp() == NOON + 5


def test_a_member_that_waits_names_the_one_that_it_waits_for() -> None:
    loop = aligned(member("cars"), member("taxis"))
    for held in (1.0, 2.0):
        loop.world.metrics.reports(sources={"cars": at(5.0), "taxis": at(0.0)})
        loop.world.metrics.reports_held(held, "Alignment", source="cars")
        for name in ("cars", "taxis"):
            says(loop, names.SOURCE_ALIGNMENT_HELD_BY, name, member="delays/taxis")
            says(loop, names.SOURCE_ALIGNMENT_HELD_BY_PARTITION, name, partition="rides/3")
        loop.acknowledged_reconcile()
    cars, taxis = of(loop, "cars"), of(loop, "taxis")
    assert cars.held == "Alignment"
    assert cars.alignment is not None
    assert (cars.alignment.held_by, cars.alignment.held_by_partition) == ("delays/taxis", "rides/3")
    assert taxis.alignment is not None
    assert (taxis.alignment.held_by, taxis.alignment.held_by_partition) == (None, None)


def test_of_a_group_that_is_aligned_the_slowest_member_is_named() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": at(5.0), "taxis": at(0.0)})
    says(loop, names.SOURCE_ALIGNMENT_HELD_BY, "cars", member="delays/taxis")
    says(loop, names.SOURCE_ALIGNMENT_HELD_BY_PARTITION, "cars", partition="rides/3")
    loop.acknowledged_reconcile()
    assert said(loop)[1:] == (
        "WithinDrift",
        "the 2 sources of group trips are within 5s of each other; delays/taxis (partition rides/3) is the slowest",
    )


def test_a_member_beyond_the_limit_is_said_with_its_distance() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": at(90.0), "taxis": at(0.0)})
    says(loop, names.SOURCE_ALIGNMENT_HELD_BY, "cars", member="delays/taxis")
    loop.acknowledged_reconcile()
    assert said(loop) == (
        FALSE,
        "DriftOverLimit",
        "source delays/cars is 1m30s ahead in group trips, which allows 5s; it waits for delays/taxis",
    )


def test_of_different_drifts_the_smallest_holds_and_people_are_told() -> None:
    loop = aligned(member("cars", "10s"), member("taxis", "5s"))
    reports(loop, cars=at(4.0), taxis=at(0.0))
    assert said(loop) == (
        TRUE,
        "MaxDriftDiffers",
        "the members of group trips declare different maxDrift: 5s holds, the smallest, and not 10s; declare the "
        "same for all",
    )
    reports(loop, cars=at(7.0), taxis=at(0.0))
    assert said(loop)[1] == "DriftOverLimit"


@pytest.mark.parametrize(
    ("read_limit", "why"),
    [
        ("files", "its batches end with a file, at no event time"),
        ("rows", "its batches end after a number of rows, at no event time"),
        ("gate", "it is read as a whole or not at all"),
        ("offsets", "it has no event times; only Kafka sources have them"),
    ],
)
def test_a_source_without_event_times_cannot_join_and_is_named_with_the_remedy(
    read_limit: str, why: str
) -> None:
    loop = aligned(member("cars"), member("taxis"), member("archive"))
    loop.world.metrics.reports(sources={"cars": at(0.0), "taxis": at(1.0), "archive": {"idle_seconds": 0.0}})
    is_read_by(loop, "archive", read_limit)
    loop.acknowledged_reconcile()
    assert said(loop) == (
        FALSE,
        "CannotJoin",
        f"source delays/archive cannot join group trips: {why}; take alignment out of it, or read it from Kafka. The "
        "others of the group are aligned without it",
    )
    shown = of(loop, "archive").alignment
    assert shown is not None
    assert (shown.limit, shown.drift) == (None, None)


def test_a_source_whose_payload_cannot_be_read_is_told_how_to_join() -> None:
    loop = aligned(member("cars"), {**member("taxis"), "eventTime": {"column": "$.pickup", "format": "Avro"}})
    loop.world.metrics.reports(sources={"cars": at(0.0), "taxis": {}})
    is_read_by(loop, "taxis", "offsets")
    loop.acknowledged_reconcile()
    assert said(loop)[1:] == (
        "CannotJoin",
        "source delays/taxis cannot join group trips: the driver cannot read its event time, $.pickup of a payload "
        "in Avro; the driver's log says why; correct eventTime, have the job register a decoder, or leave out "
        "eventTime.column to align it by the timestamps of its records. The others of the group are aligned without "
        "it",
    )


def in_avro(name: str) -> dict[str, Any]:
    return {**member(name), "eventTime": {"column": "$.pickup", "format": "Avro"}}


def test_a_source_that_is_alone_in_its_query_and_cannot_be_read_is_said_to_be_unable() -> None:
    both = [query(sources=[member("cars")]), query(name="fares", sources=[in_avro("taxis")])]
    loop = Loop(declared=application(queries=both))
    loop.run_until_running()
    loop.world.metrics.reports(sources={"cars": at(0.0, event_time_unreadable_partitions=0.0)})
    loop.world.metrics.reports("fares", sources={"taxis": {"planned_records_total": 500.0}})
    says(loop, names.SOURCE_INFO, "taxis", "fares", read_limit="offsets")
    loop.acknowledged_reconcile()
    status, reason, message = said(loop)
    assert (status, reason) == (FALSE, "CannotJoin")
    assert message.startswith(
        "source fares/taxis cannot join group trips: the driver cannot read its event time"
    )
    assert message.endswith("The others of the group are aligned without it")


def test_where_no_source_of_a_group_can_be_read_each_is_named_with_the_remedy() -> None:
    loop = aligned(in_avro("cars"), in_avro("taxis"))
    read = {"planned_records_total": 500.0}
    loop.world.metrics.reports(sources={"cars": read, "taxis": read})
    for name in ("cars", "taxis"):
        is_read_by(loop, name, "offsets")
    loop.acknowledged_reconcile()
    status, reason, message = said(loop)
    assert (status, reason) == (FALSE, "CannotJoin")
    assert message.count("have the job register a decoder") == 2
    assert "The others" not in message, "there are none"


def test_a_source_that_was_read_before_it_was_to_be_aligned_is_not_said_to_be_unable() -> None:
    loop = Loop(declared=application(queries=[query(sources=[source(name="cars")])]))
    loop.run_until_running()
    loop.world.metrics.reports(sources={"cars": {"planned_records_total": 500.0}})
    is_read_by(loop, "cars", "offsets")
    loop.acknowledged_reconcile()
    loop.declare(queries=[query(sources=[member("cars")])])
    for reconcile in (
        loop.reconcile,
        loop.reconcile,
    ):  # when it is published, and when it is not in force yet
        reconcile()
        assert said(loop)[1] == "NoLimitHolds"
    loop.acknowledged_reconcile()
    assert said(loop)[1] == "CannotJoin"


def test_a_source_whose_client_was_quicker_than_that_of_another_makes_no_stranger_of_it() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": {"event_time_unreadable_partitions": 0.0}, "taxis": {}})
    for name in ("cars", "taxis"):
        is_read_by(loop, name, "offsets")
    loop.acknowledged_reconcile()
    assert said(loop)[:2] == (UNKNOWN, "NoLimitHolds")


def test_a_source_whose_event_times_are_read_takes_part_before_a_limit_holds() -> None:
    loop = aligned(member("cars"))
    loop.world.metrics.reports(
        sources={"cars": {"planned_records_total": 500.0, "event_time_unreadable_partitions": 0.0}}
    )
    is_read_by(loop, "cars", "offsets")
    loop.acknowledged_reconcile()
    assert said(loop)[:2] == (UNKNOWN, "NoLimitHolds")


def test_partitions_whose_payload_has_no_event_time_are_counted_and_told_how_to_join() -> None:
    loop = aligned(member("cars"), {**member("taxis"), "eventTime": {"column": "$.pickup"}})
    loop.world.metrics.reports(
        sources={"cars": at(0.0), "taxis": at(1.0, event_time_unreadable_partitions=2.0)}
    )
    for split, offset in (("rides/3", 17.0), ("rides/1", 1_234_567.0)):
        says(loop, names.SOURCE_UNREADABLE, "taxis", partition=split, value=offset)
    loop.acknowledged_reconcile()
    assert said(loop) == (
        FALSE,
        "CannotJoin",
        "2 of the partitions of source delays/taxis (rides/1 at offset 1234567, rides/3 at offset 17) cannot join "
        "group trips: no record of theirs that was looked at has an event time, $.pickup of a payload in Json; the "
        "driver's log says why; correct eventTime, have the job register a decoder, or leave out eventTime.column to "
        "align it by the timestamps of its records. The others of the group are aligned without them",
    )
    reports(loop, cars=at(0.0), taxis=at(1.0, event_time_unreadable_partitions=0.0))
    assert said(loop)[1] == "WithinDrift"


def test_partitions_without_timestamps_are_named_with_what_would_give_them_event_times() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(
        sources={"cars": at(0.0), "taxis": at(1.0, event_time_unreadable_partitions=1.0)}
    )
    says(loop, names.SOURCE_UNREADABLE, "taxis", partition="rides/3", value=0.0)
    loop.acknowledged_reconcile()
    assert said(loop) == (
        FALSE,
        "CannotJoin",
        "1 of the partitions of source delays/taxis (rides/3 at offset 0) cannot join group trips: no record of "
        "theirs has a timestamp; give its records timestamps (message.timestamp.type of the topic) or set "
        "eventTime.column, or take alignment out of it. The others of the group are aligned without them",
    )


def test_a_record_that_is_dated_too_far_ahead_is_named_by_partition_and_offset_with_the_remedy() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": at(0.0), "taxis": at(1.0)})
    says(loop, names.SOURCE_FAR_AHEAD, "taxis", partition="rides/3", value=17.0)
    loop.acknowledged_reconcile()
    assert said(loop) == (
        TRUE,
        "EventTimeTooFarAhead",
        "source delays/taxis has records dated further ahead than eventTime.maxFuture (rides/3 at offset 17), which "
        "do not count in group trips; correct the clock of their producer and have retention or kafka-delete-records "
        "remove them, or raise maxFuture if they are right",
    )
    reports(loop, cars=at(0.0), taxis=at(1.0))
    assert said(loop)[1] == "WithinDrift"


def test_a_record_that_is_dated_too_far_ahead_is_named_beside_what_is_worse() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": at(0.0), "taxis": at(0.0)})
    says(loop, names.QUERY_WATERMARK_HELD_BY, "cars")
    says(loop, names.SOURCE_FAR_AHEAD, "taxis", partition="rides/3", value=17.0)
    loop.acknowledged_reconcile()
    status, reason, message = said(loop)
    assert (status, reason) == (TRUE, "WatermarkHeldBy")
    assert message.startswith("source delays/cars is silent")
    assert "so that state grows; source delays/taxis has records dated further ahead" in message
    assert message.count("rides/3 at offset 17") == 1


def test_before_a_query_has_planned_nobody_is_said_to_be_unable() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": {}, "taxis": {}})
    for name in ("cars", "taxis"):
        is_read_by(loop, name, "offsets")
    loop.acknowledged_reconcile()
    assert said(loop)[:2] == (UNKNOWN, "NoLimitHolds")


@pytest.mark.parametrize(
    ("event_time", "remedy"),
    [
        ({}, "give its records timestamps (message.timestamp.type of the topic) or set eventTime.column"),
        ({"column": "$.at"}, "correct eventTime.column or eventTime.format"),
    ],
)
def test_a_member_that_waits_for_event_times_is_named_with_where_to_look_and_what_to_do(
    event_time: dict[str, str], remedy: str
) -> None:
    loop = aligned({**member("cars"), "eventTime": event_time}, member("taxis"))
    for held in (1.0, 2.0):
        behind = at(0.0, watermark_lag_seconds=9999.0)
        loop.world.metrics.reports(sources={"cars": behind, "taxis": at(0.0)})
        loop.world.metrics.reports_held(held, "EventTime", source="cars")
        loop.acknowledged_reconcile()
    assert said(loop) == (
        UNKNOWN,
        "EventTimeUnknown",
        "source delays/cars waits for event times that group trips needs and that are not known yet; the driver's "
        f"log says why: see that its brokers answer, {remedy}, or take alignment out of it",
    )
    assert of(loop, "cars").held == "EventTime"
    assert of(loop, "cars").votes.watermark_lag is UNKNOWN, "more throughput would not help"


def test_without_a_limit_nobody_can_tell() -> None:
    loop = aligned(member("cars"), member("taxis"))
    floor = {"alignment_floor_timestamp_seconds": NOON}
    reports(loop, cars=floor, taxis=floor)
    assert said(loop) == (
        UNKNOWN,
        "NoLimitHolds",
        "no limit holds in group trips: fewer than two of its members have records to read and event times that are "
        "known",
    )


def test_groups_do_not_see_each_other() -> None:
    loop = aligned(member("a"), member("b"), member("c", group="other"), member("d", group="other"))
    reports(loop, a=at(0.0), b=at(3.0), c=at(0.0), d=at(60.0))
    status, reason, message = said(loop)
    assert (status, reason) == (FALSE, "DriftOverLimit")
    assert message.startswith("source delays/d is 1m ahead in group other")
    assert "delays/b" not in message


def test_a_group_spans_the_queries_of_an_application() -> None:
    both = [query(sources=[member("cars")]), query(name="fares", sources=[member("taxis")])]
    loop = Loop(declared=application(queries=both))
    loop.run_until_running()
    loop.world.metrics.reports(sources={"cars": at(5.0)})
    loop.world.metrics.reports("fares", sources={"taxis": at(0.0)})
    loop.acknowledged_reconcile()
    assert said(loop)[2] == "the 2 sources of group trips are within 5s of each other"


def test_a_silent_source_is_named_as_the_one_that_holds_the_watermark() -> None:
    loop = aligned(member("cars"), member("taxis"))
    loop.world.metrics.reports(sources={"cars": at(0.0), "taxis": at(0.0)})
    says(loop, names.QUERY_WATERMARK_HELD_BY, "taxis")
    loop.acknowledged_reconcile()
    assert delays(loop).watermark_held_by == "taxis"
    assert said(loop) == (
        TRUE,
        "WatermarkHeldBy",
        "source delays/taxis is silent: group trips goes on without it, and the watermark of query delays waits for "
        "it, so that state grows",
    )
    reports(loop, cars=at(0.0), taxis=at(0.0))
    assert delays(loop).watermark_held_by is None
