"""On a real API server with the chart's policy: an application is held from the moment that it is applied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.adapters.kubernetes.client import APPLICATIONS
from headgate.adapters.kubernetes.names import FINALIZER
from headgate.key import Key
from support.cluster import Cluster
from support.fake_kubelet import gone
from support.finalizer_policy import policy_in_force
from support.on_server import OnServer, on_server
from support.operating import manifest

pytestmark = pytest.mark.cluster

GIT = ("apply", "--server-side", "--field-manager", "argocd-controller", "-f", "-")
ANOTHER = "example.com/another"
STOP = {"gracePeriod": "1s"}


@pytest.fixture(scope="module")
def held(control_plane: Cluster) -> Iterator[str]:
    """A namespace in which the policy is in force."""
    namespace = control_plane.namespace()
    with policy_in_force(control_plane, namespace):
        yield namespace


@pytest.fixture
def o(control_plane: Cluster, held: str) -> Iterator[OnServer]:
    with on_server(control_plane, held) as served:
        yield served


def written(name: str, finalizers: tuple[str, ...] = (), **spec: Any) -> str:
    """Return the application as somebody has it in a file."""
    wanted = manifest(name, stop=STOP, **spec)
    wanted["metadata"] = {"name": name} | ({"finalizers": list(finalizers)} if finalizers else {})
    return json.dumps(wanted)


def finalizers(o: OnServer, name: str) -> list[str]:
    return list(o.application(name)["metadata"].get("finalizers", ()))


def has_gone(o: OnServer, name: str) -> bool:
    """Whether the application is gone."""
    return bool(o._run(gone(o.cluster, APPLICATIONS, Key(o.namespace, name))))


def managers(o: OnServer, name: str) -> dict[str, str]:
    """Return who has written to the application, and to which subresource last."""
    entries = o.application(name)["metadata"]["managedFields"]
    return {entry["manager"]: entry.get("subresource", "") for entry in entries}


def test_an_application_is_held_as_soon_as_it_is_there(o: OnServer) -> None:
    o.kubectl("apply", "-f", "-", input=written("alone"))
    o.kubectl("apply", "-f", "-", input=written("beside", (ANOTHER,)))
    o.kubectl("apply", "-f", "-", input=written("given", (FINALIZER,)))

    assert finalizers(o, "alone") == [FINALIZER]
    assert finalizers(o, "beside") == [ANOTHER, FINALIZER]
    assert finalizers(o, "given") == [FINALIZER]


def test_a_start_writes_to_the_application_its_status_alone(o: OnServer) -> None:
    o.apply("started")
    o.reconcile("started")

    assert "started-driver-1" in o.names()
    assert managers(o, "started")["headgate"] == "status"


def test_applying_the_same_again_and_again_changes_nothing(o: OnServer) -> None:
    """But for the first time, when the finalizer turns out not to be in the applier's file, and to be nobody's."""
    o.kubectl(*GIT, input=written("again"))
    o.kubectl(*GIT, input=written("again"))
    before = o.application("again")["metadata"]

    for _ in range(3):
        o.kubectl(*GIT, input=written("again"))

    after = o.application("again")["metadata"]
    assert after["finalizers"] == [FINALIZER]
    assert after["resourceVersion"] == before["resourceVersion"]


def test_a_change_in_git_meets_no_conflict_and_lets_nothing_go(o: OnServer) -> None:
    o.kubectl(*GIT, input=written("changed"))
    o.reconcile("changed")

    o.kubectl(*GIT, input=written("changed", executor={"instances": 5}))

    assert o.application("changed")["spec"]["executor"]["instances"] == 5
    assert finalizers(o, "changed") == [FINALIZER]


def test_whoever_replaces_the_object_does_not_let_it_go(o: OnServer) -> None:
    o.kubectl("create", "-f", "-", input=written("replaced"))

    o.kubectl("replace", "-f", "-", input=written("replaced", suspend=True))

    assert o.application("replaced")["spec"]["suspend"] is True
    assert finalizers(o, "replaced") == [FINALIZER]


def test_the_operator_lets_it_go_once_its_driver_has_stopped(o: OnServer) -> None:
    o.apply("deleted", stop=STOP)
    o.reconcile("deleted")
    o.runs("deleted-driver-1")
    o.reconcile("deleted")

    o.kubectl("delete", "hgapp", "deleted", "--wait=false")
    o.reconcile("deleted")
    assert finalizers(o, "deleted") == [FINALIZER]
    o.ends("deleted-driver-1", 0)
    o.reconciles(2, "deleted")

    assert has_gone(o, "deleted")


def test_it_lets_one_go_that_never_ran(o: OnServer) -> None:
    o.apply("suspended", suspend=True)

    o.kubectl("delete", "hgapp", "suspended", "--wait=false")
    o.reconciles(2, "suspended")

    assert has_gone(o, "suspended")


def test_what_was_let_go_is_not_held_again_while_another_holds_it(o: OnServer) -> None:
    o.kubectl("apply", "-f", "-", input=written("leaving", (ANOTHER,)))
    o.kubectl("delete", "hgapp", "leaving", "--wait=false")
    o.reconciles(2, "leaving")
    assert finalizers(o, "leaving") == [ANOTHER]

    o.kubectl("annotate", "hgapp", "leaving", "example.com/seen=yes")
    o.kubectl("replace", "-f", "-", input=written("leaving", (ANOTHER,), suspend=True))
    assert finalizers(o, "leaving") == [ANOTHER]

    o.kubectl("patch", "hgapp", "leaving", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert has_gone(o, "leaving")
