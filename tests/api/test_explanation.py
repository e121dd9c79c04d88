"""What `explain` says: what is in force once defaults and dependencies are worked out."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.api.explanation import explain
from headgate.api.update_modes import UpdateMode, update_mode_of
from headgate.api.validation import validate
from support.manifests import Manifest, application, query, source


def said(manifest: Manifest) -> str:
    accepted, findings = validate(manifest)
    assert accepted is not None, findings
    return "\n".join(
        f"{section.title}: [{sentence.update_mode}] {sentence.text}"
        for section in explain(accepted)
        for sentence in section.sentences
    )


def about_query(**settings: Any) -> str:
    return said(application(query(**settings)))


def about_source(reentry: Manifest | None = None, **settings: Any) -> str:
    return said(application(query(source(**settings), backlog={"reentry": reentry or {}})))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"main": {"file": "job.py", "arguments": ["--out", "x"]}}, "[Restart] runs job.py --out x"),
        (
            {"main": {"file": "job.py", "arguments": ["--out", "x", "--password", "y", "--token=z"]}},
            "[Restart] runs job.py --out x --password (hidden) --token=(hidden)",
        ),
        ({"image": "img:1"}, "[Restart] in the image img:1"),
        ({"driver": {"memory": "2g"}}, "[Restart] the driver has 1 core and 2g of heap"),
        ({"executor": {"instances": 3}}, "[Executors] 3 executors while no query is in backlog"),
        ({"duringBacklog": {"executor": {"instances": 8}}}, "[Executors] 8 executors while one is"),
        (
            {"sparkConf": {"spark.dynamicAllocation.enabled": "true"}},
            "[Executors] 2 executors at the start; then Spark decides",
        ),
        (
            {"duringBacklog": {"sparkConf": {"a": "1", "b": "2"}}},
            "[Restart] while a query is in backlog also sets a=1, b=2: the driver is restarted",
        ),
        ({"restart": {"policy": "Never"}}, "[Operator] the driver is never restarted"),
        (
            {"restart": {"maxRetries": 1}},
            "after a failure it is restarted, up to 1 time in a row: 10s after the first",
        ),
        ({"restart": {"policy": "Always"}}, "after any end of the driver it is restarted"),
        ({"stop": {"gracePeriod": "90s"}}, "a stop waits up to 1m30s for the running batch"),
        ({"suspend": True}, "[Operator] is suspended"),
        ({"sparkVersion": "4.3.0"}, "[Operator] expects Spark 4.3.0 in the image"),
        ({"sparkConf": {"a": "1", "a.password": "x"}}, "[Restart] sets a=1, a.password=(hidden)"),
        ({"ttlAfterFinished": "24h"}, "is deleted 24h after it has finished"),
        (
            {"metrics": {"source": "Driver", "onOutage": "Normal"}},
            "metrics are read from each driver directly",
        ),
    ],
)
def test_the_application_is_explained_with_the_update_mode_of_each_setting(
    settings: Manifest, line: str
) -> None:
    manifest = application()
    manifest["spec"] |= settings

    assert line in said(manifest)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "commits at the pace of the job's own trigger while it is live"),
        ({}, "in a backlog the same interval holds"),
        ({"checkpoint": {"interval": "5s"}}, "commits every 5s while it is live"),
        (
            {"checkpoint": {"interval": "50ms"}},
            "commits every 100ms (the trigger base: 50ms is shorter) while it is live",
        ),
        ({"checkpoint": {"interval": "50ms"}}, "while live a batch is sized to take at most 100ms"),
        (
            {"checkpoint": {"intervalDuringBacklog": "10ms"}},
            "in a backlog a batch is sized to take 100ms (the trigger base: 10ms is shorter), and the next one",
        ),
        ({"checkpoint": {"intervalDuringBacklog": "2m"}}, "in a backlog a batch is sized to take 2m"),
        ({"checkpoint": {"intervalDuringBacklog": "0s"}}, "in a backlog one batch spans what had piled up"),
        ({"checkpoint": {"minPause": "1s"}}, "waits at least 1s after each batch"),
        ({}, "while live a batch is sized to take at most 10s"),
        ({"checkpoint": {"interval": "5s"}}, "while live a batch is sized to take at most 5s"),
        ({"checkpoint": {"interval": "1m"}}, "while live a batch is sized to take at most 10s"),
        (
            {"batch": {"maxRecords": 5000}},
            "the first one of all has 5,000 records, each at most 4 times as many",
        ),
    ],
)
def test_a_query_is_explained_by_what_is_in_force(settings: Manifest, line: str) -> None:
    assert line in about_query(**settings)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "its lag puts the query in no backlog"),
        (
            {"backlog": {"watermarkLag": "5m", "pendingRecords": 1_000_000, "query": "up == 0"}},
            "is in backlog when its watermark is more than 5m behind, or more than 1,000,000 records wait, or the "
            "expression up == 0 gives a sample that is not zero",
        ),
        (
            {"backlog": {"watermarkLag": "5m", "pendingRecords": 1_000_000}},
            "once live, it comes back only after more than 10m behind or more than 2,000,000 records for 1m",
        ),
        (
            {"backlog": {"watermarkLag": "5m"}, "reentry": {"above": "1h", "dwell": "30s"}},
            "once live, it comes back only after more than 1h behind for 30s",
        ),
        (
            {"backlog": {"watermarkLag": "5m"}, "reentry": {"policy": "Never"}},
            "once live, its lag brings no backlog again before the next attempt",
        ),
        (
            {"rateLimit": {"recordsPerSecond": 50_000}},
            "with at most 50,000 records per second, live and in backlog",
        ),
        (
            {"rateLimit": {"recordsPerCheckpoint": 5, "duringBacklog": "Unlimited"}},
            "is read with at most 5 records per batch while live, without limit in backlog",
        ),
        (
            {"rateLimit": {"duringBacklog": {"recordsPerSecond": 0.5, "recordsPerCheckpoint": 9}}},
            "without limit while live, with at most 0.5 records per second and 9 records per batch in backlog",
        ),
        (
            {"alignment": {"group": "g", "maxDrift": "0s"}},
            "at most 0s of event time ahead of the slowest member of group g; holds the group for 1s",
        ),
        ({"paused": True}, "is paused: nothing is read from it"),
        ({"eventTime": {"column": "$.at", "format": "Avro"}}, "its event time is $.at (Avro payload)"),
        ({"kafka": {"publishGroup": "lag"}}, "published to Kafka as consumer group lag"),
    ],
)
def test_a_source_is_explained_by_what_is_in_force(settings: Manifest, line: str) -> None:
    assert line in about_source(**settings)


@pytest.mark.parametrize(
    ("limits", "is_saved_up"),
    [
        ({"recordsPerSecond": 1}, True),
        ({"recordsPerCheckpoint": 1}, False),
        ({"recordsPerCheckpoint": 1, "duringBacklog": "Unlimited"}, False),
        ({"recordsPerCheckpoint": 1, "duringBacklog": {"recordsPerSecond": 1}}, True),
    ],
)
def test_only_a_rate_is_said_to_be_saved_up(limits: Manifest, is_saved_up: bool) -> None:
    said_of_it = "saves up at most 10s of its rate while nothing is read" in about_source(rateLimit=limits)
    assert said_of_it is is_saved_up


def test_a_source_after_another_says_what_it_waits_for() -> None:
    manifest = application(query(source("history"), source("live", after="history")))

    assert "source live of query q: [Live] starts when history has been read to its end" in said(manifest)


@pytest.mark.parametrize(
    ("path", "update_mode"),
    [
        ("spec.image", UpdateMode.RESTART),
        ("spec.main.arguments", UpdateMode.RESTART),
        ("spec.driver.memory", UpdateMode.RESTART),
        ("spec.executor.memory", UpdateMode.RESTART),
        ("spec.executor.instances", UpdateMode.EXECUTORS),
        ("spec.duringBacklog.executor.instances", UpdateMode.EXECUTORS),
        ("spec.duringBacklog.sparkConf", UpdateMode.RESTART),
        ("spec.queries[].checkpoint.interval", UpdateMode.LIVE),
        ("spec.queries[].sources[]", UpdateMode.LIVE),
        ("spec.restart.backoff", UpdateMode.OPERATOR),
        ("spec.restart", UpdateMode.OPERATOR),
        ("spec.executor", UpdateMode.RESTART),
    ],
)
def test_a_setting_has_an_update_mode_and_an_object_the_dearest_of_its_settings(
    path: str, update_mode: UpdateMode
) -> None:
    assert update_mode_of(path) is update_mode
