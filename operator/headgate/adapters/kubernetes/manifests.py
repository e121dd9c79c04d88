"""The object that makes a driver: its pod, with what Spark is to find there in its environment.

Written by the operator itself, so that a start costs one call and no JVM. The driver runs in client mode: the
pod is the driver, and its executors are Spark's own, owned by it, so that they go with it. Both run as the
restricted Pod Security Standard asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from headgate.adapters.kubernetes import customized
from headgate.adapters.kubernetes.checkpoint_locations import checkpoint_locations
from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import (
    BLOCK_MANAGER_PORT,
    CONTAINER,
    CONTROL,
    DRIVER_PORT,
    LOCATIONS,
    REVISION,
    UI_PORT,
    pod_labels,
)
from headgate.adapters.kubernetes.properties import (
    DriverDefaults,
    driver_memory_mib,
    image_of,
    properties_text,
    spark_properties,
)
from headgate.adapters.kubernetes.template import with_template
from headgate.api.application import API_VERSION, KIND
from headgate.api.labels import EXECUTOR, driver_name
from headgate.api.property_rules import is_local
from headgate.decision.situation import SCRIPT_SECONDS
from headgate.key import Key
from headgate.reconcile.launch import Launch
from headgate_contract import ControlDocument
from headgate_contract.exit_codes import OOM_KILLED, PREVIOUS_END
from headgate_contract.handover import EXECUTOR_TEMPLATE, LINEAGE, SPARK_PROPERTIES
from headgate_contract.listening import DEFAULT_PORT
from headgate_contract.receiving import write

CONTROL_FOLDER: Final = "/etc/headgate/control"
CONTROL_FILE: Final = "document.json"
WORK: Final = "/var/headgate/work"
"""Where driver and executors run: a folder of their own that they may write to, as to `/tmp`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The application, as its driver's objects name it."""

    key: Key
    uid: str

    def reference(self) -> Manifest:
        """Return the owner reference: with the application, its objects go."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.key.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStart:
    """All that the objects of one attempt are made from."""

    owner: Owner
    launch: Launch
    attempt: int
    document: ControlDocument
    defaults: DriverDefaults
    follows_oom_kill: bool = False
    """Whether all of the attempt before it was killed for want of memory."""


def driver_pod(start: DriverStart) -> Manifest:
    conf, application = start.launch.spark_conf, start.owner.key
    locations = checkpoint_locations(conf, start.document.queries)
    annotations = {CONTROL: write(start.document), REVISION: start.launch.revision}
    if locations:
        annotations[LOCATIONS] = "\n".join(locations)
    metadata = {
        "name": driver_name(application.name, start.attempt),
        "namespace": application.namespace,
        "labels": customized.marks(conf, "label") | pod_labels(application, start.attempt),
        "ownerReferences": [start.owner.reference()],
        "annotations": customized.marks(conf, "annotation") | annotations,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod_spec(start)}
    return with_template(pod, start.launch.driver_template)


def executor_template(start: DriverStart) -> Manifest:
    """Return what Spark makes executors after; it adds image, resources and environment itself."""
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": pod_labels(start.owner.key, start.attempt, role=EXECUTOR, manager="spark"),
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _grace_seconds(start),
            "securityContext": _pod_security(start.defaults),
            "containers": [
                {
                    "name": EXECUTOR,
                    "workingDir": WORK,
                    "securityContext": _container_security(),
                    "volumeMounts": _writable_mounts(),
                }
            ],
            "volumes": _writable_volumes(start.launch.executor_scratch),
        },
    }
    return with_template(pod, start.launch.executor_template)


def _grace_seconds(start: DriverStart) -> int:
    """Return how long a pod may take to end: a node that is drained gives as long as a stop of ours does."""
    return int(start.document.grace_period_seconds + SCRIPT_SECONDS)


def _pod_spec(start: DriverStart) -> Manifest:
    control = {"fieldPath": f"metadata.annotations['{CONTROL}']"}
    return {
        "restartPolicy": "Never",
        "serviceAccountName": start.defaults.service_account,
        "automountServiceAccountToken": not is_local(start.launch.spark_conf),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _grace_seconds(start),
        "securityContext": _pod_security(start.defaults),
        "containers": [_driver_container(start)],
        "volumes": [
            {"name": "control", "downwardAPI": {"items": [{"path": CONTROL_FILE, "fieldRef": control}]}},
            *_writable_volumes(start.launch.driver_scratch),
            *customized.volumes(start.launch.spark_conf),
        ],
        **customized.pod_members(start.launch.spark_conf),
    }


def _driver_container(start: DriverStart) -> Manifest:
    conf = start.launch.spark_conf
    own_address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    before = [{"name": PREVIOUS_END, "value": OOM_KILLED}] if start.follows_oom_kill else []
    handed_over = [{"name": name, "value": _literal(text)} for name, text in _handed_over(start).items()]
    pull_policy = conf.get(f"{customized.PREFIX}container.image.pullPolicy")
    return {
        "name": CONTAINER,
        "image": image_of(start.launch, start.defaults),
        "args": _arguments(start.launch),
        "workingDir": WORK,
        "env": [own_address, *before, *customized.environment(conf), *handed_over],
        "ports": [
            {"name": "metrics", "containerPort": DEFAULT_PORT, "protocol": "TCP"},
            {"name": "driver", "containerPort": DRIVER_PORT, "protocol": "TCP"},
            {"name": "block-manager", "containerPort": BLOCK_MANAGER_PORT, "protocol": "TCP"},
            {"name": "ui", "containerPort": UI_PORT, "protocol": "TCP"},
        ],
        "resources": _resources(start.launch),
        # No liveness probe: missing data is no reason to restart a driver.
        "readinessProbe": {"tcpSocket": {"port": "metrics"}, "periodSeconds": 2, "timeoutSeconds": 2},
        "securityContext": _container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "control", "mountPath": CONTROL_FOLDER, "readOnly": True},
            *_writable_mounts(),
            *customized.mounts(conf),
        ],
        **({} if pull_policy is None else {"imagePullPolicy": pull_policy}),
    }


def _handed_over(start: DriverStart) -> dict[str, str]:
    namespace = start.owner.key.namespace
    properties = spark_properties(
        start.launch, start.attempt, namespace, start.defaults, grace_seconds=_grace_seconds(start)
    )
    lineage = f"{start.owner.uid}/{start.attempt}"
    handed_over = {SPARK_PROPERTIES: properties_text(properties), LINEAGE: lineage}
    if not is_local(start.launch.spark_conf):
        handed_over[EXECUTOR_TEMPLATE] = msgspec.json.encode(executor_template(start)).decode()
    return handed_over


def _literal(text: str) -> str:
    """Return it written so that the kubelet does not fill in `$(NAME)`."""
    return text.replace("$", "$$")


def _arguments(launch: Launch) -> Sequence[str]:
    """Return the command line. The image's entry point runs it, below an init process that passes signals on."""
    given = [script_path(launch.main_file), *launch.arguments]
    return [
        "headgate-run",
        *("--application", launch.application),
        *("--control", f"{CONTROL_FOLDER}/{CONTROL_FILE}"),
        *("--conf", "spark.driver.host=$(POD_IP)"),
        *("--conf", "spark.driver.bindAddress=$(POD_IP)"),
        *(_literal(word) for word in given),
    ]


