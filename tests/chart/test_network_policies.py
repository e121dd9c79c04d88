"""Who reaches whom where the chart's NetworkPolicies are enforced, computed from what is rendered by the API's rules.

The plugin of the tests' nodes enforces none, so no packet is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from support.chart import NAMESPACE, Manifest, of_kind, render

pytestmark = pytest.mark.programs

Labels = Mapping[str, str]
CLOSED = {"networkPolicy": {"enabled": True}, "drivers": {"namespaces": ["etl"]}}
SCRAPER = {"podSelector": {"matchLabels": {"app": "prometheus"}}, "namespaceSelector": {}}
OUTSIDE = "203.0.113.7"
"""An address that is no pod's."""


class Pod(NamedTuple):
    namespace: str
    labels: tuple[tuple[str, str], ...]
    ports: tuple[tuple[str, int], ...] = ()

    def bears(self, selector: Mapping[str, Any]) -> bool:
        labels = dict(self.labels)
        return selector.get("matchLabels", {}).items() <= labels.items() and all(
            one["operator"] == "In" and labels.get(one["key"]) in one["values"]
            for one in selector.get("matchExpressions", ())
        )

    def port(self, named: int | str) -> int:
        return named if isinstance(named, int) else dict(self.ports)[named]


def of_role(role: str, namespace: str = "etl", application: str = "flights") -> Pod:
    labels = {"headgate.dev/role": role, "headgate.dev/application": application}
    return Pod(namespace, tuple(labels.items()))


DRIVER, EXECUTOR, OTHER = of_role("driver"), of_role("executor"), Pod("etl", (("app", "other"),))
PROMETHEUS = Pod("monitoring", (("app", "prometheus"),))
OPERATOR = Pod(
    NAMESPACE,
    (("app.kubernetes.io/name", "headgate"), ("app.kubernetes.io/instance", "headgate")),
    (("metrics", 8080), ("probes", 8081)),
)
RPC, BLOCKS, UI, METRICS, ANY = 7078, 7079, 4040, 8090, 35_117


def reaches(
    manifests: list[Manifest], source: Pod | str, target: Pod | str, port: int, protocol: str = "TCP"
) -> bool:
    """Whether no policy stands between a pod or an address and another, at a port."""
    policies = of_kind(manifests, "NetworkPolicy").values()

    def lets(one: Pod | str, other: Pod | str, kind: str, peers: str) -> bool:
        mine = [policy for policy in policies if isinstance(one, Pod) and is_of(policy, one, kind)]
        rules = [rule for policy in mine for rule in policy["spec"].get(kind.lower(), ())]
        end = target if isinstance(target, Pod) else Pod("", ())
        return not mine or any(
            fits(rule, mine[0]["metadata"]["namespace"], other, peers, (end, port, protocol))
            for rule in rules
        )

    return lets(source, target, "Egress", "to") and lets(target, source, "Ingress", "from")


def is_of(policy: Manifest, pod: Pod, kind: str) -> bool:
    spec = policy["spec"]
    is_here = policy["metadata"]["namespace"] == pod.namespace
    return is_here and kind in spec["policyTypes"] and pod.bears(spec["podSelector"])


def fits(rule: Manifest, namespace: str, other: Pod | str, peers: str, to: tuple[Pod, int, str]) -> bool:
    end, port, protocol = to
    ports = rule.get("ports")
    at_port = ports is None or any(
        end.port(one["port"]) == port and one.get("protocol", "TCP") == protocol for one in ports
    )
    return at_port and (not rule.get(peers) or any(is_peer(one, namespace, other) for one in rule[peers]))


def is_peer(peer: Manifest, namespace: str, other: Pod | str) -> bool:
    if isinstance(other, str):
        return "ipBlock" in peer
    if "ipBlock" in peer:
        return False
    where = peer.get("namespaceSelector")
    of_namespace = {"kubernetes.io/metadata.name": other.namespace}
    is_there = (
        other.namespace == namespace
        if where is None
        else where.get("matchLabels", {}).items() <= of_namespace.items()
    )
    return is_there and other.bears(peer.get("podSelector", {}))


def everywhere() -> Iterator[tuple[Pod, int]]:
    yield from ((DRIVER, port) for port in (RPC, BLOCKS, UI, METRICS, ANY))
    yield from ((EXECUTOR, port) for port in (BLOCKS, ANY))


def test_by_default_nothing_is_closed() -> None:
    manifests = render(values={"drivers": {"namespaces": ["etl"]}})
    assert all(reaches(manifests, OTHER, pod, port) for pod, port in everywhere())


def test_of_an_application_strangers_reach_its_metrics_alone() -> None:
    manifests = render(values=CLOSED)
    for stranger in (OTHER, PROMETHEUS, OUTSIDE, of_role("executor", namespace="elsewhere")):
        reached = [(pod, port) for pod, port in everywhere() if reaches(manifests, stranger, pod, port)]
        assert reached == [(DRIVER, METRICS)]


def test_driver_and_executors_work_together() -> None:
    for more in ({}, {"jobEgress": {"enabled": True}}):
        manifests = render(values={**CLOSED, "networkPolicy": {"enabled": True, **more}})
        assert all(reaches(manifests, EXECUTOR, DRIVER, port) for port in (RPC, BLOCKS))
        assert reaches(manifests, DRIVER, EXECUTOR, ANY)
        assert reaches(manifests, EXECUTOR, of_role("executor"), ANY)
        assert not reaches(manifests, EXECUTOR, DRIVER, UI)


def test_metrics_are_for_those_who_are_named_and_for_the_operator() -> None:
    manifests = render(values={**CLOSED, "networkPolicy": {"enabled": True, "metricsFrom": [SCRAPER]}})
    assert reaches(manifests, PROMETHEUS, DRIVER, METRICS)
    assert reaches(manifests, OPERATOR, DRIVER, METRICS)
    assert reaches(manifests, PROMETHEUS, OPERATOR, 8080)
    assert not reaches(manifests, OTHER, DRIVER, METRICS)
    assert not reaches(manifests, OTHER, OPERATOR, 8080)


@pytest.mark.parametrize(
    "extra", [[], [{"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}], "ports": [{"port": 9092}]}]]
)
def test_a_job_reaches_what_is_named_where_its_egress_is_limited(extra: list[Any]) -> None:
    limited = {"enabled": True, "jobEgress": {"enabled": True, "extra": extra}}
    manifests = render(values={**CLOSED, "networkPolicy": limited})
    assert reaches(manifests, DRIVER, OUTSIDE, 6443), "the API server"
    assert not reaches(manifests, EXECUTOR, OUTSIDE, 6443)
    for pod in (DRIVER, EXECUTOR):
        assert reaches(manifests, pod, OUTSIDE, 53, "UDP")
        assert reaches(manifests, pod, OUTSIDE, 9092) is bool(extra)
        assert not reaches(manifests, pod, OUTSIDE, 80), "a cloud's metadata, say"
        assert not reaches(manifests, pod, OTHER, 80)


def test_the_operator_reaches_what_it_works_with_and_nothing_else() -> None:
    manifests = render(values={**CLOSED, "networkPolicy": {"enabled": True, "egress": {"enabled": True}}})
    assert reaches(manifests, OPERATOR, DRIVER, METRICS)
    assert all(reaches(manifests, OPERATOR, OUTSIDE, port) for port in (443, 6443, 9090))
    assert not reaches(manifests, OPERATOR, DRIVER, RPC)
    assert not reaches(manifests, OPERATOR, EXECUTOR, ANY)
    assert not reaches(manifests, OPERATOR, OUTSIDE, 80)
