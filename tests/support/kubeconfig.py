"""Kubeconfig files that hold all they need, so that they can be handed to any program."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path


def write_kubeconfig(path: Path, url: str, authority: str, credentials: Mapping[str, str]) -> Path:
    """Write a kubeconfig for one user of the API server at `url`, and return `path`.

    `authority` is the certificate that the server is known by, in base64 as `inline` returns it; `credentials` is
    what a kubeconfig says of a user.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "clusters": [
            {"name": "tests", "cluster": {"server": url, "certificate-authority-data": authority}},
        ],
        "users": [{"name": "tests", "user": dict(credentials)}],
        "contexts": [
            {"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": "default"}},
        ],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def inline(file: Path) -> str:
    """Return a PEM file as kubeconfig files hold it."""
    return base64.b64encode(file.read_bytes()).decode()
