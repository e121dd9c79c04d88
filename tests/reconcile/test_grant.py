"""Why a batch was granted so many records, by what the driver reports and the resource declares."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.reconcile.grant import grant_reason
from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from support.looping import application, query

MINUTE = {"checkpoint": {"interval": "5s", "intervalDuringBacklog": "1m"}}
ONE_BATCH = {"checkpoint": {"interval": "5s", "intervalDuringBacklog": "0s"}}
BEHIND = {"backlog": True, "interval_seconds": 60.0, "throughput": 68_000.0}
LIVE = {"backlog": False, "interval_seconds": 5.0, "throughput": 68_000.0}
SPANNING = {"backlog": True, "interval_seconds": 0.0, "throughput": 68_000.0}
MEMORY = "memory: a larger batch would spill, or did"
DEARER = "larger batches made records dearer, or a smaller one is tried"
WHOLE = "all that was pending: one batch spans the backlog"


def reason(declared: dict[str, Any], grant: float | None, **reported: Any) -> str | None:
    (of_query,) = application(queries=[query(**declared)]).spec.queries
    return grant_reason(of_query, QueryMetrics(sources={}, grant_records=grant, **reported))


@pytest.mark.parametrize(
    ("declared", "grant", "reported", "expected"),
    [
        (MINUTE, 4_080_000, BEHIND, "68k/s x 1m"),
        (MINUTE, 4_896_000, BEHIND, "68k/s x 1m12s"),
        (MINUTE, 2_040_000, BEHIND, "68k/s x 30s"),
        (MINUTE, 2_039_999, BEHIND, "grows towards 68k/s x 1m"),
        (MINUTE, 340_000, LIVE, "68k/s x 5s"),
        (MINUTE, 100_000, LIVE, "grows towards 68k/s x 5s"),
        (MINUTE, 1_200_000, BEHIND | {"memory_bound_records": 1_200_000.0}, MEMORY),
        (MINUTE, 2_400_000, BEHIND | {"memory_bound_records": 1_200_000.0}, MEMORY),
        (MINUTE, 4_080_000, BEHIND | {"memory_bound_records": 9_000_000.0}, "68k/s x 1m"),
        (MINUTE, 300_000, BEHIND | {"cost_bound_records": 300_000.0}, DEARER),
        (MINUTE, 4_080_000, BEHIND | {"cost_bound_records": 4_080_000.0}, DEARER),
        (MINUTE, 350_000, BEHIND | {"cost_bound_records": 300_000.0}, DEARER),
        (MINUTE, 300_000, BEHIND | {"cost_bound_records": 400_000.0}, "grows towards 68k/s x 1m"),
        (MINUTE, 300_000, BEHIND | {"cost_bound_records": 3e5, "memory_bound_records": 3e5}, MEMORY),
        (MINUTE, 100_000, BEHIND | {"throughput": None}, "batch.initialRecords: nothing is measured yet"),
        (
            MINUTE,
            100_001,
            BEHIND | {"throughput": None},
            "what earlier runs have shown: nothing is measured yet",
        ),
        (MINUTE | {"batch": {"maxRecords": 500_000}}, 500_000, BEHIND, "batch.maxRecords"),
        (ONE_BATCH, 90_000_000, SPANNING, WHOLE),
        (ONE_BATCH, 90_000_000, SPANNING | {"throughput": None}, WHOLE),
        (ONE_BATCH, 100_000_000, SPANNING, "batch.maxRecords"),
        (ONE_BATCH, 1_200_000, SPANNING | {"memory_bound_records": 1_200_000.0}, MEMORY),
        (ONE_BATCH, 9_000_000, SPANNING | {"memory_bound_records": 1_200_000.0}, WHOLE),
        ({"checkpoint": {}}, 680_000, LIVE | {"interval_seconds": 0.0}, "68k/s x 10s"),
        (MINUTE, None, BEHIND, None),
        (MINUTE, 4_080_000, {"throughput": 68_000.0}, "68k/s x 1m"),
    ],
    ids=[
        "throughput",
        "with a remainder",
        "half in fixed cost",
        "growing",
        "live",
        "growing while live",
        "bound by memory",
        "memory was learnt from it",
        "far below what memory bears",
        "bound by cost",
        "bound by cost, large",
        "bound by cost, with a remainder",
        "far below what cost bounds",
        "bound by memory as well",
        "first batch",
        "first batch after a restart",
        "largest",
        "one batch spans the backlog",
        "one batch, nothing measured",
        "one batch, largest",
        "one batch, halved for memory",
        "one batch, where growth had ended",
        "no interval",
        "nothing granted",
        "no interval known",
    ],
)
def test_a_grant_is_explained(
    declared: dict[str, Any], grant: float | None, reported: dict[str, Any], expected: str | None
) -> None:
    assert reason(declared, grant, **reported) == expected


@pytest.mark.parametrize(
    ("read_limit", "paused", "expected"),
    [
        ("gate", False, "unknown: a source that cannot be cut is read whole"),
        ("gate", None, "unknown: a source that cannot be cut is read whole"),
        ("gate", True, None),
        ("files", False, None),
        (None, None, None),
    ],
)
def test_a_grant_that_is_not_known_has_a_reason_where_a_source_cannot_be_cut(
    read_limit: str | None, paused: bool | None, expected: str | None
) -> None:
    (of_query,) = application(queries=[query()]).spec.queries
    sources = {"flights": SourceMetrics(read_limit=read_limit, paused=paused)}
    assert grant_reason(of_query, QueryMetrics(sources=sources)) == expected


AMOUNTS = st.none() | st.floats(0, 1e12)


@given(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, st.none() | st.booleans())
def test_whatever_a_driver_reports_is_explained_in_few_words_or_not_at_all(
    grant: float | None,
    throughput: float | None,
    memory: float | None,
    cost: float | None,
    interval: float | None,
    backlog: bool | None,
) -> None:
    said = reason(
        MINUTE,
        grant,
        throughput=throughput,
        memory_bound_records=memory,
        cost_bound_records=cost,
        interval_seconds=interval,
        backlog=backlog,
    )
    assert said is None or len(said) <= 128
