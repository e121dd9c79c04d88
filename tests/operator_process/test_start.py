"""What a person sees when the operator cannot start, or not yet: settings, rights, the CRD."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.handlers.rights import LEASE, SERVED
from support.chart import NAMESPACE, of_kind, render
from support.cluster import Cluster
from support.control_plane import control_plane_in
from support.driver import listened_at
from support.go_tools import ROOT
from support.operator_process import operator_process
from support.served import Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster
CRD = ROOT / "crds" / "headgate.dev_sparkapplications.yaml"


def test_settings_that_are_refused_end_it_with_2(control_plane: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with operator_process(control_plane.kubeconfig, log, "--workers", "0", "--tick", "5") as operator:
        assert operator.wait() == 2

    assert log.read_text(encoding="utf-8").splitlines() == [
        "error: the settings are refused:",
        "  --workers: must be greater than or equal to 1, not '0'",
        "  --tick: 5 has no unit; write for example 250ms, 5s, 2m or 1h30m",
    ]


def test_a_kubeconfig_that_is_not_there_ends_it_with_2(tmp_path: Path) -> None:
    with operator_process(tmp_path / "none", tmp_path / "log") as operator:
        assert operator.wait() == 2

    assert "no cluster to connect to" in (tmp_path / "log").read_text(encoding="utf-8")


def test_every_missing_right_is_named_and_a_granted_one_is_noticed(start, served: Served) -> None:
    operator = start(kubeconfig=served.account())
    said = operator.line("missing rights")["event"]

    for rule in SERVED:
        resource = f"{rule.resource}.{rule.group}" if rule.group else rule.resource
        assert all(f"{verb} {resource}" in said for verb in rule.verbs)
    assert all(f"{verb} leases.coordination.k8s.io" in said for verb in LEASE[0].verbs)
    status, reason = operator.probe("/readyz")
    assert (status, reason.strip()) == (503, said)
    assert operator.probe("/healthz")[0] == 200

    served.grant()
    operator.begin_leading()


def test_the_chart_s_role_is_all_that_it_needs_for_a_whole_life(start, served: Served) -> None:
    operator = start().begin_leading()
    served.declare(restart={"backoff": "1s"})
    served.driver()
    served.runs("flights-driver-1")
    served.becomes("Running")
    begun = operator.line("headgate operator")
    assert {port for _, port in listened_at(operator.process.pid)} == {
        begun["metrics_port"],
        begun["probe_port"],
    }, "it waits for nobody else"
    served.declare(restart={"backoff": "1s"}, suspend=True)
    served.becomes("Suspended")
    served.declare(restart={"backoff": "1s"}, suspend=False)
    served.driver(attempt=2)
    served.kubectl("delete", "sparkapplication", "flights", "--wait=false")
    wait_until(lambda: served.application() is None, "the application to go")

    assert operator.stop() == 0
    assert [line for line in operator.lines() if "forbidden" in json.dumps(line)] == []


def test_it_waits_for_the_crd_and_starts_when_it_is_installed(tmp_path: Path) -> None:
    with control_plane_in(tmp_path / "plane") as plane:
        plane.kubectl("delete", "-f", CRD)
        flags = ("--no-leader-election", "--default-image", "example/spark:4.3.0")
        with operator_process(plane.kubeconfig, tmp_path / "log", *flags) as operator:
            assert operator.line("install the CRD: headgate crd")
            assert operator.probe("/readyz")[0] == 503
            plane.install_crds()
            operator.begin_leading()
            served = Served(plane, plane.namespace())
            served.declare()
            served.driver()


def test_the_rights_it_asks_for_are_those_of_the_chart() -> None:
    roles = of_kind(render(), "ClusterRole") | of_kind(render(), "Role")

    def verbs(name: str) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for rule in roles[name]["rules"]:
            for resource in rule["resources"]:
                found.setdefault((rule["apiGroups"][0], resource), set()).update(rule["verbs"])
        return found

    assert verbs("headgate") == {(rule.group, rule.resource): set(rule.verbs) for rule in SERVED}
    assert verbs(f"{NAMESPACE}/headgate-lease") == {
        (rule.group, rule.resource): set(rule.verbs) for rule in LEASE
    }
