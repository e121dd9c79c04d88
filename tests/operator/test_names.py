"""Names of applications on a real API server: what it refuses, and what goes away all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.adapters.kubernetes.client import APPLICATIONS
from headgate.adapters.kubernetes.names import FINALIZER
from headgate.key import Key
from support.cluster import CRDS, KubectlError
from support.control_plane import control_plane_in
from support.fake_kubelet import gone
from support.on_server import OnServer, on_server
from support.operating import manifest
from support.waiting import wait_until

pytestmark = pytest.mark.cluster

NAMES = ("orders.v2", "2024-orders", "a" * 41)


def named(name: str, **metadata: Any) -> str:
    shown = manifest(name)
    shown["metadata"] = {"name": name, **metadata}
    return json.dumps(shown)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_which_no_pod_could_be_named_is_refused(o: OnServer, name: str) -> None:
    with pytest.raises(KubectlError, match=r"metadata\.name"):
        o.kubectl("apply", "-f", "-", input=named(name))


def test_one_that_the_server_is_to_complete_is_refused_too(o: OnServer) -> None:
    shown = manifest("x")
    shown["metadata"] = {"generateName": "a" * 40}
    with pytest.raises(KubectlError, match=r"metadata\.name"):
        o.kubectl("create", "-f", "-", input=json.dumps(shown))


def test_one_that_was_let_through_by_another_definition_can_be_deleted(tmp_path: Path) -> None:
    (definition,) = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in CRDS.glob("*.yaml")]
    for version in definition["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["metadata"] = {"type": "object"}
    with control_plane_in(tmp_path / "plane") as plane, on_server(plane, plane.namespace()) as o:
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(definition))
        for name in NAMES:
            wait_until(lambda name=name: _is_taken(o, name), f"{name} to be taken")
        plane.install_crds()
        for name in NAMES:
            o.reconciles(2, name)
            assert o.said("Ready", name)[1] == "InvalidSpec"
            o.kubectl("delete", "hgapp", name, "--wait=false")
            o.reconciles(2, name)
            assert o._run(gone(o.cluster, APPLICATIONS, Key(o.namespace, name)))


def _is_taken(o: OnServer, name: str) -> bool:
    try:
        o.kubectl("apply", "-f", "-", input=named(name, finalizers=[FINALIZER]))
    except KubectlError:  # the server takes a moment to learn the definition
        return False
    return True
