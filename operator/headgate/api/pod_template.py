"""What a resource may say about the pods of its driver and its executors, in the words of a Pod.

The outer fields stand here one by one: those that may be set, and those that are refused by name because Headgate or
Spark sets them (`rules`). The inner ones are Kubernetes' own and are kept as they are; `pod_shape` finds the names
among them that no Pod has.
"""

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from headgate.api.model import ApiModel

AS_IT_IS: Final[JsonDict] = {"x-kubernetes-preserve-unknown-fields": True}

Free = Annotated[dict[str, Any], Field(json_schema_extra=AS_IT_IS)]
"""An object of Kubernetes, as it is in a Pod."""
REFUSED: Final = "Refused: "
"""How the descriptions of fields begin that are declared to be refused by name."""
Text = Annotated[str, StringConstraints(max_length=253)]
Label = Annotated[str, StringConstraints(max_length=4096)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Called = Annotated[str, StringConstraints(min_length=1, max_length=253)]


def refused(why: str, *, alias: str | None = None) -> Any:
    """Declare a field to refuse it by name: the API server drops without a word what it does not know."""
    return Field(None, description=f"{REFUSED}{why}", json_schema_extra=AS_IT_IS, alias=alias)


class _Open(ApiModel):
    """An object of Kubernetes of which some fields are looked at."""

    model_config = ConfigDict(extra="allow", json_schema_extra=AS_IT_IS)


class ContainerSecurity(_Open):
    """Security context of a container."""

    privileged: Any = refused("a driver or an executor has nothing of its node.")


class Variable(_Open):
    """One variable of the environment: `value`, or `valueFrom` a Secret, a ConfigMap or a field of the pod."""

    name: Called
    """Name of the variable."""


class Mount(_Open):
    """Where a volume is mounted, as in a Pod."""

    name: Called
    """Name of the volume."""
    mount_path: Path
    """Folder or file inside the container."""


class Volume(_Open):
    """One volume, as in a Pod: `configMap`, `secret`, `projected`, `ephemeral`, `persistentVolumeClaim` and so on."""

    name: Called
    """Name of the volume."""
    host_path: Any = refused(
        "a driver or an executor has no folder of its node. Take a claim, a local volume, or `ephemeral`."
    )


class MainContainer(ApiModel):
    """The container of Spark itself; what Headgate and Spark set of it is refused."""

    name: Called
    """`driver` or `executor`, whichever pod it is."""
    env: Annotated[tuple[Variable, ...], Field(max_length=128)] = ()
    """Variables of the environment, from Secrets and ConfigMaps too. Default: none."""
    env_from: Annotated[tuple[Free, ...], Field(max_length=32)] = ()
    """Secrets and ConfigMaps of which every key becomes a variable. Default: none."""
    volume_mounts: Annotated[tuple[Mount, ...], Field(max_length=64)] = ()
    """Where volumes are mounted. Default: none but Headgate's own."""
    volume_devices: Annotated[tuple[Free, ...], Field(max_length=16)] = ()
    """Volumes that are there as block devices. Default: none."""
    security_context: ContainerSecurity | None = None
    """Security context of the container, field by field over that of the restricted Pod Security Standard."""
    args: Any = refused("set main.arguments.")
    command: Any = refused("set main.file.")
    image: Any = refused("set spec.image.")
    image_pull_policy: Any = refused("set spark.kubernetes.container.image.pullPolicy in sparkConf.")
    lifecycle: Any = refused(
        "a stop is Headgate's and Spark's. Use an init container with `restartPolicy: Always`."
    )
    liveness_probe: Any = refused("missing data is no reason to restart a driver.")
    ports: Any = refused("they are fixed. A container listens without being declared to.")
    readiness_probe: Any = refused("Headgate asks for the metrics of a driver, Spark for an executor's life.")
    resources: Any = refused(
        "set cores and memory of driver and executor, or Spark's properties in sparkConf."
    )
    restart_policy: Any = refused("set spec.restart.")
    startup_probe: Any = refused("Headgate asks for the metrics of a driver, Spark for an executor's life.")
    termination_message_path: Any = refused("Headgate reads what a driver has ended by.")
    termination_message_policy: Any = refused("Headgate reads what a driver has ended by.")
    working_dir: Any = refused("it is a folder of its own that may be written to.")


class InitContainer(_Open):
    """A container that runs before Spark; with `restartPolicy: Always` beside it, a sidecar that ends with it."""

    name: Called
    """Name of the container; not `driver` or `executor`."""
    security_context: ContainerSecurity | None = None
    """Security context of the container. Default: none, which a namespace with the restricted Pod Security Standard
    refuses."""
    env: Annotated[tuple[Variable, ...], Field(max_length=128)] = ()
    """Variables of the environment. Default: none."""
    volume_mounts: Annotated[tuple[Mount, ...], Field(max_length=64)] = ()
    """Where volumes are mounted, `tmp` and `work` of the pod among them. Default: none."""


class PodMetadata(ApiModel):
    """Marks of the pod."""

    labels: Annotated[dict[str, Text], Field(max_length=64)] = Field(default_factory=dict)
    """Labels. Default: none but Headgate's own."""
    annotations: Annotated[dict[str, Label], Field(max_length=64)] = Field(default_factory=dict)
    """Annotations. Default: none but Headgate's own."""


class PodSpec(ApiModel):
    """The pod: what is set here is merged into what Headgate makes; what Headgate must own is refused by name."""

    affinity: Free | None = None
    """Affinity to nodes and to other pods. Default: none."""
    containers: Annotated[tuple[MainContainer, ...], Field(max_length=1)] = ()
    """The container of Spark. Sidecars are `initContainers`. Default: as Headgate makes it."""
    dns_config: Free | None = None
    """Settings of the resolver. Default: the cluster's."""
    dns_policy: Text | None = None
    """How names are resolved. Default: `ClusterFirst`."""
    host_aliases: Annotated[tuple[Free, ...], Field(max_length=32)] = ()
    """Lines of `/etc/hosts`. Default: none."""
    host_users: bool | None = None
    """False: users of the pod are none of the node. Default: as the cluster has it."""
    image_pull_secrets: Annotated[tuple[Free, ...], Field(max_length=16)] = ()
    """Secrets for pulling images. Default: those of the service account."""
    init_containers: Annotated[tuple[InitContainer, ...], Field(max_length=8)] = ()
    """Containers that run before Spark; with `restartPolicy: Always` beside it. Default: none."""
    node_selector: Annotated[dict[str, Text], Field(max_length=64)] = Field(default_factory=dict)
    """Labels of nodes to run on. Default: any node."""
    preemption_policy: Text | None = None
    """Whether the pod drives others out. Default: as its priority class says."""
    priority_class_name: Text | None = None
    """Priority class. Default: the cluster's."""
    runtime_class_name: Text | None = None
    """Runtime class. Default: the cluster's."""
    scheduler_name: Text | None = None
    """Who chooses the node of a driver; for executors Spark sets what `sparkConf` says. Default: the cluster's."""
    security_context: Free | None = None
    """Security context of the pod, field by field over that of the restricted Pod Security Standard: `runAsUser`,
    `fsGroup`, `supplementalGroups` and so on."""
    tolerations: Annotated[tuple[Free, ...], Field(max_length=64)] = ()
    """Taints of nodes that are tolerated. Default: none but the cluster's own."""
    topology_spread_constraints: Annotated[tuple[Free, ...], Field(max_length=16)] = ()
    """How pods are spread. Executors are selected by `headgate.dev/application` and `headgate.dev/role: executor`.
    Default: the cluster's."""
    volumes: Annotated[tuple[Volume, ...], Field(max_length=64)] = ()
    """Volumes. Default: none but Headgate's own, `tmp`, `work` and, of a driver, `control`."""
    active_deadline_seconds: Any = refused("set spec.suspend, or ttlAfterFinished.")
    automount_service_account_token: Any = refused("a driver has its token, an executor none.")
    enable_service_links: Any = refused("variables of all Services would be settings of Spark's.")
    ephemeral_containers: Any = refused("`kubectl debug` adds them.")
    host_ipc: Any = refused("a driver or an executor has nothing of its node.", alias="hostIPC")
    host_network: Any = refused("a driver or an executor has nothing of its node.")
    host_pid: Any = refused("a driver or an executor has nothing of its node.", alias="hostPID")
    hostname: Any = refused("Headgate and Spark name pods.")
    node_name: Any = refused("set nodeSelector or affinity, which the scheduler heeds.")
    restart_policy: Any = refused("set spec.restart.")
    service_account: Any = refused("whoever runs the operator says who drivers are.")
    service_account_name: Any = refused("whoever runs the operator says who drivers are.")
    share_process_namespace: Any = refused("the first process of the pod passes on the signal to stop.")
    subdomain: Any = refused("Headgate and Spark name pods.")
    termination_grace_period_seconds: Any = refused("set spec.stop.gracePeriod.")


class PodTemplate(ApiModel):
    """What the pod has beside what Headgate makes it with."""

    metadata: PodMetadata | None = None
    """Marks of the pod. Default: Headgate's own."""
    spec: PodSpec | None = None
    """The pod. Default: as Headgate makes it."""
