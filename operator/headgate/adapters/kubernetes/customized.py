"""What Spark's own properties say about a driver pod.

In cluster mode `spark-submit` reads `spark.kubernetes.driver.*` and builds the pod; here the operator builds it,
so it follows the same properties, and a resource that is moved from elsewhere keeps its volumes, secrets and node
selectors. Those of executors are read by Spark itself, in the driver.

The names are those of Spark's documentation, "Running on Kubernetes", section Configuration.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.adapters.kubernetes.client import Manifest

Conf = Mapping[str, str]

PREFIX: Final = "spark.kubernetes."
OURS: Final = ("headgate.dev/", "app.kubernetes.io/")
"""Labels and annotations that are not for the job to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyVolume:
    """One `volumes.TYPE.NAME` of the properties, as it stands there."""

    type: str
    name: str
    mount: Mapping[str, str]
    options: Mapping[str, str]


def marks(conf: Conf, kind: str) -> dict[str, str]:
    """Return labels or annotations; `kind` is `label` or `annotation`."""
    given = _below(conf, f"driver.{kind}.")
    return {name: value for name, value in given.items() if not name.startswith(OURS)}


def environment(conf: Conf) -> list[Manifest]:
    """Return environment variables: given, or taken from a secret (`secretName:key`)."""
    given: list[Manifest] = [
        {"name": name, "value": value} for name, value in _below(conf, "driverEnv.").items()
    ]
    for variable, reference in _below(conf, "driver.secretKeyRef.").items():
        name, _, key = reference.partition(":")
        given.append({"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}})
    return given


def pod_members(conf: Conf) -> Manifest:
    """Return what belongs into the pod's spec as it is."""
    members: Manifest = {}
    if selector := _below(conf, "node.selector.") | _below(conf, "driver.node.selector."):
        members["nodeSelector"] = selector
    if secrets := conf.get(f"{PREFIX}container.image.pullSecrets"):
        members["imagePullSecrets"] = [{"name": name.strip()} for name in secrets.split(",") if name.strip()]
    scheduler = conf.get(f"{PREFIX}driver.scheduler.name", conf.get(f"{PREFIX}scheduler.name"))
    return members if scheduler is None else {**members, "schedulerName": scheduler}


def volumes(conf: Conf) -> list[Manifest]:
    """Return the volumes that the job wants, and those of the secrets that it wants mounted."""
    secrets = [
        {"name": f"{name}-volume", "secret": {"secretName": name}} for name in _below(conf, "driver.secrets.")
    ]
    return [{"name": volume.name, volume.type: dict(volume.options)} for volume in volumes_of(conf)] + secrets


def mounts(conf: Conf) -> list[Manifest]:
    found: list[Manifest] = []
    for volume in volumes_of(conf):
        if (path := volume.mount.get("path")) is None:
            continue
        found.append({"name": volume.name, "mountPath": path})
        if (below := volume.mount.get("subPath")) is not None:
            found[-1]["subPath"] = below
        if volume.mount.get("readOnly", "").lower() == "true":
            found[-1]["readOnly"] = True
    secrets = _below(conf, "driver.secrets.").items()
    return found + [{"name": f"{name}-volume", "mountPath": path} for name, path in secrets]


def volumes_of(conf: Conf) -> Iterator[PropertyVolume]:
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for key, value in _below(conf, "driver.volumes.").items():
        kind, _, rest = key.partition(".")
        name, _, setting = rest.partition(".")
        if kind and name and setting:
            found[kind, name][setting] = value
    for (kind, name), settings in sorted(found.items()):
        mount, options = _of(settings, "mount."), _of(settings, "options.")
        yield PropertyVolume(type=kind, name=name, mount=mount, options=options)


def _below(conf: Conf, beginning: str) -> dict[str, str]:
    return _of(conf, PREFIX + beginning)


def _of(settings: Mapping[str, str], beginning: str) -> dict[str, str]:
    return {
        key.removeprefix(beginning): value
        for key, value in sorted(settings.items())
        if key.startswith(beginning) and key != beginning
    }
