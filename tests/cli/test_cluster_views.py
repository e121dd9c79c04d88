"""How applications of a cluster are shown: every state as the loop reports it, and a dash for what is unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from headgate.cli.cluster.application import ClusterApplication, worst_first
from headgate.cli.view.application import describe
from headgate.cli.view.columns import columns
from headgate.cli.view.overview import overview
from headgate.cli.view.words import age
from support.looping import START, Loop
from support.manifests import application, query, source
from support.states import STATES

NOW = START + 3600


def stored(loop: Loop) -> ClusterApplication:
    """The application as the API server would hold it after the last reconcile."""
    declared = loop.application.to_manifest()
    declared["metadata"] |= {"namespace": "default", "creationTimestamp": "2023-11-14T21:13:20Z"}
    assert loop.memory.status is not None
    status = loop.memory.status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return ClusterApplication({**declared, "status": status})


def with_status(name: str = "app", **status: Any) -> ClusterApplication:
    manifest = application(query(source("flights")))
    metadata = {"name": name, "namespace": "default", "generation": 2}
    return ClusterApplication({**manifest, "metadata": metadata, "status": status})


def described(found: ClusterApplication, events: Any = ()) -> str:
    return "\n".join(line.plain for line in describe(found, events, NOW))


def in_one_line(found: ClusterApplication) -> dict[str, str]:
    heading, row = overview([found], NOW, everywhere=False)
    return dict(zip(heading.plain.split(), row.plain.split(), strict=True))


# Every state


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        ("starting", ["state      Starting, attempt 1", "Reconciling       True"]),
        (
            "running",
            ["state      Running, attempt 1", "query delays  live", "behind    lag 2s, 120 records pending"],
        ),
        ("in-backlog", ["query delays  BACKLOG by WatermarkLag", "WatermarkLag yes, PendingRecords yes"]),
        ("control-pending", ["published, 1 in force"]),
        ("metrics-gone", ["MetricsAvailable  False"]),
        ("stopping", ["Stopping, attempt 1, suspended in spec"]),
        ("suspended", ["Suspended, attempt 1, suspended in spec"]),
        ("backing-off", ["BackingOff, attempt 1"]),
        ("completed", ["Completed, attempt 1"]),
        ("failed", ["Failed, attempt 1", "Stalled           True"]),
        (
            "batch-too-large",
            ["Failed, attempt 1", "Stalled           True     BatchTooLarge", "executor.memory"],
        ),
        ("checkpoint-in-use", ["BackingOff, attempt 2", "Stalled           True     CheckpointInUse"]),
    ],
)
def test_each_state_is_told_as_the_loop_reports_it(state: str, lines: list[str]) -> None:
    text = described(stored(STATES[state]()))

    for line in lines:
        assert line in text, text


@pytest.mark.parametrize("state", STATES)
def test_each_state_fits_one_line(state: str) -> None:
    found = stored(STATES[state]())

    row = in_one_line(found)

    assert row["NAME"] == "flights"
    assert row["STATE"] == found.status.state


def test_a_query_in_backlog_is_summed_up() -> None:
    row = in_one_line(stored(STATES["in-backlog"]()))

    assert (row["BACKLOG"], row["LAG"], row["PENDING"], row["INTERVAL"]) == ("WatermarkLag", "1h", "4M", "2m")


# What is unknown, and what is remarkable


def test_an_application_that_no_operator_has_seen_says_so() -> None:
    found = with_status()

    assert "not seen by any operator yet; check that one runs and serves this namespace" in described(found)
    assert in_one_line(found) == {
        "NAME": "app",
        "STATE": "Unknown",
        **dict.fromkeys(
            [
                "READY",
                "EXECUTORS",
                "QUERY",
                "BACKLOG",
                "LAG",
                "PENDING",
                "RATE",
                "INTERVAL",
                "ETA",
                "HELD-BY",
                "AGE",
            ],
            "-",
        ),
    }


def test_a_change_that_is_not_acted_upon_yet_is_told() -> None:
    text = described(with_status(state="Running", observedGeneration=1))

    assert "generation 2 is not acted upon yet; the status speaks of 1" in text


def test_what_is_not_known_of_a_query_is_a_dash_and_never_zero() -> None:
    text = described(with_status(state="Running", queries=[{"name": "q", "sources": [{"name": "flights"}]}]))

    assert "interval  -, last change not known to be in force" in text
    assert "batch     - records granted, - measured" in text
    assert "behind    lag -, - records pending, eta -" in text
    assert "flights    -        -           -  -        -" in text
    assert "owner" not in text


def test_everything_that_is_known_is_shown() -> None:
    flights = {
        "name": "flights",
        "outOfReach": "query q: source flights: broker:9092 has not answered yet",
        "votes": {"phase": "Unknown", "watermarkLag": "True", "query": "False"},
        "watermarkHeldByPartition": "flights/7",
        "snapshotProblem": "partition flights/7 ends with a record of a snapshot",
        "rateLimit": 50_000,
        "held": "Alignment",
        "alignment": {
            "group": "air",
            "drift": "12m",
            "heldBy": "q/weather",
            "heldByPartition": "w/2",
            "limit": "2026-03-01T08:00:00Z",
        },
    }
    found = with_status(
        state="Running",
        headgateVersion="0.2.0",
        executorInstances=8,
        executorsRunning=3,
        queries=[
            {
                "name": "q",
                "owner": "ada",
                "backlog": True,
                "reason": "WatermarkLag",
                "since": datetime.fromtimestamp(NOW - 720, UTC).isoformat(),
                "changes": 3,
                "acknowledged": True,
                "triggerProblem": "it is governed at its own, every 3600000 ms",
                "realTime": False,
                "realTimeRefused": "it needs 9 task slots",
                "grant": 3_200_000,
                "grantReason": "51k/s x 1m3s",
                "throughput": 51_000,
                "watermarkHeldBy": "weather",
                "futureBatches": 1234,
                "sources": [flights],
            }
        ],
    )
    text = described(found)

    assert "headgate   0.2.0" in text
    assert "executors  3 running, 8 asked for; if that lasts, ExecutorsMissing says why" in text
    assert "query q  BACKLOG by WatermarkLag for 12m, 3 changes in this attempt" in text
    assert "owner      ada (Spark Connect)" in text
    assert "last change in force" in text
    assert "batch      3.2M records granted (51k/s x 1m3s), 51k/s measured" in text
    assert "watermark  held back by weather, so that state grows" in text
    assert "50k/s  Alignment  Phase unknown, WatermarkLag yes, Query no" in text
    assert (
        "flights: group air, 12m ahead of the slowest, waits for q/weather (partition w/2), limit 2026-03-01T08:00:00"
        in text
    )
    assert "  query q: source flights: broker:9092 has not answered yet" in text
    assert "  flights: furthest behind is partition flights/7" in text
    assert "  flights: partition flights/7 ends with a record of a snapshot" in text
    assert "trigger    it is governed at its own, every 3600000 ms" in text
    assert "real-time  it needs 9 task slots" in text
    assert "future     1,234 batches with records dated further ahead than maxFuture" in text


@pytest.mark.parametrize(
    ("status", "row", "told"),
    [
        ({"realTime": True}, "No (real-time)", "query q  live in real-time mode"),
        ({"realTime": False}, "No", "query q  live"),
        ({"realTime": True, "backlog": True, "reason": "Query"}, "Query", "query q  BACKLOG by Query"),
    ],
)
def test_a_query_that_is_live_in_real_time_mode_says_so(status: dict[str, Any], row: str, told: str) -> None:
    backlog = status.get("reason", "No")
    found = with_status(summary={"query": "q", "backlog": backlog}, queries=[{"name": "q", **status}])
    line = overview([found], NOW, everywhere=False)[1].plain

    assert f"  {row}  " in line
    assert any(each.rstrip() == told for each in described(found).splitlines())


@pytest.mark.parametrize(
    ("asked", "running", "shown"), [(8, 3, "3/8"), (8, 8, "8/8"), (8, None, "-/8"), (None, None, "-")]
)
def test_executors_are_shown_against_those_that_were_asked_for(
    asked: int | None, running: int | None, shown: str
) -> None:
    told = {"executorInstances": asked, "executorsRunning": running}
    row = in_one_line(with_status(**{name: count for name, count in told.items() if count is not None}))

    assert row["EXECUTORS"] == shown


@pytest.mark.parametrize(
    ("query_status", "shown"),
    [
        ({"sources": [{"name": "a"}, {"name": "b", "held": "RateLimit"}]}, "RateLimit"),
        (
            {"sources": [{"name": "a", "held": "Alignment", "alignment": {"group": "g", "heldBy": "q/b"}}]},
            "Alignment(q/b)",
        ),
        ({"watermarkHeldBy": "b"}, "Watermark(b)"),
        ({}, "-"),
    ],
    ids=["rate", "alignment", "watermark", "nothing"],
)
def test_what_holds_a_query_is_one_word_with_the_one_that_it_waits_for(
    query_status: dict[str, Any], shown: str
) -> None:
    found = with_status(summary={"query": "q"}, queries=[{"name": "q", **query_status}])

    assert in_one_line(found)["HELD-BY"] == shown


@pytest.mark.parametrize(
    ("declared", "annotation", "shown"),
    [(True, "", "Paused (spec)"), (False, "q/flights", "Paused (annotation)")],
)
def test_a_pause_is_told_with_where_to_lift_it(declared: bool, annotation: str, shown: str) -> None:
    manifest = application(query(source("flights", paused=declared)))
    manifest["metadata"] |= {"namespace": "default", "annotations": {"headgate.dev/paused": annotation}}
    held = {"name": "q", "sources": [{"name": "flights", "held": "Paused"}]}

    assert shown in described(ClusterApplication({**manifest, "status": {"queries": [held]}}))


def test_what_people_asked_for_is_shown() -> None:
    manifest = application(query(source("flights")))
    asked = {"headgate.dev/paused": "q/flights,a/b", "headgate.dev/checkpoint": "2026-03-01T08:00:00Z"}
    manifest["metadata"] |= {"namespace": "default", "annotations": asked}

    text = described(ClusterApplication(manifest))

    assert "paused      a/b, q/flights" in text
    assert "checkpoint  asked for: 2026-03-01T08:00:00Z" in text


def test_the_age_of_the_status_is_what_the_api_server_noted() -> None:
    manifest = application()
    written = datetime.fromtimestamp(NOW - 12, UTC).isoformat()
    manifest["metadata"] |= {
        "namespace": "default",
        "managedFields": [
            {"manager": "headgate", "subresource": "status", "time": written},
            {"manager": "kubectl", "time": datetime.fromtimestamp(NOW - 1, UTC).isoformat()},
        ],
    }

    assert "status    written 12s ago" in described(ClusterApplication(manifest))


def event(ago: float, **members: Any) -> dict[str, Any]:
    moment = datetime.fromtimestamp(NOW - ago, UTC).isoformat()
    return {"metadata": {"creationTimestamp": moment}, "reason": "Started", "message": "x", **members}


def test_the_last_events_are_shown_in_the_order_in_which_they_were_seen() -> None:
    seen = datetime.fromtimestamp(NOW - 1, UTC).isoformat()
    events = [
        event(3.0, message="third"),
        event(60.0, message="last", series={"lastObservedTime": seen, "count": 5}),
        *(event(100.0 + number, message=f"old {number}") for number in range(20)),
        event(30.0, message="second\nline", type="Warning", count=1, lastTimestamp=None),
    ]

    shown = described(with_status(), events).partition("events\n")[2].splitlines()

    assert len(shown) == 10
    assert shown[-3:] == [
        "  30s ago    Started  second line",
        "  3s ago     Started  third",
        "  1s ago     Started  last (5 times)",
    ]


def test_no_events_and_events_that_cannot_be_read_are_told_apart() -> None:
    assert described(with_status()).endswith("none; the API server keeps them for an hour")
    assert described(with_status(), "not shown: forbidden").endswith("not shown: forbidden")


# Worst first


def lagging(lag: str, **members: Any) -> list[dict[str, Any]]:
    return [{"name": "q", "backlog": True, "reason": "WatermarkLag", "watermarkLag": lag, **members}]


def condition(type_: str, status: str) -> list[dict[str, Any]]:
    return [{"type": type_, "status": status, "reason": "R", "lastTransitionTime": "2026-03-01T08:00:00Z"}]


def test_what_needs_a_look_comes_first_and_what_rests_last() -> None:
    in_order = [
        with_status("failed", state="Failed"),
        with_status("stalled", state="Suspended", conditions=condition("Stalled", "True")),
        with_status("backing-off", state="BackingOff"),
        with_status("unreadable", state="Hibernating"),
        with_status("unseen"),
        with_status("never", state="Running", queries=lagging("1s", eta="never")),
        with_status("blind", state="Running", conditions=condition("MetricsAvailable", "False")),
        with_status("far-behind", state="Running", queries=lagging("2h", eta="5m")),
        with_status("a-little-behind", state="Running", queries=lagging("10m")),
        with_status("starting", state="Starting"),
        with_status("live-and-slower", state="Running", queries=[{"name": "q", "watermarkLag": "2s"}]),
        with_status("live", state="Running"),
        with_status("at-rest", state="Suspended", queries=lagging("9h", eta="never")),
        with_status("completed", state="Completed"),
    ]

    shuffled = sorted(in_order, key=lambda each: each.name[::-1])

    assert [each.name for each in worst_first(shuffled)] == [each.name for each in in_order]


# Columns and ages

CELLS = st.text(st.characters(categories=["L", "N"]), max_size=5)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5), st.sets(st.integers(0, 2)))
def test_columns_begin_and_end_at_the_same_place_in_each_line(
    rows: list[tuple[str, str, str]], right: set[int]
) -> None:
    widths = [max(Text(row[number]).cell_len for row in rows) for number in range(3)]

    for row, line in zip(rows, columns(rows, right=frozenset(right)), strict=True):
        padded = [
            " " * (width - Text(cell).cell_len) + cell
            if number in right
            else cell + " " * (width - Text(cell).cell_len)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        assert line.plain == "  ".join(padded).rstrip(" ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5.0, "0s"),
        (0.0, "0s"),
        (12.9, "12s"),
        (200.0, "3m20s"),
        (599.0, "9m59s"),
        (600.0, "10m"),
        (7199.0, "119m"),
        (7200.0, "2h"),
        (172_799.0, "47h"),
        (172_800.0, "2d"),
    ],
)
def test_an_age_has_one_unit_or_two(seconds: float, text: str) -> None:
    assert age(seconds) == text
