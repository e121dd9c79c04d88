"""What a person sees of an operator in surroundings that are not its own: a CRD of another version, other clocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from headgate import __version__
from support.cluster import CRDS, Cluster
from support.manifests import deepest
from support.served import LEASE, Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster

CRD = CRDS / "headgate.dev_sparkapplications.yaml"
SHORT = ("--lease-duration", "6s", "--lease-renew-deadline", "4s", "--lease-retry-period", "500ms")
Schema = dict[str, Any]


@contextmanager
def another_version(cluster: Cluster, change: Callable[[Schema], None]) -> Iterator[None]:
    """The CRD of another version is installed, and ours again afterwards."""
    definition = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    change(schema)
    ours = described(cluster)
    cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))
    try:
        wait_until(lambda: described(cluster) != ours, "the API server to describe the other version")
        yield
    finally:
        cluster.install_crds()
        wait_until(lambda: described(cluster) == ours, "the API server to describe our version")


def described(cluster: Cluster) -> str:
    """What the API server publishes of our CRD, a moment after it was changed."""
    return cluster.kubectl("get", "--raw", "/openapi/v3/apis/headgate.dev/v1alpha1")


def of_queries(schema: Schema) -> Schema:
    fields: Schema = schema["spec"]["properties"]["queries"]["items"]["properties"]
    return fields


def without_a_status_field(schema: Schema) -> None:
    del schema["status"]["properties"]["summary"]


def without_a_setting(schema: Schema) -> None:
    del schema["spec"]["properties"]["ttlAfterFinished"]


def with_a_setting(schema: Schema) -> None:
    of_queries(schema)["priority"] = {"type": "integer", "default": 3}  # which the API server fills in


def test_a_crd_that_is_too_old_to_write_to_is_waited_for(start, served: Served) -> None:
    with another_version(served.cluster, without_a_status_field):
        operator = start("--no-leader-election")
        said = (
            f"the CRD is older than this operator ({__version__}): it lacks status.summary, so that a status could "
            "not be written; install this version's: headgate crd | kubectl apply --server-side -f -"
        )
        assert wait_until(lambda: operator.probe("/readyz") == (503, f"{said}\n"), "to say what it waits for")
        assert operator.line("older than this operator")["event"] == said
        served.declare()
    operator.begin_leading()
    served.driver()
    served.is_scheduled("flights-driver-1")
    assert served.becomes("Starting")["summary"]["query"] == "q"


def test_a_crd_without_a_setting_is_told_of_and_worked_with(start, served: Served) -> None:
    with another_version(served.cluster, without_a_setting):
        operator = start("--no-leader-election").begin_leading()
        assert operator.line("older than this operator")["event"] == (
            f"the CRD is older than this operator ({__version__}): no resource can have spec.ttlAfterFinished, which "
            "the API server drops or refuses; install this version's: headgate crd | kubectl apply --server-side -f -"
        )
        served.declare()
        served.driver()


def test_a_setting_of_a_later_version_is_refused_by_name_and_nothing_else_is(start, served: Served) -> None:
    with another_version(served.cluster, with_a_setting):
        operator = start("--no-leader-election").begin_leading()
        assert operator.line("newer than this operator")["event"] == (
            f"the CRD is newer than this operator ({__version__}), which does not know spec.queries[].priority; a "
            "resource that sets one of them is refused (InvalidSpec) until the operator is upgraded"
        )
        served.declare()
        served.driver()
        uid = served.pods()[0]["metadata"]["uid"]
        later = [{"op": "add", "path": "/spec/queries/0/priority", "value": 7}]
        served.kubectl("patch", "sparkapplication", "flights", "--type=json", "-p", json.dumps(later))

        def stalled() -> dict[str, Any] | None:
            conditions = served.status().get("conditions", ())
            return next((c for c in conditions if c["type"] == "Stalled" and c["status"] == "True"), None)

        condition = wait_until(stalled, "the application to be stalled")
        assert (condition["reason"], condition["observedGeneration"]) == ("InvalidSpec", 2)
        assert condition["message"].startswith("spec.queries[q].priority: unknown field")
        assert [pod["metadata"]["uid"] for pod in served.pods()] == [uid]


def test_a_resource_of_thousands_of_levels_is_refused_and_keeps_nobody_from_being_served(
    start, served: Served
) -> None:
    def declare_deep(name: str) -> None:
        served.kubectl("create", "-f", "-", input=deepest(name))

    def is_refused(name: str) -> bool:
        reasons = "jsonpath={.status.conditions[*].reason}"
        return "InvalidSpec" in served.kubectl("get", "sparkapplication", name, "-o", reasons)

    try:
        declare_deep("listed")
        operator = start("--no-leader-election").begin_leading()
        wait_until(lambda: is_refused("listed"), "the one that is listed to be refused")
        declare_deep("watched")
        wait_until(lambda: is_refused("watched"), "the one that a watch tells to be refused")
        served.declare()
        served.driver()
    finally:  # other tests list all of this control plane, at Python's own recursion limit
        served.kubectl("delete", "sparkapplication", "listed", "watched", "--ignore-not-found")
    said = operator.line("the spec is refused")["event"]
    assert said.startswith(
        "the spec is refused: spec.driver.podTemplate: has more than 64 levels in one another"
    )


def test_a_lease_from_a_clock_that_is_years_ahead_is_taken_after_its_duration(start, served: Served) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE},
        "spec": {
            "holderIdentity": "ghost",
            "leaseDurationSeconds": 2,
            "acquireTime": "2035-01-01T00:00:00.000000Z",
            "renewTime": "2035-01-01T00:00:00.000000Z",
        },
    }
    served.kubectl("create", "-f", "-", input=json.dumps(lease))
    operator = start("--identity", "a", *SHORT)
    operator.line("waiting for the lease")
    operator.begin_leading()
    taken = json.loads(served.kubectl("get", "lease", LEASE, "-o", "json"))["spec"]
    assert taken["holderIdentity"] == "a"
    assert taken["renewTime"] < "2035"