def script_path(main_file: str) -> str:
    return main_file.removeprefix("local://").removeprefix("file://")


def _resources(launch: Launch) -> Manifest:
    conf, memory = launch.spark_conf, f"{driver_memory_mib(launch)}Mi"
    cores = conf.get("spark.driver.cores", str(launch.driver_cores))
    limits = {"memory": memory}
    if (limit := conf.get("spark.kubernetes.driver.limit.cores")) is not None:
        limits["cpu"] = limit
    requested = conf.get("spark.kubernetes.driver.request.cores", cores)
    return {"requests": {"cpu": requested, "memory": memory}, "limits": limits}


def _writable_volumes(most: str) -> list[Manifest]:
    return [{"name": name, "emptyDir": {"sizeLimit": most}} for name in ("tmp", "work")]


def _writable_mounts() -> list[Manifest]:
    return [{"name": "tmp", "mountPath": "/tmp"}, {"name": "work", "mountPath": WORK}]  # noqa: S108


def _pod_security(defaults: DriverDefaults) -> Manifest:
    security: Manifest = {"runAsNonRoot": True}
    if (user := defaults.run_as_user) is not None:
        # A volume that belongs to root, as a new disk does, is given to the user's group.
        security |= {"runAsUser": user, "fsGroup": user, "fsGroupChangePolicy": "OnRootMismatch"}
    return {**security, "seccompProfile": {"type": "RuntimeDefault"}}


def _container_security() -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
