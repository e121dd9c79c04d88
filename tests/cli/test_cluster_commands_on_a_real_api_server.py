"""Commands on a real API server: its answers, its rights, its certificates, and its bookkeeping of who wrote what."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.adapters.kubernetes.client import Kind
from headgate.cli.cluster import client
from support.certificates import Authority
from support.cluster import Cluster
from support.command_line import Ended, Headgate
from support.control_plane import program
from support.kubeconfig import inline, write_kubeconfig
from support.manifests import application, deepest, query, source

pytestmark = pytest.mark.cluster

Manifest = dict[str, Any]


class Applications:
    """`headgate` and `kubectl` in one namespace of a real cluster."""

    def __init__(self, plane: Cluster, namespace: str, headgate: Headgate) -> None:
        self.plane = plane
        self.namespace = namespace
        self._headgate = headgate

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> Ended:
        where = ("-n", self.namespace, "--kubeconfig", str(kubeconfig or self.plane.kubeconfig))
        return self._headgate(*arguments, *where)

    def apply(self, manager: str, **spec: Any) -> None:
        """Apply the application `flights` from a repository, so to say."""
        manifest = application(query(source("flights"), source("weather")), **spec)
        manifest["metadata"]["name"] = "flights"
        arguments = ("--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-")
        self.plane.kubectl("apply", "-n", self.namespace, *arguments, input=json.dumps(manifest))

    def report(self, **status: Any) -> None:
        """Write a status as the operator does."""
        manifest = {
            "apiVersion": "headgate.dev/v1alpha1",
            "kind": "SparkApplication",
            "metadata": {"name": "flights"},
            "status": status,
        }
        arguments = ("--server-side", "--subresource=status", "--field-manager=headgate", "-f", "-")
        self.plane.kubectl("apply", "-n", self.namespace, *arguments, input=json.dumps(manifest))

    def get(self) -> Manifest:
        return self.plane.get("hgapp", "flights", "-n", self.namespace, "--show-managed-fields")

    @property
    def is_suspended(self) -> bool:
        return self.get()["spec"]["suspend"] is True


@pytest.fixture
def applications(control_plane: Cluster, namespace: str, headgate: Headgate) -> Applications:
    return Applications(control_plane, namespace, headgate)


def test_suspend_and_resume_are_edits_under_a_manager_of_their_own(applications: Applications) -> None:
    applications.apply("somebody")

    assert applications.run("suspend", "flights").code == 0
    assert applications.is_suspended
    managers = {
        entry["manager"]: entry["fieldsV1"] for entry in applications.get()["metadata"]["managedFields"]
    }
    assert managers["headgate-cli"] == {"f:spec": {"f:suspend": {}}}
    assert applications.run("resume", "flights").code == 0
    assert not applications.is_suspended


def test_what_flux_declares_is_set_back_as_the_note_says(applications: Applications) -> None:
    applications.apply("kustomize-controller", suspend=False)

    ended = applications.run("suspend", "flights")

    assert ended.err.startswith("note: Flux applies spec.suspend too and sets it back at its next sync")
    assert applications.is_suspended
    applications.apply("kustomize-controller", suspend=False)
    assert not applications.is_suspended


def test_what_flux_does_not_declare_stays_as_the_note_says(applications: Applications) -> None:
    applications.apply("kustomize-controller")

    ended = applications.run("suspend", "flights")

    assert ended.err.startswith("note: Flux does not apply spec.suspend, so this stays")
    applications.apply("kustomize-controller", driver={"memory": "2g"})
    assert applications.is_suspended


def test_pauses_and_checkpoints_survive_a_sync(applications: Applications) -> None:
    applications.apply("kustomize-controller")

    assert applications.run("pause", "flights", "q/weather").code == 0
    assert applications.run("checkpoint", "flights", "q").code == 0
    applications.apply("kustomize-controller", driver={"memory": "2g"})

    annotations = applications.get()["metadata"]["annotations"]
    assert annotations["headgate.dev/paused"] == "q/weather"
    assert annotations["headgate.dev/checkpoint"].startswith("q/20")
    assert applications.run("unpause", "flights", "q/weather").code == 0
    assert "headgate.dev/paused" not in applications.get()["metadata"]["annotations"]


def test_annotations_are_no_change_of_the_spec(applications: Applications) -> None:
    applications.apply("somebody")
    applications.run("pause", "flights", "q/weather")

    assert applications.get()["metadata"]["generation"] == 1


def test_a_status_is_shown_with_the_events_of_the_new_api(applications: Applications) -> None:
    applications.apply("somebody")
    applications.report(
        state="Running",
        attempt=1,
        observedGeneration=1,
        queries=[{"name": "q", "backlog": True, "owner": "ada"}],
    )
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "flights.1"},
        "regarding": {
            "apiVersion": "headgate.dev/v1alpha1",
            "kind": "SparkApplication",
            "name": "flights",
            "namespace": applications.namespace,
            "uid": applications.get()["metadata"]["uid"],
        },
        "eventTime": "2026-03-01T08:00:00.000000Z",
        "reason": "BacklogEntered",
        "note": "query q: in backlog",
        "type": "Normal",
        "action": "Decide",
        "reportingController": "headgate.dev/operator",
        "reportingInstance": "operator",
    }
    applications.plane.kubectl("create", "-n", applications.namespace, "-f", "-", input=json.dumps(event))

    ended = applications.run("status", "flights")

    assert (ended.code, ended.err) == (0, "")
    assert "state     Running, attempt 1" in ended.out
    assert "status    written " in ended.out
    assert "query q  BACKLOG" in ended.out
    assert "owner     ada (Spark Connect)" in ended.out
    assert "BacklogEntered  query q: in backlog" in ended.out
    assert applications.run("top").out.splitlines()[1].startswith("flights  Running")


def test_an_application_that_no_operator_has_seen_is_told_from_one_that_is_done(
    applications: Applications,
) -> None:
    applications.apply("somebody")

    ended = applications.run("status", "flights")

    assert "resource  not seen by any operator yet" in ended.out
    assert applications.run("explain", "app/flights").code == 0


def test_a_live_object_is_compared_with_a_file(applications: Applications, tmp_path: Path) -> None:
    applications.apply("somebody")
    manifest = application(query(source("flights"), source("weather")), suspend=True)
    (tmp_path / "app.yaml").write_text(json.dumps(manifest))

    ended = applications.run("explain", "--diff", "app/flights", str(tmp_path / "app.yaml"))

    assert ended.out.splitlines() == [
        "application app: 1 operator",
        "  operator   spec.suspend: false -> true (the driver is stopped at the end of its batch)",
    ]


def test_a_refusal_of_the_api_server_is_passed_on(applications: Applications) -> None:
    applications.apply("somebody")
    nearly_full = {"metadata": {"annotations": {"x": "y" * 262_130}}}
    where = ("-n", applications.namespace, "--type=merge", "--patch-file=/dev/stdin")
    applications.plane.kubectl("patch", "hgapp", "flights", *where, input=json.dumps(nearly_full))

    ended = applications.run("pause", "flights", "q/weather")

    assert ended.code == 1
    assert "the API server refuses it: " in ended.err
    assert "metadata.annotations: Too long" in ended.err


def test_an_application_of_another_namespace_is_found_there(
    applications: Applications, headgate: Headgate
) -> None:
    applications.apply("somebody")
    elsewhere = Applications(applications.plane, applications.plane.namespace(), headgate)

    ended = elsewhere.run("suspend", "flights")

    assert ended.code == 1
    assert "there is no application flights in namespace" in ended.err
    assert applications.namespace in ended.err


def test_one_application_of_thousands_of_levels_keeps_no_other_from_being_shown(
    applications: Applications, headgate: Headgate
) -> None:
    applications.apply("somebody")
    hostile = Applications(applications.plane, applications.plane.namespace(), headgate)
    hostile.plane.kubectl("create", "-n", hostile.namespace, "-f", "-", input=deepest("deep"))
    try:
        shown = hostile.run("status", "-A")
        missed = hostile.run("suspend", "flights")
    finally:  # others list all of this control plane too
        hostile.plane.kubectl("delete", "-n", hostile.namespace, "hgapp", "--all")

    assert (shown.code, applications.namespace in shown.out, hostile.namespace in shown.out) == (
        0,
        True,
        True,
    )
    assert applications.namespace in missed.err


def test_a_cluster_whose_certificates_lack_what_python_3_13_wants_is_trusted(
    applications: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    applications.apply("somebody")
    lenient = ssl.create_default_context

    def of_python_3_13(**given: Any) -> ssl.SSLContext:
        context = lenient(**given)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", of_python_3_13)

    shown = applications.run("status", "flights")

    assert (shown.code, shown.err) == (0, "")


def test_kubectl_finds_the_commands_as_its_plugin(applications: Applications, tmp_path: Path) -> None:
    applications.apply("somebody")
    plugin = tmp_path / "kubectl-headgate"
    plugin.write_text(f"#!{sys.executable}\nfrom headgate.cli.main import main\nmain()\n")
    plugin.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "KUBECONFIG": str(applications.plane.kubeconfig),
    }
    command = [program("kubectl"), "headgate", "status", "flights", "-n", applications.namespace]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"flights (namespace {applications.namespace})\n")


@pytest.mark.parametrize("version", ["nobodys.example/v1alpha1", "headgate.dev/v1alpha9"])
def test_a_cluster_without_our_crd_or_with_another_one_is_told_apart_from_one_without_the_application(
    version: str, applications: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "APPLICATIONS", Kind(version, "sparkapplications"))

    ended = applications.run("status", "flights")

    assert ended.code == 1
    assert ended.err == (
        f"error: the cluster knows no SparkApplication of {version}; install the CRD, which the chart does, or give "
        "another --context\n"
    )


# Rights and certificates


def test_whoever_may_not_is_told_what_is_missing(applications: Applications) -> None:
    applications.apply("somebody")
    ann = applications.plane.user("ann")

    ended = applications.run("suspend", "flights", kubeconfig=ann)

    assert ended.code == 1
    assert ended.err == (
        'error: sparkapplications.headgate.dev "flights" is forbidden: User "ann" cannot get resource '
        f'"sparkapplications" in API group "headgate.dev" in the namespace "{applications.namespace}"; ask for that '
        "right, or give another --context\n"
    )


def test_whoever_may_only_read_sees_the_status_and_may_not_suspend(applications: Applications) -> None:
    applications.apply("somebody")
    where = ("-n", applications.namespace)
    verbs = ("--verb=get", "--verb=list", "--resource=sparkapplications.headgate.dev")
    applications.plane.kubectl("create", "role", "reader", *verbs, *where)
    applications.plane.kubectl("create", "rolebinding", "reader", "--role=reader", "--user=reader", *where)
    reader = applications.plane.user("reader")

    shown = applications.run("status", "flights", kubeconfig=reader)
    refused = applications.run("suspend", "flights", kubeconfig=reader)

    assert shown.code == 0
    assert "not shown: events is forbidden" in shown.out
    assert refused.code == 1
    assert "cannot patch resource" in refused.err


def test_a_token_that_nobody_knows_is_one_sentence(applications: Applications, tmp_path: Path) -> None:
    plane = applications.plane
    authority = json.loads(plane.kubectl("config", "view", "--minify", "--raw", "--flatten", "-o", "json"))
    known_by = authority["clusters"][0]["cluster"]["certificate-authority-data"]
    stranger = write_kubeconfig(tmp_path / "stranger", plane.url, known_by, {"token": "nonsense"})

    ended = applications.run("status", kubeconfig=stranger)

    assert ended.code == 1
    assert ended.err.endswith("does not know who you are; log in again, or give another --context\n")


def test_a_certificate_that_is_not_trusted_is_one_sentence(
    applications: Applications, tmp_path: Path
) -> None:
    other = inline(Authority.create(tmp_path / "other").own.certificate)
    misled = write_kubeconfig(tmp_path / "misled", applications.plane.url, other, {"token": "nonsense"})

    ended = applications.run("status", kubeconfig=misled)

    assert ended.code == 1
    assert ended.err.startswith(f"error: {applications.plane.url} cannot be reached: ")
    assert "CERTIFICATE_VERIFY_FAILED" in ended.err
    assert ended.err.count("\n") == 1


def test_the_doctor_finds_what_a_real_cluster_has(applications: Applications) -> None:
    """The forms of its answers are the API server's: version, fields of the CRD, and rights of an account."""
    applications.apply("kubectl")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "headgate", "labels": {"app.kubernetes.io/part-of": "headgate"}},
        "spec": {
            "selector": {"matchLabels": {"app": "headgate"}},
            "template": {
                "metadata": {"labels": {"app": "headgate"}},
                "spec": {"containers": [{"name": "operator", "image": "none"}]},
            },
        },
    }
    applications.plane.kubectl("apply", "-n", applications.namespace, "-f", "-", input=json.dumps(deployment))

    ended = applications.run("doctor", "--json")

    of = f"{applications.namespace}/headgate"
    found = {
        (each["check"], each["of"]): (each["level"], each["says"])
        for each in json.loads(ended.out)
        if each["of"] in ("cluster", of, f"{applications.namespace}/flights")
    }
    assert ended.code == 1
    assert found["api-server", "cluster"][0] == found["crd", "cluster"][0] == "ok", found
    assert found["operator", of] == ("problem", "no replica of the operator is ready, of 1")
    assert found["lease", of][0] == "unknown"
    level, says = found["rights", of]
    assert (level, says.startswith("default may not get sparkapplications.headgate.dev")) == ("problem", True)
    assert found["operator", f"{applications.namespace}/flights"][1] == "no operator has acted on it"
