"""What Spark properties must not say, because it is said elsewhere or is not theirs to say."""

from collections.abc import Mapping
from typing import Final

from headgate.api.expression import Predicate, text
from headgate.api.pod_template_rules import NOT_ITS_IDENTITY
from headgate.api.rule import SPEC, THIS, Rule, any_key, owned

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
ON_DEMAND: Final = "OnDemand"
"""The name of a volume claim that Spark makes anew for each pod."""
_DYNAMIC_ALLOCATION: Final = "spark.dynamicAllocation.enabled"
_MASTER: Final = THIS.entry("spark.master")
_IS_LOCAL: Final = _MASTER.text.starts_with("local")


def allocates_dynamically(spark_conf: Mapping[str, str]) -> bool:
    """Return whether Spark decides how many executors there are."""
    return spark_conf.get(_DYNAMIC_ALLOCATION, "").lower() == "true"


def is_local(spark_conf: Mapping[str, str]) -> bool:
    """Return whether the driver does all the work itself, without executors."""
    return spark_conf.get("spark.master", "").startswith("local")


def has_fixed_executors(spark_conf: Mapping[str, str]) -> bool:
    """Return whether there are executors, as many as the resource says."""
    return not is_local(spark_conf) and not allocates_dynamically(spark_conf)


_REFUSED: Final[Mapping[str, tuple[Predicate, str]]] = {
    "master": (
        _MASTER.is_there & ~_IS_LOCAL,
        "spark.master may only be local[N], for a driver that does all the work itself; leave it out, and Headgate "
        "connects the driver to its cluster",
    ),
    "image": (
        any_key(_IMAGE_KEYS),
        "the image of driver and executors is spec.image; set that, and leave this out",
    ),
    "wiring": (
        any_key(_WIRING_KEYS) & ~_IS_LOCAL,
        "Headgate sets how driver and executors find each other; leave this out",
    ),
    "instances": (
        THIS.entry("spark.executor.instances").is_there,
        "the number of executors is executor.instances, and duringBacklog.executor.instances in a backlog, which "
        "change without a restart; set these, and leave this out",
    ),
    "driver-claim": (
        THIS.any_entry(_DRIVER_CLAIM, ".options.claimName", ON_DEMAND),
        "no claim is made on demand for a driver; name a claim that is there, or give driver.podTemplate a volume "
        "that is ephemeral",
    ),
    "identity": (any_key(_IDENTITY_KEYS), NOT_ITS_IDENTITY),
}
"""What is refused in each map of properties, and what is said of it."""

PROPERTIES: Final = (
    *(
        Rule(f"{owned(on)}-{name}", on, refused, message)
        for on in (f"{SPEC}.sparkConf", f"{SPEC}.duringBacklog.sparkConf")
        for name, (refused, message) in _REFUSED.items()
    ),
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
        refused=THIS["sparkConf"].entry(_DYNAMIC_ALLOCATION).text.equals(text("true"))
        & THIS["duringBacklog.executor"].is_set,
        message="with spark.dynamicAllocation.enabled Spark decides how many executors there are, in a backlog too; "
        "leave one of the two out",
        at="duringBacklog.executor",
    ),
)
