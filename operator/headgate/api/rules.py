"""What a `SparkApplication` must not declare, beyond the shape of its fields.

Each rule stands here once: `crd` writes it into the CRD as CEL, `validation` applies it to a manifest, both
with the same message. `refused` says what is refused; the message says what holds instead and what to do.
What CEL cannot see, because it would have to follow references, is in `references`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from headgate.api.expression import Condition, Field, MalformedError, duration, text
from headgate.api.finding import Location
from headgate.api.source import UNLIMITED

THIS: Final = Field("self")
SOURCE: Final = Field("source")
OTHER: Final = Field("other")
ITEM: Final = Field("item")

SPEC: Final = "spec"
QUERY: Final = "spec.queries[]"
EACH_SOURCE: Final = "spec.queries[].sources[]"


@dataclass(frozen=True)
class Rule:
    """One refusal: `refused` is judged for every object or value at `on`.

    `at` is the field below it that a finding points at. Where it leads through a list (`sources[].after`),
    each item that makes the condition true is pointed at, and so is the entry of a map; the API server can
    only name the object at `on` then.
    """

    id: str
    on: str
    refused: Condition
    message: str
    at: str = ""
    names_item: bool = False
    """The value at `at`, a field of an item of a list, is to be the name of another item: `validate` says which it
    is, and which there are. The API server can say `message` alone."""

    @property
    def cel(self) -> str:
        """What has to hold, in CEL."""
        return (~self.refused).cel()

    @property
    def cel_field_path(self) -> str | None:
        """The field below `on` that the API server names, if one is meant that is not in a list."""
        return f".{self.at}" if self.at and "[]" not in self.at else None

    def places(self, values: Iterable[tuple[Location, Any]]) -> Iterator[Location]:
        """Yield where the rule is broken; `values` are those at `on` in a manifest with defaults filled in.

        Where a value that the rule needs is malformed there is nothing to judge; the value has its own
        finding.
        """
        for location, value in values:
            try:
                places = self.refused.places({"self": value})
            except MalformedError:
                continue
            yield from dict.fromkeys((*location, *self._pointed_at(place)) for place in places)

    def _pointed_at(self, place: Location) -> Location:
        if not self.at:
            return place
        _, is_item, field = self.at.rpartition("[].")
        return (*(place if is_item else ()), *(field.split(".") if field else ()))


def values_at(pattern: str, manifest: Any) -> Iterator[tuple[Location, Any]]:
    """Yield every value that is set at `pattern`, such as `spec.queries[].checkpoint`, with its location."""
    found: list[tuple[Location, Any]] = [((), manifest)]
    for step in pattern.replace("[]", ".[]").split("."):
        if step == "[]":
            found = [
                ((*location, index), item)
                for location, value in found
                if isinstance(value, list)
                for index, item in enumerate(value)
            ]
        else:
            found = [
                ((*location, step), child)
                for location, value in found
                if isinstance(value, Mapping) and (child := value.get(step)) is not None
            ]
    yield from found


def _at_least(least: str, on: str, remedy: str) -> Rule:
    refused = THIS.duration < duration(least)
    return Rule(f"{_owned(on)}-short", on, refused, f"{_name(on)} must be at least {least}; {remedy}")


def _positive(on: str, remedy: str) -> Rule:
    refused = ~(THIS.duration > duration("0s"))
    return Rule(f"{_owned(on)}-zero", on, refused, f"{_name(on)} must be greater than 0s; {remedy}")


def _name(on: str) -> str:
    return on.rpartition(".")[2]


def _owned(on: str) -> str:
    return "-".join(on.replace("[]", "").split(".")[-2:])


_INTERVAL: Final = THIS["checkpoint.interval"].duration
_DURING_BACKLOG: Final = THIS["checkpoint.intervalDuringBacklog"].duration
_REENTRY: Final = THIS["backlog.reentry"]
_RATE_LIMIT: Final = SOURCE["rateLimit"]
_INSTEAD: Final = _RATE_LIMIT["duringBacklog"].untyped  # `Unlimited` or an object
_IS_LIMITED: Final = (
    _RATE_LIMIT["recordsPerSecond"].is_set | _RATE_LIMIT["recordsPerCheckpoint"].is_set | _INSTEAD.is_set
)

CHECKPOINT: Final = (
    _at_least(
        "10ms",
        f"{QUERY}.checkpoint.interval",
        "raise it, or leave it out to keep the job's own trigger interval",
    ),
    Rule(
        id="intervalDuringBacklog-short",
        on=f"{QUERY}.checkpoint.intervalDuringBacklog",
        refused=(THIS.duration > duration("0s")) & (THIS.duration < duration("10ms")),
        message="intervalDuringBacklog must be 0s or at least 10ms; raise it, or set 0s for one batch per backlog",
    ),
    Rule(
        id="intervalDuringBacklog-below-interval",
        on=f"{QUERY}.checkpoint",
        refused=(THIS["intervalDuringBacklog"].duration > duration("0s"))
        & (THIS["intervalDuringBacklog"].duration < THIS["interval"].duration),
        message="intervalDuringBacklog must be 0s or at least interval; raise it, or lower interval",
        at="intervalDuringBacklog",
    ),
)

BACKLOG: Final = (
    _positive(f"{EACH_SOURCE}.backlog.watermarkLag", "leave it out if lag is not to count"),
    _positive(f"{QUERY}.backlog.reentry.above", "leave it out for twice the source's own watermarkLag"),
    Rule(
        id="reentry-above-below-threshold",
        on=QUERY,
        refused=_REENTRY["above"].is_set
        & THIS["sources"].any(SOURCE, SOURCE["backlog.watermarkLag"].duration > _REENTRY["above"].duration),
        message="backlog.reentry.above must not be below the watermarkLag of any source of the query; raise it, "
        "or leave it out for twice the threshold",
        at="backlog.reentry.above",
    ),
    Rule(
        id="reentry-pendingRecordsAbove-below-threshold",
        on=QUERY,
        refused=_REENTRY["pendingRecordsAbove"].is_set
        & THIS["sources"].any(
            SOURCE, SOURCE["backlog.pendingRecords"].number > _REENTRY["pendingRecordsAbove"].number
        ),
        message="backlog.reentry.pendingRecordsAbove must not be below the pendingRecords of any source of the "
        "query; raise it, or leave it out for twice the threshold",
        at="backlog.reentry.pendingRecordsAbove",
    ),
)

BATCH: Final = (_at_least("10ms", f"{QUERY}.batch.targetDuration", "raise it, or leave it out for 10s"),)

RATE_LIMIT: Final = (
    Rule(
        id="rateLimit-empty",
        on=f"{EACH_SOURCE}.rateLimit",
        refused=~(
            THIS["recordsPerSecond"].is_set
            | THIS["recordsPerCheckpoint"].is_set
            | THIS["duringBacklog"].untyped.is_set
        ),
        message="rateLimit limits nothing; set recordsPerSecond, recordsPerCheckpoint or duringBacklog, or leave "
        "rateLimit out",
    ),
    _positive(f"{EACH_SOURCE}.rateLimit.maxBurst", "leave it out for 10s"),
    Rule(
        id="recordsPerCheckpoint-slows-backlog",
        on=QUERY,
        refused=(_DURING_BACKLOG > _INTERVAL)
        & THIS["sources"].any(
            SOURCE,
            _RATE_LIMIT["recordsPerCheckpoint"].is_set & ~_INSTEAD.is_set,
        ),
        message="recordsPerCheckpoint would slow a backlog down, since intervalDuringBacklog is longer than "
        "interval; set rateLimit.duringBacklog to Unlimited or to limits of its own",
        at="sources[].rateLimit.recordsPerCheckpoint",
    ),
    Rule(
        id="rateLimit-cuts-single-batch",
        on=QUERY,
        refused=_DURING_BACKLOG.equals(duration("0s"))
        & THIS["sources"].any(SOURCE, _IS_LIMITED & ~_INSTEAD.text.equals(text(UNLIMITED))),
        message="a rate limit cannot hold while one batch spans the backlog (intervalDuringBacklog is 0s); set "
        "rateLimit.duringBacklog: Unlimited, or a longer intervalDuringBacklog",
        at="sources[].rateLimit",
    ),
)

ALIGNMENT: Final = (
    _positive(f"{EACH_SOURCE}.alignment.updateInterval", "leave it out for 1s"),
    _positive(f"{EACH_SOURCE}.alignment.idleAfter", "leave it out for maxDrift, at least 1s"),
)

HYBRID: Final = (
    Rule(
        id="after-itself",
        on=EACH_SOURCE,
        refused=THIS["after"].text.equals(THIS["name"].text),
        message="a source cannot come after itself; name the source that holds the history",
        at="after",
    ),
    Rule(
        id="after-unlisted",
        on=QUERY,
        refused=THIS["sources"].any(
            SOURCE,
            SOURCE["after"].is_set
            & ~THIS["sources"].any(OTHER, OTHER["name"].text.equals(SOURCE["after"].text)),
        ),
        message="after must name a listed source of the same query; list that source, or correct the name",
        at="sources[].after",
        names_item=True,
    ),
)

KAFKA: Final = (
    Rule(
        id="kafka-publishGroup-blank",
        on=f"{EACH_SOURCE}.kafka.publishGroup",
        refused=THIS.text.trimmed.equals(text("")),
        message="publishGroup is blank; name a consumer group, or leave it out to publish nothing",
    ),
)

APPLICATION: Final = (
    _positive(f"{SPEC}.metrics.staleAfter", "leave it out for 1m"),
    _positive(f"{SPEC}.restart.backoff", "leave it out for 10s"),
    _positive(f"{SPEC}.restart.resetAfter", "leave it out for 30m"),
    Rule(
        id="restart-maxBackoff-below-backoff",
        on=f"{SPEC}.restart",
        refused=THIS["maxBackoff"].duration < THIS["backoff"].duration,
        message="maxBackoff must not be below backoff; raise it, or lower backoff",
        at="maxBackoff",
    ),
)

_IMAGE_KEYS: Final = (
    "spark.kubernetes.container.image",
    "spark.kubernetes.driver.container.image",
    "spark.kubernetes.executor.container.image",
)
_WIRING_KEYS: Final = (
    "spark.driver.bindAddress",
    "spark.driver.blockManager.port",
    "spark.driver.host",
    "spark.driver.port",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.driver.podTemplateFile",
    "spark.kubernetes.executor.podNamePrefix",
    "spark.kubernetes.executor.podTemplateContainerName",
    "spark.kubernetes.executor.podTemplateFile",
    "spark.kubernetes.namespace",
    "spark.submit.deployMode",
    "spark.ui.port",
)
_IDENTITY_KEYS: Final = tuple(
    f"spark.kubernetes.authenticate.{key}"
    for key in (
        "caCertFile",
        "clientCertFile",
        "clientKeyFile",
        "driver.caCertFile",
        "driver.clientCertFile",
        "driver.clientKeyFile",
        "driver.oauthToken",
        "driver.oauthTokenFile",
        "driver.serviceAccountName",
        "executor.serviceAccountName",
        "oauthToken",
        "oauthTokenFile",
        "serviceAccountName",
    )
)
_DRIVER_CLAIM: Final = "spark.kubernetes.driver.volumes.persistentVolumeClaim."
_DYNAMIC_ALLOCATION: Final = "spark.dynamicAllocation.enabled"
_MASTER: Final = THIS.entry("spark.master")
_IS_LOCAL: Final = _MASTER.text.starts_with("local")


def _any_key(keys: tuple[str, ...]) -> Condition:
    return reduce(or_, (THIS.entry(key).is_there for key in keys))


def _any_field(*names: str) -> Condition:
    return reduce(or_, (THIS[name].untyped.is_given for name in names))


def _any_name(names: tuple[str, ...], field: str = "name") -> Condition:
    return reduce(or_, (ITEM[field].text.equals(text(name)) for name in names))


def allocates_dynamically(spark_conf: Mapping[str, str]) -> bool:
    """Return whether Spark decides how many executors there are."""
    return spark_conf.get(_DYNAMIC_ALLOCATION, "").lower() == "true"


def _allocates_dynamically(path: str) -> Condition:
    return THIS[path].entry(_DYNAMIC_ALLOCATION).text.equals(text("true"))


def _of_properties(on: str) -> tuple[Rule, ...]:
    """Return what Spark properties must not say, because it is said elsewhere or is not theirs to say."""
    return (
        Rule(
            id=f"{_owned(on)}-master",
            on=on,
            refused=_MASTER.is_there & ~_IS_LOCAL,
            message="spark.master may only be local[N], for a driver that does all the work itself; leave it "
            "out, and Headgate connects the driver to its cluster",
        ),
        Rule(
            id=f"{_owned(on)}-image",
            on=on,
            refused=_any_key(_IMAGE_KEYS),
            message="the image of driver and executors is spec.image; set that, and leave this out",
        ),
        Rule(
            id=f"{_owned(on)}-wiring",
            on=on,
            refused=_any_key(_WIRING_KEYS) & ~_IS_LOCAL,
            message="Headgate sets how driver and executors find each other; leave this out",
        ),
        Rule(
            id=f"{_owned(on)}-instances",
            on=on,
            refused=THIS.entry("spark.executor.instances").is_there,
            message="the number of executors is executor.instances, and duringBacklog.executor.instances in a "
            "backlog, which change without a restart; set these, and leave this out",
        ),
        Rule(
            id=f"{_owned(on)}-driver-claim",
            on=on,
            refused=THIS.any_entry(_DRIVER_CLAIM, ".options.claimName", "OnDemand"),
            message="nobody makes a claim for a driver on demand; name a claim that is there, or give "
            "driver.podTemplate a volume that is ephemeral",
        ),
        Rule(
            id=f"{_owned(on)}-identity",
            on=on,
            refused=_any_key(_IDENTITY_KEYS),
            message="who driver and executors are is not the job's to say; leave this out, and ask whoever "
            "runs the operator for a service account (driverServiceAccount)",
        ),
    )


PROPERTIES: Final = (
    *_of_properties(f"{SPEC}.sparkConf"),
    *_of_properties(f"{SPEC}.duringBacklog.sparkConf"),
    Rule(
        id="duringBacklog-sparkConf-checkpoint",
        on=f"{SPEC}.duringBacklog.sparkConf",
        refused=THIS.entry("spark.sql.streaming.checkpointLocation").is_there,
        message="a query goes on from one checkpoint, in a backlog and after it; set "
        "spark.sql.streaming.checkpointLocation in sparkConf",
    ),
    Rule(
        id="duringBacklog-executor-dynamicAllocation",
        on=SPEC,
        refused=_allocates_dynamically("sparkConf") & THIS["duringBacklog.executor"].is_set,
        message="with spark.dynamicAllocation.enabled Spark decides how many executors there are, in a backlog too; "
        "leave one of the two out",
        at="duringBacklog.executor",
    ),
)

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
_OF_POD: Final[Mapping[tuple[str, ...], str]] = {
    (
        "serviceAccount",
        "serviceAccountName",
        "automountServiceAccountToken",
    ): "who driver and executors are is not "
    "the job's to say; leave this out, and ask whoever runs the operator for a service account "
    "(driverServiceAccount)",
    (
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "shareProcessNamespace",
    ): "a driver or an executor has nothing of its node, and its processes are its own; leave this out",
    (
        "nodeName",
    ): "the scheduler chooses the node; leave this out, and set nodeSelector, affinity or tolerations",
    (
        "restartPolicy",
        "activeDeadlineSeconds",
    ): "Headgate starts drivers anew, and Spark executors; leave this out, "
    "and set spec.restart, spec.suspend or spec.ttlAfterFinished",
    (
        "terminationGracePeriodSeconds",
    ): "how long a stop may take is spec.stop.gracePeriod; set that, and leave this out",
    (
        "enableServiceLinks",
        "ephemeralContainers",
        "hostname",
        "subdomain",
    ): "Headgate and Spark say how pods are called and found; leave this out",
}
_OF_CONTAINER: Final[Mapping[tuple[str, ...], str]] = {
    ("image", "imagePullPolicy"): "the image of driver and executors is spec.image, and its pull policy "
    "spark.kubernetes.container.image.pullPolicy in sparkConf; set these, and leave this out",
    ("args", "command", "workingDir"): "Headgate and Spark say what runs; set spec.main, and leave this out",
    (
        "resources",
    ): "what the container asks for follows from cores and memory of driver and executor, and from "
    "Spark's properties in sparkConf; set these, and leave this out",
    (
        "lifecycle",
        "livenessProbe",
        "ports",
        "readinessProbe",
        "restartPolicy",
        "startupProbe",
        "terminationMessagePath",
        "terminationMessagePolicy",
    ): "Headgate and Spark say when the container is ready, how it stops and what it ends by; leave this out. A "
    "sidecar is an init container with restartPolicy: Always",
}


def _of_containers(role: str, each: str) -> Iterator[Rule]:
    yield Rule(
        id=f"{role}-{each}-privileged",
        on=f"{SPEC}.{role}.podTemplate.spec.{each}[].securityContext",
        refused=_any_field("privileged"),
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


def _of_pods(role: str) -> Iterator[Rule]:
    """Yield what a template must not say of the pods of `role`, because they would not be Headgate's any more."""
    template = f"{SPEC}.{role}.podTemplate"
    for kind in ("labels", "annotations"):
        yield Rule(
            id=f"{role}-podTemplate-{kind}",
            on=f"{template}.metadata.{kind}",
            refused=_any_key(_OWNED_MARKS),
            message="Headgate finds its pods by this; leave it out, or choose another name",
        )
    for names, message in _OF_POD.items():
        yield Rule(f"{role}-podTemplate-{names[0]}", f"{template}.spec", _any_field(*names), message)
    yield Rule(
        id=f"{role}-podTemplate-containers",
        on=f"{template}.spec",
        refused=THIS["containers"].any(ITEM, ~ITEM["name"].text.equals(text(role))),
        message=f"the one container that may be here is {role}; a sidecar is an init container with "
        "restartPolicy: Always, which ends with it",
        at="containers[].name",
    )
    for names, message in _OF_CONTAINER.items():
        yield Rule(
            f"{role}-podTemplate-container-{names[0]}",
            f"{template}.spec.containers[]",
            _any_field(*names),
            message,
        )
    yield Rule(
        id=f"{role}-podTemplate-mounts",
        on=f"{template}.spec.containers[]",
        refused=THIS["volumeMounts"].any(ITEM, _any_name(_OWNED_FOLDERS, "mountPath")),
        message="Headgate has a volume there; mount yours at another path",
        at="volumeMounts[].mountPath",
    )
    yield Rule(
        id=f"{role}-podTemplate-initContainers",
        on=f"{template}.spec",
        refused=THIS["initContainers"].any(ITEM, _any_name(("driver", "executor"))),
        message="driver and executor are the containers of Spark itself; choose another name",
        at="initContainers[].name",
    )
    yield Rule(
        id=f"{role}-podTemplate-volumes",
        on=f"{template}.spec",
        refused=THIS["volumes"].any(ITEM, _any_name(_OWNED_VOLUMES)),
        message="control, tmp and work are volumes of Headgate's own; choose another name, or set scratch for what "
        "they may hold",
        at="volumes[].name",
    )
    yield Rule(
        id=f"{role}-podTemplate-hostPath",
        on=f"{template}.spec.volumes[]",
        refused=_any_field("hostPath"),
        message="a driver or an executor cannot have a folder of its node as a volume; take a claim of a local "
        "volume, or ephemeral",
    )
    for each in ("containers", "initContainers"):
        yield from _of_containers(role, each)


POD_TEMPLATES: Final = (*_of_pods("driver"), *_of_pods("executor"))

RULES: Final[tuple[Rule, ...]] = (
    *PROPERTIES,
    *POD_TEMPLATES,
    *CHECKPOINT,
    *BACKLOG,
    *BATCH,
    *RATE_LIMIT,
    *ALIGNMENT,
    *HYBRID,
    *KAFKA,
    *APPLICATION,
)
