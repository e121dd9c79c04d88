"""The models: defaults to the letter of the semantics, and manifests that read back the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headgate.api.application import SparkApplication
from headgate.api.load import load_application
from headgate.api.query import Query
from headgate.api.source import Source
from headgate.api.validation import validate
from support.manifests import application, query, source

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights.yaml"


def read(manifest: dict[str, Any]) -> SparkApplication:
    accepted, findings = validate(manifest)
    assert accepted is not None, findings
    return accepted


def value_at(model: Any, path: str) -> Any:
    for name in path.split("."):
        model = getattr(model, name)
    return model


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("checkpoint.interval", None),
        ("checkpoint.interval_during_backlog", None),
        ("checkpoint.min_pause", timedelta(0)),
        ("batch.target_duration", timedelta(seconds=10)),
        ("batch.initial_records", 100_000),
        ("batch.max_growth", 4),
        ("batch.max_records", 100_000_000),
        ("backlog.reentry.above", None),
        ("backlog.reentry.pending_records_above", None),
        ("backlog.reentry.dwell", timedelta(minutes=1)),
        ("backlog.reentry.policy", "Allowed"),
        ("sources", ()),
    ],
)
def test_a_query_has_the_documented_default(path: str, expected: object) -> None:
    assert value_at(Query(name="q"), path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("backlog.watermark_lag", None),
        ("backlog.pending_records", None),
        ("backlog.query", None),
        ("rate_limit", None),
        ("alignment", None),
        ("event_time.max_future", timedelta(hours=1)),
        ("paused", False),
        ("after", None),
    ],
)
def test_a_source_has_the_documented_default(path: str, expected: object) -> None:
    assert value_at(Source(name="s"), path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("stop.grace_period", timedelta(minutes=2)),
        ("metrics.source", "Prometheus"),
        ("metrics.stale_after", timedelta(minutes=1)),
        ("metrics.on_outage", "Hold"),
        ("restart.policy", "OnFailure"),
        ("suspend", False),
        ("ttl_after_finished", None),
    ],
)
def test_an_application_has_the_documented_default(path: str, expected: object) -> None:
    assert value_at(read(application()).spec, path) == expected


def test_limits_and_groups_have_their_documented_defaults() -> None:
    limited = source(rateLimit={"recordsPerSecond": 1}, alignment={"group": "g", "maxDrift": "1h"})
    (only,) = read(application(query(limited))).spec.queries[0].sources

    assert only.rate_limit is not None
    assert only.rate_limit.max_burst == timedelta(seconds=10)
    assert only.alignment is not None
    assert only.alignment.update_interval == timedelta(seconds=1)
    assert only.alignment.idle_after is None


def test_the_example_reads_back_from_its_own_manifest() -> None:
    flights = load_application(FLIGHTS)

    assert read(flights.to_manifest()) == flights


def test_a_model_cannot_be_changed() -> None:
    flights = load_application(FLIGHTS)

    with pytest.raises(ValidationError, match="frozen"):
        flights.spec.suspend = True  # type: ignore[misc]


def test_a_field_without_a_value_counts_as_not_given() -> None:
    given = application(
        query(checkpoint=None, backlog={"reentry": None}, sources=None), restart=None, sparkConf={"a": None}
    )

    assert read(given).spec == read(application(query())).spec


def test_status_of_a_later_version_can_be_read_back() -> None:
    later = application() | {
        "status": {"state": "Running", "newer": 1, "queries": [{"name": "q", "newer": {}}]}
    }

    status = read(later).status

    assert status is not None
    assert [only.name for only in status.queries] == ["q"]


def test_the_name_that_a_field_has_in_python_is_no_field_of_the_resource() -> None:
    accepted, (finding,) = validate(application(query(checkpoint={"interval_during_backlog": "1ms"})))

    assert accepted is None
    assert finding.message == "unknown field; did you mean intervalDuringBacklog?"
