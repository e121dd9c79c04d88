"""What a pod template must not say: the pods would not be Headgate's any more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headgate.api.expression import text
from headgate.api.rule import ITEM, SPEC, THIS, Rule, any_field, any_key, any_name

_OWNED_MARKS: Final = (
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "headgate.dev/application",
    "headgate.dev/attempt",
    "headgate.dev/checkpoint-locations",
    "headgate.dev/control",
    "headgate.dev/revision",
    "headgate.dev/role",
)
_OWNED_VOLUMES: Final = ("control", "tmp", "work")
_OWNED_FOLDERS: Final = (
    "/etc/headgate",
    "/etc/headgate/control",
    "/tmp",  # noqa: S108  a path in a container
    "/var/headgate",
    "/var/headgate/work",
)
NOT_ITS_IDENTITY: Final = (
    "who driver and executors are is not the job's to say; leave this out, and ask whoever runs the operator for a "
    "service account (driverServiceAccount)"
)
_OF_POD: Final[Mapping[str, str]] = {
    "serviceAccount serviceAccountName automountServiceAccountToken": NOT_ITS_IDENTITY,
    "hostIPC hostNetwork hostPID shareProcessNamespace": "a driver or an executor has nothing of its node, and its "
    "processes are its own; leave this out",
    "nodeName": "the scheduler chooses the node; leave this out, and set nodeSelector, affinity or tolerations",
    "restartPolicy activeDeadlineSeconds": "Headgate starts drivers anew, and Spark executors; leave this out, "
    "and set spec.restart, spec.suspend or spec.ttlAfterFinished",
    "terminationGracePeriodSeconds": "how long a stop may take is spec.stop.gracePeriod; set that, and leave this "
    "out",
    "enableServiceLinks ephemeralContainers hostname subdomain": "Headgate and Spark say how pods are called and "
    "found; leave this out",
}
"""What is said of fields that are refused."""
_OF_CONTAINER: Final[Mapping[str, str]] = {
    "image imagePullPolicy": "the image of driver and executors is spec.image, and its pull policy "
    "spark.kubernetes.container.image.pullPolicy in sparkConf; set these, and leave this out",
    "args command workingDir": "Headgate and Spark say what runs; set spec.main, and leave this out",
    "resources": "what the container asks for follows from cores and memory of driver and executor, and from "
    "Spark's properties in sparkConf; set these, and leave this out",
    "lifecycle livenessProbe ports readinessProbe restartPolicy startupProbe terminationMessagePath "
    "terminationMessagePolicy": "Headgate and Spark say when the container is ready, how it stops and what it ends "
    "by; leave this out. A sidecar is an init container with restartPolicy: Always",
}


def _of_containers(role: str, each: str) -> Iterator[Rule]:
    yield Rule(
        id=f"{role}-{each}-privileged",
        on=f"{SPEC}.{role}.podTemplate.spec.{each}[].securityContext",
        refused=any_field("privileged"),
        message="a container of a driver or an executor cannot be privileged; leave this out",
    )
    yield Rule(
        id=f"{role}-{each}-env",
        on=f"{SPEC}.{role}.podTemplate.spec.{each}[]",
        refused=THIS["env"].any(
            ITEM, ITEM["name"].text.starts_with("HEADGATE_") | ITEM["name"].text.equals(text("POD_IP"))
        ),
        message="variables whose names begin with HEADGATE_, and POD_IP, are Headgate's; choose another name",
        at="env[].name",
    )


def _of_fields(owner: str, on: str, names: Sequence[str], message: str) -> Rule:
    return Rule(f"{owner}-{names[0]}", on, any_field(*names), message)


def _of_pods(role: str) -> Iterator[Rule]:
    template = f"{SPEC}.{role}.podTemplate"
    for kind in ("labels", "annotations"):
        yield Rule(
            id=f"{role}-podTemplate-{kind}",
            on=f"{template}.metadata.{kind}",
            refused=any_key(_OWNED_MARKS),
            message="Headgate finds its pods by this; leave it out, or choose another name",
        )
    for names, message in _OF_POD.items():
        yield _of_fields(f"{role}-podTemplate", f"{template}.spec", names.split(), message)
    yield Rule(
        id=f"{role}-podTemplate-containers",
        on=f"{template}.spec",
        refused=THIS["containers"].any(ITEM, ~ITEM["name"].text.equals(text(role))),
        message=f"the one container that may be here is {role}; a sidecar is an init container with "
        "restartPolicy: Always, which ends with it",
        at="containers[].name",
    )
    for names, message in _OF_CONTAINER.items():
        on = f"{template}.spec.containers[]"
        yield _of_fields(f"{role}-podTemplate-container", on, names.split(), message)
    yield Rule(
        id=f"{role}-podTemplate-mounts",
        on=f"{template}.spec.containers[]",
        refused=THIS["volumeMounts"].any(ITEM, any_name(_OWNED_FOLDERS, "mountPath")),
        message="Headgate has a volume there; mount yours at another path",
        at="volumeMounts[].mountPath",
    )
    yield Rule(
        id=f"{role}-podTemplate-initContainers",
        on=f"{template}.spec",
        refused=THIS["initContainers"].any(ITEM, any_name(("driver", "executor"))),
        message="driver and executor are the containers of Spark itself; choose another name",
        at="initContainers[].name",
    )
    yield Rule(
        id=f"{role}-podTemplate-volumes",
        on=f"{template}.spec",
        refused=THIS["volumes"].any(ITEM, any_name(_OWNED_VOLUMES)),
        message="control, tmp and work are volumes of Headgate's own; choose another name, or set scratch for what "
        "they may hold",
        at="volumes[].name",
    )
    yield Rule(
        id=f"{role}-podTemplate-hostPath",
        on=f"{template}.spec.volumes[]",
        refused=any_field("hostPath"),
        message="a driver or an executor cannot have a folder of its node as a volume; take a claim of a local "
        "volume, or ephemeral",
    )
    for each in ("containers", "initContainers"):
        yield from _of_containers(role, each)


POD_TEMPLATES: Final = (*_of_pods("driver"), *_of_pods("executor"))
