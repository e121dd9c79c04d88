"""The resource, translated into what decisions compute with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.api.application import SparkApplication
from headgate.api.load import load_application
from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.policy import OnOutage, QueryPolicy, SourcePolicy
from headgate.reconcile.policy import query_policies, restart_policy
from headgate_contract import RateControl, ReentryControl

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights.yaml"


def application(queries: list[dict[str, Any]], paused: str | None = None, **spec: Any) -> SparkApplication:
    metadata: dict[str, Any] = {"name": "app"}
    if paused is not None:
        metadata["annotations"] = {"headgate.dev/paused": paused}
    main = {"file": "local:///job.py"}
    return SparkApplication.model_validate(
        {"metadata": metadata, "spec": {"main": main, "queries": queries, **spec}}, strict=False
    )


def test_the_example_in_numbers() -> None:
    policies = query_policies(load_application(FLIGHTS))

    assert policies == {
        "delays": QueryPolicy(
            name="delays",
            interval_seconds=5.0,
            interval_during_backlog_seconds=120.0,
            reentry=ReentryControl(above_seconds=600.0, dwell_seconds=60.0),
            stale_after_seconds=60.0,
            on_outage=OnOutage.HOLD,
            sources=(
                SourcePolicy(
                    name="flights",
                    watermark_lag_seconds=300.0,
                    pending_records=1_000_000,
                    rate_limit=RateControl(records_per_second=50_000),
                    rate_limit_during_backlog=None,
                ),
                SourcePolicy(name="weather"),
            ),
        )
    }


def test_what_is_not_set_stays_unset() -> None:
    policies = query_policies(application([{"name": "q", "sources": [{"name": "s"}]}]))
    assert policies == {"q": QueryPolicy(name="q", sources=(SourcePolicy(name="s"),))}


def test_every_setting_of_a_verdict_arrives() -> None:
    limit = {
        "recordsPerSecond": 1.5,
        "recordsPerCheckpoint": 10,
        "duringBacklog": {"recordsPerSecond": 20.0, "recordsPerCheckpoint": 30},
    }
    query = {
        "name": "q",
        "checkpoint": {"interval": "250ms", "intervalDuringBacklog": "0s"},
        "backlog": {"reentry": {"pendingRecordsAbove": 700, "dwell": "5s", "policy": "Never"}},
        "sources": [{"name": "s", "backlog": {"query": "up == 0"}, "paused": True, "rateLimit": limit}],
    }

    (policy,) = query_policies(
        application([query], metrics={"staleAfter": "30s", "onOutage": "Normal"})
    ).values()

    assert policy == QueryPolicy(
        name="q",
        interval_seconds=0.25,
        interval_during_backlog_seconds=0.0,
        reentry=ReentryControl(allowed=False, pending_records_above=700, dwell_seconds=5.0),
        stale_after_seconds=30.0,
        on_outage=OnOutage.NORMAL,
        sources=(
            SourcePolicy(
                name="s",
                query_configured=True,
                paused=True,
                rate_limit=RateControl(records_per_second=1.5, records_per_checkpoint=10),
                rate_limit_during_backlog=RateControl(records_per_second=20.0, records_per_checkpoint=30),
            ),
        ),
    )


def test_the_annotation_adds_to_what_is_declared() -> None:
    queries = [{"name": "q", "sources": [{"name": "a", "paused": True}, {"name": "b"}, {"name": "c"}]}]

    (policy,) = query_policies(application(queries, paused="q/b,r/c")).values()

    assert {source.name: source.paused for source in policy.sources} == {"a": True, "b": True, "c": False}


def test_restarts_in_numbers() -> None:
    declared = application(
        [], restart={"policy": "Always", "maxRetries": 2, "backoff": "1s", "maxBackoff": "8s"}
    )

    assert restart_policy(declared.spec.restart) == RestartPolicy(
        policy=RestartWhen.ALWAYS,
        max_retries=2,
        backoff_seconds=1.0,
        max_backoff_seconds=8.0,
        reset_after_seconds=1800.0,
    )
