"""Helm on our chart: rendering it, linting it, installing it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from support.go_tools import ROOT, go_tool

CHART = ROOT / "charts" / "headgate"
RELEASE = "headgate"
NAMESPACE = "headgate-system"
KUBERNETES = "1.36.3"
"""The version to render for; a Helm that was built without its version flags would take a very old one."""
SERVED = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
"""The kind of that version that a template asks for: without a cluster Helm has to be told."""
HELM_SECONDS = 180.0
Manifest = dict[str, Any]


class HelmError(AssertionError):
    """Helm did not do it; the text is what it wrote to standard error."""


def helm(*arguments: str | Path, version: int = 4, input: str | None = None) -> str:  # noqa: A002
    """Run Helm 3 or 4 and return its standard output; raise HelmError with its standard error."""
    program = go_tool({3: "helm3", 4: "helm"}[version])
    done = subprocess.run(
        [program, *arguments], input=input, capture_output=True, text=True, timeout=HELM_SECONDS, check=False
    )
    if done.returncode != 0:
        raise HelmError(done.stderr.strip())
    return done.stdout


def render(*flags: str | Path, values: Mapping[str, Any] | None = None, version: int = 4) -> list[Manifest]:
    """Return what `helm template` makes of the chart, without a cluster."""
    given: Sequence[str] = () if values is None else ("--values", "-")
    options = ("--namespace", NAMESPACE, "--kube-version", KUBERNETES, "--api-versions", SERVED)
    command = ("template", RELEASE, CHART, *options, *given, *flags)
    text = helm(*command, version=version, input=None if values is None else json.dumps(values))
    return [manifest for manifest in yaml.load_all(text, Strict) if manifest]


class Strict(yaml.CSafeLoader):
    """Refuses a key that a mapping has twice, as a cluster does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping; raise HelmError with the place of a key that comes again."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if again := {key for key in keys if keys.count(key) > 1}:
            raise HelmError(f"{sorted(again)} twice in one mapping{node.start_mark}")
        return super().construct_mapping(node, deep)


def of_kind(manifests: Sequence[Manifest], kind: str) -> dict[str, Manifest]:
    """Return the objects of a kind by `namespace/name`, or by name where they belong to no namespace."""
    return {named(manifest): manifest for manifest in manifests if manifest["kind"] == kind}


def named(manifest: Manifest) -> str:
    """Return `namespace/name`, or the name alone."""
    metadata = manifest["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
