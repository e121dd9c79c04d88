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


def _template(role: str, rule: str, path: str, spec: dict[str, Any]) -> Refusal:
    title = f"{path} in the template of the {role}"
    return _spec(
        title, f"{role}-{rule}", f"{role}.podTemplate.spec.{path}", **{role: {"podTemplate": {"spec": spec}}}
    )


def _templates(role: str) -> tuple[Refusal, ...]:
    """What Headgate must own, by name: each field on its own."""
    groups = (
        ("serviceAccount", ("serviceAccount", "serviceAccountName", "automountServiceAccountToken")),
        ("hostIPC", ("hostIPC", "hostNetwork", "hostPID", "shareProcessNamespace")),
        ("nodeName", ("nodeName",)),
        ("restartPolicy", ("restartPolicy", "activeDeadlineSeconds")),
        ("terminationGracePeriodSeconds", ("terminationGracePeriodSeconds",)),
        ("enableServiceLinks", ("enableServiceLinks", "ephemeralContainers", "hostname", "subdomain")),
    )
    of_container = (
        ("image", ("image", "imagePullPolicy")),
        ("args", ("args", "command", "workingDir")),
        ("resources", ("resources",)),
        (
            "lifecycle",
            (
                "lifecycle",
                "livenessProbe",
                "ports",
                "readinessProbe",
                "restartPolicy",
                "startupProbe",
                "terminationMessagePath",
                "terminationMessagePolicy",
            ),
        ),
    )
    mount = {"name": "data", "mountPath": "/tmp"}
    own = {"name": role, "env": [{"name": "POD_IP", "value": "1.2.3.4"}]}
    return (
        *(
            _template(role, f"podTemplate-{rule}", name, {name: OWNED[name]})
            for rule, names in groups
            for name in names
        ),
        *(
            _template(
                role,
                f"podTemplate-container-{rule}",
                f"containers[{role}].{name}",
                {"containers": [{"name": role, name: OWNED[name]}]},
            )
            for rule, names in of_container
            for name in names
        ),
        _template(
            role, "podTemplate-containers", "containers[other].name", {"containers": [{"name": "other"}]}
        ),
        _template(
            role,
            "podTemplate-mounts",
            f"containers[{role}].volumeMounts[data].mountPath",
            {"containers": [{"name": role, "volumeMounts": [mount]}]},
        ),
        _template(role, "containers-env", f"containers[{role}].env[POD_IP].name", {"containers": [own]}),
        _template(
            role,
            "initContainers-env",
            "initContainers[x].env[HEADGATE_A].name",
            {"initContainers": [{"name": "x", "image": "x", "env": [{"name": "HEADGATE_A", "value": "a"}]}]},
        ),
        _template(
            role,
            "containers-privileged",
            f"containers[{role}].securityContext.privileged",
            {"containers": [{"name": role, "securityContext": {"privileged": True}}]},
        ),
        _template(
            role,
            "initContainers-privileged",
            "initContainers[x].securityContext.privileged",
            {"initContainers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]},
        ),
        _template(
            role,
            "podTemplate-initContainers",
            f"initContainers[{role}].name",
            {"initContainers": [{"name": role, "image": "x"}]},
        ),
        _template(
            role, "podTemplate-volumes", "volumes[tmp].name", {"volumes": [{"name": "tmp", "emptyDir": {}}]}
        ),
        _template(
            role,
            "podTemplate-hostPath",
            "volumes[x].hostPath",
            {"volumes": [{"name": "x", "hostPath": {"path": "/"}}]},
        ),
        *(
            _spec(
                f"{kind} of ours in the template of the {role}",
                f"{role}-podTemplate-{kind}",
                f"{role}.podTemplate.metadata.{kind}[headgate.dev/role]",
                **{role: {"podTemplate": {"metadata": {kind: {"headgate.dev/role": "x"}}}}},
            )
            for kind in ("labels", "annotations")
        ),
    )


OWNED: dict[str, Any] = {
    "activeDeadlineSeconds": 5,
    "args": ["x"],
    "automountServiceAccountToken": True,
    "command": ["x"],
    "enableServiceLinks": True,
    "ephemeralContainers": [],
    "hostIPC": True,
    "hostNetwork": True,
    "hostPID": True,
    "hostname": "x",
    "image": "x",
    "imagePullPolicy": "Always",
    "lifecycle": {},
    "livenessProbe": {},
    "nodeName": "x",
    "ports": [],
    "readinessProbe": {},
    "resources": {},
    "restartPolicy": "Never",
    "serviceAccount": "x",
    "serviceAccountName": "x",
    "shareProcessNamespace": True,
    "startupProbe": {},
    "subdomain": "x",
    "terminationGracePeriodSeconds": 5,
    "terminationMessagePath": "/x",
    "terminationMessagePolicy": "File",
    "workingDir": "/x",
}

REFUSALS = (
    *_templates("driver"),
    *_templates("executor"),
    *_property(
        "a claim for a driver on demand",
        "driver-claim",
        {"spark.kubernetes.driver.volumes.persistentVolumeClaim.x.options.claimName": "OnDemand"},
    ),
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
    Refusal(
        "batch of real-time mode below 5s",
        application(query(live={"batch": "4.999s"})),
        "live-batch-short",
        "spec.queries[q].live.batch",
    ),
    Refusal(
        "rate limit in real-time mode",
        application(query(source("free"), source("s", rateLimit=_LIMIT), live={"mode": "RealTime"})),
        "rateLimit-in-real-time",
        "spec.queries[q].sources[s].rateLimit",
    ),
    Refusal(
        "alignment in real-time mode",
        application(
            query(
                source("free"),
                source("s", alignment={"group": "g", "maxDrift": "1s"}),
                live={"mode": "RealTime"},
            )
        ),
        "alignment-in-real-time",
        "spec.queries[q].sources[s].alignment",
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
