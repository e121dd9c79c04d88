"""Merges a pod template into the pod that Headgate makes, much as `kubectl patch` does by strategic merge.

Objects are merged field by field, and the template's value holds. Lists whose items have a name, or mounts a path,
are merged by that: containers field by field, of all else the template's item takes the place of ours. Of other lists
(`tolerations`, `topologySpreadConstraints`, `envFrom`) the template's items come after. What Headgate must own is no
matter here: the resource is refused that says anything of it (`headgate.api.pod_template_rules`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.adapters.kubernetes.client import Manifest

KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
MERGED: Final = frozenset({"containers"})
SCRATCH: Final = "spark-local-dir-"
"""What the names of volumes begin with in which Spark shuffles and spills."""


def with_template(pod: Manifest, template: Mapping[str, Any] | None) -> Manifest:
    return pod if template is None else _merged(pod, template)


def brings_scratch(template: Mapping[str, Any] | None) -> bool:
    """Return whether the template mounts volumes of its own for shuffles and spills."""
    containers = ((template or {}).get("spec") or {}).get("containers", ())
    return any(
        mount["name"].startswith(SCRATCH) for one in containers for mount in one.get("volumeMounts", ())
    )


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Manifest:
    merged = dict(ours)
    for name, value in theirs.items():
        merged[name] = _value(name, ours[name], value) if name in ours else value
    return merged


def _value(name: str, ours: Any, theirs: Any) -> Any:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return _merged(ours, theirs)
    if isinstance(ours, Sequence) and isinstance(theirs, list):
        if (key := KEYS.get(name)) is None:
            return [*ours, *theirs]
        items = {item[key]: item for item in ours}
        for item in theirs:
            there = items.get(item[key])
            items[item[key]] = _merged(there, item) if there is not None and name in MERGED else dict(item)
        return list(items.values())
    return theirs
