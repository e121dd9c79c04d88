"""JSON schemas of everything that the chart renders, for kubeconform, from pinned sources and without a network.

Kubernetes' own kinds come from the API description in the Go module that the API server of the tests is built from;
the kinds of the Prometheus operator from the CRDs in its Go module; ours from `crds/`. Each is strict: a field that
the kind does not have is an error, as it is for `kubectl apply`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from support.go_tools import MODULES, ROOT

FOLDER = ROOT / "build" / "schemas"
TEMPLATE = f"{FOLDER}/{{{{.ResourceKind}}}}-{{{{.Group}}}}-{{{{.ResourceAPIVersion}}}}.json"
"""Where kubeconform finds the schema of a kind, in its own words."""
Schema = dict[str, Any]
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
LOOSE = {"io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING}
"""Definitions whose type the description understates."""


@cache
def write_schemas() -> str:
    """Write the schemas of all kinds; return the location to give to kubeconform."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    definitions = _kubernetes()
    (FOLDER / "definitions.json").write_text(json.dumps({"definitions": definitions}))
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            _write(kind["kind"], kind["group"], kind["version"], {"$ref": _reference(name)})
    for definition in prometheus_operator_crds() + [yaml.safe_load(p.read_text()) for p in _ours()]:
        for version in definition["spec"]["versions"]:
            schema = dict(_strict(version["schema"]["openAPIV3Schema"]))
            _write(definition["spec"]["names"]["kind"], definition["spec"]["group"], version["name"], schema)
    return TEMPLATE


def prometheus_operator_crds() -> list[dict[str, Any]]:
    """Return the definitions of PodMonitor, ServiceMonitor and PrometheusRule."""
    folder = go_module("monitoring", "github.com/prometheus-operator/prometheus-operator")
    kinds = ("podmonitors", "servicemonitors", "prometheusrules")
    crds = folder / "example" / "prometheus-operator-crd"
    return [yaml.safe_load((crds / f"monitoring.coreos.com_{kind}.yaml").read_text()) for kind in kinds]


def go_module(name: str, path: str) -> Path:
    """Return the source folder of a Go module that the module `name` of our tools pins."""
    command = ["go", "mod", "download", "-json", path]
    done = subprocess.run(command, cwd=MODULES / name, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def _ours() -> list[Path]:
    return sorted((ROOT / "crds").glob("*.yaml"))


def _kubernetes() -> dict[str, Schema]:
    """Return the definitions of Kubernetes' own kinds, with references to one another."""
    swagger = go_module("kube", "k8s.io/kubernetes") / "api" / "openapi-spec" / "swagger.json"
    described = json.loads(swagger.read_text())["definitions"]
    strict = {name: dict(_strict(schema)) for name, schema in described.items()}
    return strict | LOOSE


def _strict(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Yield the members of a schema that forbids unknown fields, wherever it names the known ones."""
    for word, value in schema.items():
        match word, value:
            case "properties", dict():
                yield word, {name: dict(_strict(child)) for name, child in value.items()}
            case (("items" | "additionalProperties"), dict()):
                yield word, dict(_strict(value))
            case "$ref", str():
                yield word, _reference(value.removeprefix("#/definitions/"))
            case "format", _:
                continue  # int32, int-or-string and others that are no formats of JSON Schema
            case _:
                yield word, value
    if schema.get("x-kubernetes-int-or-string"):
        yield from INT_OR_STRING.items()
    elif "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield "additionalProperties", False


def _reference(name: str) -> str:
    return f"file://{FOLDER}/definitions.json#/definitions/{name}"


def _write(kind: str, group: str, version: str, schema: Schema) -> None:
    # Kubeconform calls the group of the core kinds, which has no name, like their version.
    file = FOLDER / f"{kind.lower()}-{group or version}-{version}.json"
    file.write_text(json.dumps(schema))
