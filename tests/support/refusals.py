"""Every refusal of the semantics, as a manifest that breaks one rule and the place where it should be said.

The same table is held against `validate` and against Kubernetes' own code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.manifests import Manifest, application, query, source


@dataclass(frozen=True)
class Refusal:
    """What breaks which rule, and where."""

    title: str
    manifest: Manifest
    rule: str
    path: str


def _checkpoint(title: str, rule: str, field: str, **checkpoint: str) -> Refusal:
    manifest = application(query(checkpoint=checkpoint))
    return Refusal(title, manifest, rule, f"spec.queries[q].checkpoint.{field}")


def _source(title: str, rule: str, path: str, **settings: Any) -> Refusal:
    return Refusal(title, application(query(source(**settings))), rule, f"spec.queries[q].sources[s].{path}")


def _spec(title: str, rule: str, path: str, **settings: object) -> Refusal:
    return Refusal(title, application(**settings), rule, f"spec.{path}")


_LAG = {"watermarkLag": "5m", "pendingRecords": 1000}
_LIMIT = {"recordsPerCheckpoint": 1000}


def _property(title: str, rule: str, conf: dict[str, str]) -> tuple[Refusal, Refusal]:
    """The same property in both places; the first of `conf` is the one that is refused."""
    key = next(iter(conf))
    return (
        _spec(title, f"spec-sparkConf-{rule}", f"sparkConf[{key}]", sparkConf=conf),
        _spec(
            f"{title} in a backlog",
            f"duringBacklog-sparkConf-{rule}",
            f"duringBacklog.sparkConf[{key}]",
            duringBacklog={"sparkConf": conf},
        ),
    )


REFUSALS = (
    *_property("a master of its own", "master", {"spark.master": "k8s://https://elsewhere"}),
    *_property("an image as a property", "image", {"spark.kubernetes.container.image": "x"}),
    *_property("another namespace", "wiring", {"spark.kubernetes.namespace": "x"}),
    *_property("a number of executors as a property", "instances", {"spark.executor.instances": "9"}),
    _spec(
        "executors in a backlog where Spark decides",
        "duringBacklog-executor-dynamicAllocation",
        "duringBacklog.executor",
        sparkConf={"spark.dynamicAllocation.enabled": "true"},
        duringBacklog={"executor": {"instances": 20}},
    ),
    *_property("another driver host", "wiring", {"spark.driver.host": "127.0.0.1"}),
    *_property(
        "another identity", "identity", {"spark.kubernetes.authenticate.driver.serviceAccountName": "x"}
    ),
    _spec(
        "another checkpoint in a backlog",
        "duringBacklog-sparkConf-checkpoint",
        "duringBacklog.sparkConf[spark.sql.streaming.checkpointLocation]",
        duringBacklog={"sparkConf": {"spark.sql.streaming.checkpointLocation": "s3a://b/c"}},
    ),
    _checkpoint("interval 0s", "checkpoint-interval-short", "interval", interval="0s"),
    _checkpoint("interval below 10ms", "checkpoint-interval-short", "interval", interval="9.999999ms"),
    _checkpoint(
        "backlog interval between 0s and 10ms",
        "intervalDuringBacklog-short",
        "intervalDuringBacklog",
        intervalDuringBacklog="9ms",
    ),
    _checkpoint(
        "backlog interval below interval",
        "intervalDuringBacklog-below-interval",
        "intervalDuringBacklog",
        interval="5s",
        intervalDuringBacklog="4999ms",
    ),
    _source(
        "watermark lag 0s",
        "backlog-watermarkLag-zero",
        "backlog.watermarkLag",
        backlog={"watermarkLag": "0s"},
    ),
    Refusal(
        "re-entry at 0s",
        application(query(backlog={"reentry": {"above": "0s"}})),
        "reentry-above-zero",
        "spec.queries[q].backlog.reentry.above",
    ),
    Refusal(
        "re-entry below the largest lag of the sources",
        application(
            query(
                source("a", backlog={"watermarkLag": "1m"}),
                source("b", backlog=_LAG),
                backlog={"reentry": {"above": "4m"}},
            )
        ),
        "reentry-above-below-threshold",
        "spec.queries[q].backlog.reentry.above",
    ),
    Refusal(
        "re-entry below the largest pending of the sources",
        application(query(source(backlog=_LAG), backlog={"reentry": {"pendingRecordsAbove": 999}})),
        "reentry-pendingRecordsAbove-below-threshold",
        "spec.queries[q].backlog.reentry.pendingRecordsAbove",
    ),
    Refusal(
        "target duration 0s",
        application(query(batch={"targetDuration": "0s"})),
        "batch-targetDuration-short",
        "spec.queries[q].batch.targetDuration",
    ),
    _source("rate limit of nothing", "rateLimit-empty", "rateLimit", rateLimit={"maxBurst": "1s"}),
    _source(
        "burst of 0s",
        "rateLimit-maxBurst-zero",
        "rateLimit.maxBurst",
        rateLimit={"recordsPerSecond": 1, "maxBurst": "0s"},
    ),
    Refusal(
        "records per batch that slow a backlog down",
        application(
            query(
                source("free"),
                source("s", rateLimit=_LIMIT),
                checkpoint={"interval": "5s", "intervalDuringBacklog": "2m"},
            )
        ),
        "recordsPerCheckpoint-slows-backlog",
        "spec.queries[q].sources[s].rateLimit.recordsPerCheckpoint",
    ),
    Refusal(
        "rate with one batch for the backlog",
        application(
            query(source(rateLimit={"recordsPerSecond": 1}), checkpoint={"intervalDuringBacklog": "0s"})
        ),
        "rateLimit-cuts-single-batch",
        "spec.queries[q].sources[s].rateLimit",
    ),
    Refusal(
        "other limits with one batch for the backlog",
        application(
            query(
                source(rateLimit={"recordsPerSecond": 1, "duringBacklog": {"recordsPerSecond": 5}}),
                checkpoint={"interval": "1s", "intervalDuringBacklog": "0.0s"},
            )
        ),
        "rateLimit-cuts-single-batch",
        "spec.queries[q].sources[s].rateLimit",
    ),
    _source(
        "update interval 0s",
        "alignment-updateInterval-zero",
        "alignment.updateInterval",
        alignment={"group": "g", "maxDrift": "0s", "updateInterval": "0s"},
    ),
    _source(
        "idle at once in a group",
        "alignment-idleAfter-zero",
        "alignment.idleAfter",
        alignment={"group": "g", "maxDrift": "0s", "idleAfter": "0ms"},
    ),
    _source("after itself", "after-itself", "after", after="s"),
    Refusal(
        "after a source that is not listed",
        application(query(source("live", after="histroy"), source("history"))),
        "after-unlisted",
        "spec.queries[q].sources[live].after",
    ),
    *(
        _source(
            f"a consumer group of {len(blank)} blanks",
            "kafka-publishGroup-blank",
            "kafka.publishGroup",
            kafka={"publishGroup": blank},
        )
        for blank in ("", " \t")
    ),
    _spec(
        "samples stale at once", "metrics-staleAfter-zero", "metrics.staleAfter", metrics={"staleAfter": "0s"}
    ),
    _spec("no pause before a restart", "restart-backoff-zero", "restart.backoff", restart={"backoff": "0s"}),
    _spec(
        "failures forgotten at once",
        "restart-resetAfter-zero",
        "restart.resetAfter",
        restart={"resetAfter": "0s"},
    ),
    _spec(
        "longest pause below the first, which is a default",
        "restart-maxBackoff-below-backoff",
        "restart.maxBackoff",
        restart={"backoff": "6m"},
    ),
)
