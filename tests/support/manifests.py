"""Manifests for tests: the smallest good one, and changes to it."""

from __future__ import annotations

import copy
import json
from typing import Any

from headgate.api.finding import Location

Manifest = dict[str, Any]


def application(*queries: Manifest, **spec: Any) -> Manifest:
    """Return a good application with `queries`, and `spec` over the least there is."""
    return {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": "app"},
        "spec": {"main": {"file": "job.py"}, "queries": list(queries), **spec},
    }


def query(*sources: Manifest, **settings: Any) -> Manifest:
    """Return the query `q`."""
    return {"name": "q", "sources": list(sources), **settings}


def source(name: str = "s", **settings: Any) -> Manifest:
    """Return a source."""
    return {"name": name, **settings}


def deepest(name: str) -> str:
    """Return the JSON of an application with almost as many objects in one another as an API server takes."""
    manifest = application(query(), driver={"podTemplate": {"spec": {"affinity": {"a": "deep"}}}})
    manifest["metadata"]["name"] = name
    levels = 9_900
    return json.dumps(manifest).replace('{"a": "deep"}', '{"a":' * levels + "1" + "}" * levels)


def changed(manifest: Manifest, location: Location, value: Any) -> Manifest:
    """Return a copy of `manifest` with `value` at `location`; objects on the way are made."""
    copied = copy.deepcopy(manifest)
    node: Any = copied
    for step in location[:-1]:
        node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
    node[location[-1]] = value
    return copied
