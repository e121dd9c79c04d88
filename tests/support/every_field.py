"""Every field of the resource, by the CRD's own schema, and values at and beyond the bounds of each.

A field that is added to the models is walked by that alone; one that the resource here does not reach is named by
`unreached`, which a test holds to be empty.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.adapters.kubernetes.client import Manifest
from headgate.api.crd import custom_resource_definition
from support.operating import manifest

Schema = Mapping[str, Any]
Step = str | int
Path = tuple[Step, ...]

UNSET: Final = object()
"""Not a value: the field is taken out."""

_TEMPLATE: Final[Manifest] = {
    "metadata": {"labels": {"team": "air"}, "annotations": {"team": "air"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}},
        ],
        "containers": [
            {
                "name": "driver",
                "env": [{"name": "A", "value": "b"}],
                "envFrom": [{"secretRef": {"name": "s"}}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "volumeDevices": [{"name": "raw", "devicePath": "/dev/raw"}],
                "securityContext": {"readOnlyRootFilesystem": True},
            }
        ],
        "initContainers": [
            {
                "name": "before",
                "image": "example/before:1",
                "securityContext": {"readOnlyRootFilesystem": True},
                "env": [{"name": "A", "value": "b"}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }
        ],
    },
}
_QUERY: Final[Manifest] = {
    "name": "delays",
    "checkpoint": {"interval": "5s", "intervalDuringBacklog": "2m", "minPause": "1s"},
    "batch": {
        "targetDuration": "20s",
        "initialRecords": 1000,
        "maxGrowth": 3.5,
        "maxRecords": 50_000_000,
    },
    "backlog": {
        "reentry": {
            "above": "20m",
            "pendingRecordsAbove": 5_000_000,
            "dwell": "2m",
            "policy": "Allowed",
        }
    },
    "live": {"mode": "MicroBatch", "batch": "2m"},
    "sources": [
        {
            "name": "flights",
            "after": "history",
            "paused": False,
            "backlog": {"watermarkLag": "5m", "pendingRecords": 1_000_000, "query": "up == 1"},
            "rateLimit": {
                "recordsPerSecond": 5000,
                "recordsPerCheckpoint": 100_000,
                "maxBurst": "5s",
                "duringBacklog": {"recordsPerSecond": 50_000, "recordsPerCheckpoint": 10_000_000},
            },
            "alignment": {"group": "air", "maxDrift": "1h", "updateInterval": "2s", "idleAfter": "30m"},
            "eventTime": {"column": "at", "format": "Json", "maxFuture": "30m"},
            "kafka": {"publishGroup": "delays-lag"},
        },
        {"name": "history"},
    ],
}
_SPEC: Final[Manifest] = {
    "sparkVersion": "4.3.0",
    "image": "example/flights:1",
    "main": {"file": "local:///opt/app/job.py", "arguments": ["--out", "s3a://lake/delays"]},
    "sparkConf": {"spark.sql.shuffle.partitions": "64"},
    "driver": {"cores": 2, "memory": "2g", "scratch": "10Gi", "podTemplate": _TEMPLATE},
    "executor": {
        "instances": 3,
        "cores": 2,
        "memory": "4g",
        "scratch": "20Gi",
        "podTemplate": {
            **_TEMPLATE,
            "spec": {
                **_TEMPLATE["spec"],
                "containers": [{**_TEMPLATE["spec"]["containers"][0], "name": "executor"}],
            },
        },
    },
    "restart": {
        "policy": "OnFailure",
        "maxRetries": 3,
        "backoff": "20s",
        "maxBackoff": "10m",
        "resetAfter": "1h",
    },
    "stop": {"gracePeriod": "1m"},
    "suspend": False,
    "ttlAfterFinished": "1h",
    "metrics": {"source": "Prometheus", "staleAfter": "2m", "onOutage": "Hold"},
    "duringBacklog": {"executor": {"instances": 8}, "sparkConf": {"spark.x": "1"}},
    "queries": [_QUERY],
}

_DURATIONS: Final = {"least": "0s", "small": "10ms", "most": "2562047h", "invalid": "5 minutes"}
_BY_PATTERN: Final[Mapping[str, Mapping[str, Any]]] = {
    "(ms|s|m|h)": _DURATIONS,
    "[kmgtKMGT]": {"least": "1k", "most": "999999999999999T", "invalid": "1.5g"},
    "([KMGTP]i|": {"least": "1k", "most": "99999999999999Pi", "invalid": "1.5Gi"},
    "^4": {"least": "4.0", "most": "4.3.99", "invalid": "3.5.1"},
    "[^,/": {"least": "a", "most": "x" * 249, "invalid": "a,b"},
}
"""By a part of the pattern that no other one has."""


@dataclass(frozen=True)
class Field:
    """One field of the resource, at the place where `whole` has it."""

    path: Path
    schema: Schema

    def __str__(self) -> str:
        """As in the reference: `spec.queries[].name`."""
        return "".join("[]" if isinstance(step, int) else f".{step}" for step in self.path).removeprefix(".")

    def values(self) -> dict[str, Any]:
        """Return what it may be set to: its least and most, what is wrong there, nothing at all, and null."""
        return {"unset": UNSET, "null": None, **_values(self.schema)}


def whole(name: str = "flights") -> Manifest:
    """Return a resource in which every field that may be there is there."""
    return manifest(name, **json.loads(json.dumps(_SPEC)))  # no part of it is that of two fields


def fields() -> list[Field]:
    """Return every field below `spec`, objects and lists among them."""
    return list(_below(("spec",), _spec_schema(), whole()["spec"]))


def unreached() -> list[str]:
    """Return the fields of which `whole` has not even the object that they would be in."""
    reached = {str(field) for field in fields()}
    return [path for path in _paths("spec", _spec_schema()) if path not in reached]


def with_value(resource: Manifest, path: Path, value: Any) -> Manifest:
    """Return a copy of the resource with one field set, or taken out where the value is `UNSET`."""
    changed = copy.deepcopy(resource)
    owner: Any = changed
    for step in path[:-1]:
        owner = owner[step]
    if value is not UNSET:
        owner[path[-1]] = copy.deepcopy(value)
    elif isinstance(owner, list) or path[-1] in owner:
        del owner[path[-1]]
    return changed


def _spec_schema() -> Schema:
    (version,) = custom_resource_definition()["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def _below(path: Path, schema: Schema, value: Any) -> Iterator[Field]:
    for name, child in schema.get("properties", {}).items():
        yield Field((*path, name), child)
        if isinstance(value, Mapping) and name in value:
            yield from _below((*path, name), child, value[name])
    if "items" in schema and value:
        yield Field((*path, 0), schema["items"])
        yield from _below((*path, 0), schema["items"], value[0])
    if isinstance(schema.get("additionalProperties"), Mapping) and value:
        yield Field((*path, next(iter(value))), schema["additionalProperties"])


def _paths(path: str, schema: Schema) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from _paths(f"{path}.{name}", child)
    if "items" in schema:
        yield from _paths(f"{path}[]", schema["items"])


def _values(schema: Schema) -> dict[str, Any]:
    match schema.get("type"):
        case "boolean":
            return {"least": False, "most": True, "invalid": "yes"}
        case "integer":
            least, most = schema["minimum"], schema["maximum"]
            return {"least": least, "most": most, "below": least - 1, "invalid": most + 1, "text": "1"}
        case "number":
            most = schema["maximum"]
            return {"least": schema["minimum"] + 0.001, "most": most, "below": -1, "invalid": most * 10}
        case "string":
            return _texts(schema)
        case "array":
            most = [_item(schema["items"], number) for number in range(schema["maxItems"])]
            return {"least": [], "most": most, "invalid": [*most, *most[:1]], "text": "x"}
        case "object" if "properties" in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
            return {"least": {}, "most": {"unheardOf": "x"}, "invalid": "x"}
        case "object":
            most = {f"spark.x{number}": "x" for number in range(schema["maxProperties"])}
            return {"least": {}, "most": most, "invalid": most | {"spark.y": "x"}, "number": {"spark.x": 5}}
    return {"least": {}, "most": "Unlimited", "invalid": 5}


def _texts(schema: Schema) -> dict[str, Any]:
    if "enum" in schema:
        return {"least": schema["enum"][0], "most": schema["enum"][-1], "invalid": "Nonsense", "number": 5}
    longest = schema["maxLength"]
    found = next((values for part, values in _BY_PATTERN.items() if part in schema.get("pattern", "")), None)
    if found is None:
        found = {"least": "x" * schema.get("minLength", 0), "most": "x" * longest, "odd": "é\u0085\x1b[2J"}
    return {**found, "long": "x" * (longest + 1), "number": 5}


def _item(schema: Schema, number: int) -> Any:
    """Return an item of a list, one of its kind."""
    if schema.get("type") != "object":
        return f"x{number}"
    named = {"name": f"x{number}"} if "name" in schema.get("properties", {}) else {}
    return {
        name: f"/x{number}" for name in schema.get("required", ()) if name not in ("name", "container")
    } | named
