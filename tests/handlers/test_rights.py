"""Rights: what is asked for, what is missing, and in which words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.adapters.kubernetes.client import Kind, Manifest
from headgate.errors import ApiNotFound, ApiRefused, ApiUnavailable
from headgate.handlers.namespaces import Namespaces
from headgate.handlers.rights import Preflight, Right, rights_to_lead


@dataclass
class FakeApi:
    """Grants everything but what a test takes away."""

    denied: set[tuple[str, str]] = field(default_factory=set)
    """Verb, and resource with its subresource."""
    denied_in: set[str] = field(default_factory=set)
    """Namespaces in which nothing is granted."""
    listing: Exception | None = None
    refused_in: set[str] = field(default_factory=set)
    """Namespaces of which listings are refused although the rights are there."""
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    description: Manifest | None = None
    """The OpenAPI document, if the server publishes one."""

    async def create(self, kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
        assert "namespace" not in manifest["metadata"]
        asked = manifest["spec"]["resourceAttributes"]
        self.asked.append(asked)
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        is_denied = (asked["verb"], resource) in self.denied or asked.get("namespace") in self.denied_in
        return {"status": {"allowed": not is_denied}}

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None
    ) -> list[Manifest]:
        assert labels
        if self.listing is not None:
            raise self.listing
        if namespace in self.refused_in:
            raise ApiRefused(f"listing in {namespace}: 403", "403")
        return []

    async def describe(self, kind: Kind) -> Manifest:
        if self.description is None:
            raise ApiNotFound("404")
        return self.description


def preflight(
    api: FakeApi, *namespaces: str, lease: tuple[str, str] | None = ("headgate", "lock")
) -> tuple[Preflight, list[str]]:
    told: list[str] = []
    return Preflight(api, Namespaces(namespaces), lease, told.append), told


def obstacle(api: FakeApi, *namespaces: str) -> str:
    return asyncio.run(preflight(api, *namespaces)[0].obstacle())


def test_with_every_right_nothing_is_in_the_way() -> None:
    assert obstacle(FakeApi(), "team-a") == ""


def test_every_missing_right_is_named_by_namespace() -> None:
    api = FakeApi(denied={("patch", "sparkapplications/status"), ("create", "events"), ("patch", "leases")})

    assert obstacle(api, "team-a", "team-b") == (
        "missing rights: in namespace team-a: patch sparkapplications/status.headgate.dev, create events; "
        "in namespace team-b: patch sparkapplications/status.headgate.dev, create events; "
        "in namespace headgate: patch leases.coordination.k8s.io; grant them as in docs/operations.md"
    )


def test_without_namespaces_the_rights_are_those_to_the_cluster() -> None:
    api = FakeApi(denied={("watch", "pods")})

    assert (
        obstacle(api) == "missing rights: in all namespaces: watch pods; grant them as in docs/operations.md"
    )
    assert not [
        asked for asked in api.asked if "namespace" in asked and asked["group"] != "coordination.k8s.io"
    ]


def test_the_lease_is_asked_for_by_name() -> None:
    assert rights_to_lead(("headgate", "lock")) == (
        Right("get", "coordination.k8s.io", "leases", "headgate", "lock"),
        Right("create", "coordination.k8s.io", "leases", "headgate", "lock"),
        Right("patch", "coordination.k8s.io", "leases", "headgate", "lock"),
    )
    assert rights_to_lead(None) == ()


def test_a_missing_crd_and_a_server_that_is_gone_are_said() -> None:
    assert "install the CRD" in obstacle(FakeApi(listing=ApiNotFound("404")))
    assert obstacle(FakeApi(listing=ApiUnavailable("API server: refused"))) == "API server: refused"


def test_it_waits_until_nothing_is_in_the_way_and_says_so() -> None:
    api = FakeApi(denied={("watch", "pods")})
    waiting, told = preflight(api)

    async def run() -> None:
        passing = asyncio.create_task(waiting.passed())
        async with asyncio.timeout(240):
            while not told:
                await asyncio.sleep(0)
            api.denied.clear()
            await passing

    asyncio.run(run())
    assert told == ["missing rights: in all namespaces: watch pods; grant them as in docs/operations.md", ""]


def test_a_crd_that_is_too_old_is_waited_for() -> None:
    kind = {"group": "headgate.dev", "version": "v1alpha1", "kind": "SparkApplication"}
    older = {"properties": {}, "x-kubernetes-group-version-kind": [kind]}
    api = FakeApi(description={"components": {"schemas": {"ours": older}}})

    assert obstacle(api).startswith("the CRD is older than this operator")


def test_a_namespace_without_its_rights_keeps_no_other_from_being_served() -> None:
    waiting, told = preflight(
        FakeApi(denied_in={"team-b"}, refused_in={"team-c"}), "team-a", "team-b", "team-c"
    )
    asyncio.run(asyncio.wait_for(waiting.passed(), 240))

    assert told == [""]
    assert [waiting.namespaces.is_served(name) for name in waiting.namespaces.names] == [True, False, False]
    assert waiting.namespaces.unserved() == 2


def test_where_no_namespace_can_be_served_it_waits_and_names_each() -> None:
    api = FakeApi(denied_in={"team-a"}, refused_in={"team-b"})

    said = obstacle(api, "team-a", "team-b")
    assert "in namespace team-a: get sparkapplications.headgate.dev" in said
    assert "listing in team-b: 403" in said


def test_without_the_rights_to_the_lease_nobody_leads_whatever_can_be_served() -> None:
    assert "in namespace headgate: get leases" in obstacle(FakeApi(denied_in={"headgate"}), "team-a")


def test_what_is_missing_in_one_namespace_is_asked_for_by_itself() -> None:
    api = FakeApi(denied_in={"team-b"})
    asked, _ = preflight(api, "team-a", "team-b")

    assert asyncio.run(asked.missing("team-a")) == ""
    assert asyncio.run(asked.missing("team-b")).startswith("missing rights: in namespace team-b: ")
    api.denied_in.clear()
    assert asyncio.run(asked.missing("team-b")) == ""
