"""The chart on a real API server: installed, upgraded, rolled back and uninstalled, by Helm 3 and 4."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.handlers.rights import LEASE, SERVED, PolicyRule
from support.chart import CHART, RELEASE, Manifest, helm, of_kind, render
from support.cluster import Cluster, KubectlError
from support.control_plane import ControlPlane
from support.go_tools import ROOT
from support.operator_process import OperatorProcess, operator_process
from support.schemas import prometheus_operator_crds
from support.served import IMAGE, Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster

DEFINITION = "sparkapplications.headgate.dev"
VALUES = Path(__file__).parent / "values"
EXAMPLE = ROOT / "examples" / "cluster" / "readings.yaml"
AS_THE_CHART_SAYS = {"HEADGATE_DRIVER_SERVICE_ACCOUNT": ""}
"""An empty variable sets nothing."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that knows nothing of us yet, with the kinds of the Prometheus operator."""
    plane = ControlPlane(tmp_path_factory.mktemp("bare"), controllers=True)
    try:
        plane.start()
        for definition in prometheus_operator_crds():
            plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))
        yield plane
    finally:
        plane.stop()


class Release:
    """One release of the chart in a namespace of its own."""

    def __init__(self, cluster: Cluster, version: int = 4) -> None:
        self.cluster, self.version = cluster, version
        self.namespace = cluster.namespace()

    def helm(self, *arguments: str | Path) -> str:
        options = ("--namespace", self.namespace, "--kubeconfig", self.cluster.kubeconfig)
        return helm(*arguments, *options, version=self.version)

    def install(self, chart: Path = CHART, *flags: str | Path) -> str:
        return self.helm("install", RELEASE, chart, *flags)

    def upgrade(self, chart: Path = CHART, *flags: str | Path) -> str:
        return self.helm("upgrade", RELEASE, chart, *flags)

    def uninstall(self) -> str:
        return self.helm("uninstall", RELEASE, "--wait", "--ignore-not-found")

    def deployment(self) -> Manifest:
        return self.cluster.get("deployment", RELEASE, "-n", self.namespace)

    def apply_example(self) -> None:
        self.cluster.wait_for_crds(f"crd/{DEFINITION}")
        wait_until(self._has_applied, "the example to be taken")

    def _has_applied(self) -> bool:
        try:
            self.cluster.kubectl("apply", "-n", self.namespace, "-f", EXAMPLE)
        except KubectlError as error:
            if "no matches for kind" in str(error):  # discovery is told of a new kind a moment later
                return False
            raise
        return True

    def applications(self) -> list[str]:
        listed = self.cluster.get("sparkapplications", "-n", self.namespace)["items"]
        return [application["metadata"]["name"] for application in listed]


@pytest.fixture
def release(bare: Cluster) -> Iterator[Release]:
    release = Release(bare)
    yield release
    release.uninstall()
    forget_definition(bare)


def definition(cluster: Cluster) -> Manifest | None:
    found = cluster.kubectl("get", "crd", DEFINITION, "--ignore-not-found", "-o", "json")
    return json.loads(found) if found else None


def columns(cluster: Cluster) -> list[str]:
    found = definition(cluster)
    assert found is not None
    return [column["name"] for column in found["spec"]["versions"][0]["additionalPrinterColumns"]]


def forget_definition(cluster: Cluster) -> None:
    cluster.kubectl("delete", "crd", DEFINITION, "--ignore-not-found", "--timeout=240s")


def older_chart(folder: Path) -> Path:
    """Return the chart as an earlier version could have been: another image, and a definition without a column."""
    chart = Path(shutil.copytree(CHART, folder / "headgate"))
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.9", "appVersion": "0.0.9"}))
    (template,) = (chart / "templates" / "crds").iterdir()
    column = "    - name: ETA\n      type: string\n      jsonPath: .status.summary.eta\n"
    assert column in template.read_text()
    template.write_text(template.read_text().replace(column, ""))
    return chart


@pytest.mark.parametrize("version", [3, 4])
def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(
    version: int, bare: Cluster, tmp_path: Path
) -> None:
    release = Release(bare, version)
    release.install(older_chart(tmp_path))
    assert "ETA" not in columns(bare)
    release.apply_example()

    release.upgrade()
    assert "ETA" in columns(bare), "an upgrade upgrades the definition"
    assert release.deployment()["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":0.1.0")

    release.helm("rollback", RELEASE, "1")
    assert "ETA" not in columns(bare)
    assert release.deployment()["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":0.0.9")

    release.uninstall()
    assert "helm.sh/resource-policy" in definition(bare)["metadata"]["annotations"]  # type: ignore[index]
    assert release.applications() == ["readings"], (
        "the definition was to be kept, and what it defines with it"
    )
    assert bare.get("deployments", "-n", release.namespace)["items"] == []

    release.install()
    assert release.applications() == ["readings"], "a definition that was kept is taken over"
    release.uninstall()
    forget_definition(bare)


def test_without_keep_the_definition_goes_and_every_application_with_it(release: Release) -> None:
    release.install(CHART, "--set", "crds.keep=false")
    release.apply_example()

    release.uninstall()

    wait_until(lambda: definition(release.cluster) is None, "the end of the definition")


def test_without_keep_what_is_left_waits_for_an_operator_that_lets_it_go(
    release: Release, tmp_path: Path
) -> None:
    served = Served(release.cluster, release.namespace)
    told = release.install(CHART, "--set", "crds.keep=false")
    assert "Before you uninstall this release, delete every SparkApplication" in told
    with operating(release, tmp_path / "first.log") as operator:
        served.declare()
        served.driver()
        served.runs("flights-driver-1")
        served.becomes("Running")
        operator.stop()

    release.helm("uninstall", RELEASE)

    wait_until(lambda: is_leaving(served.application()), "the deletion of the application")
    assert is_leaving(definition(release.cluster)), "an application is there that nobody lets go"
    assert not is_leaving(served.driver()), "drivers run on"

    release.install(CHART, "--set", "crds.install=false")
    with operating(release, tmp_path / "second.log"):
        wait_until(lambda: definition(release.cluster) is None, "the end of the definition")
    assert served.pods() == []


def is_leaving(manifest: Manifest | None) -> bool:
    return manifest is not None and "deletionTimestamp" in manifest["metadata"]


def test_the_definition_may_be_somebody_elses(release: Release) -> None:
    release.cluster.install_crds()

    release.install(CHART, "--set", "crds.install=false")
    release.uninstall()

    assert definition(release.cluster) is not None


@pytest.mark.parametrize("path", sorted(VALUES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_api_server_takes_every_set_of_values(path: Path, release: Release) -> None:
    values = yaml.safe_load(path.read_text())
    named = {*values.get("namespaces", ()), *values.get("drivers", {}).get("namespaces", ())}
    named |= {values.get("monitoring", {}).get("dashboards", {}).get("namespace")} - {None}
    for name in named:
        release.cluster.kubectl("create", "namespace", name)

    release.install(CHART, "--values", path)

    manifests = release.helm("get", "manifest", RELEASE)
    there = json.loads(release.cluster.kubectl("get", "-f", "-", "-o", "json", input=manifests))["items"]
    assert len(there) == len([manifest for manifest in yaml.safe_load_all(manifests) if manifest]) > 0
    release.uninstall()
    for name in named:
        release.cluster.kubectl("delete", "namespace", name)


def test_the_operators_pod_keeps_to_the_restricted_standard(release: Release) -> None:
    enforced = (
        "pod-security.kubernetes.io/enforce=restricted",
        "pod-security.kubernetes.io/enforce-version=latest",
    )
    release.cluster.kubectl("label", "namespace", release.namespace, *enforced)
    (deployment,) = of_kind(render("--values", VALUES / "air-gapped.yaml"), "Deployment").values()
    template: dict[str, Any] = deployment["spec"]["template"]
    metadata = {**template["metadata"], "name": "operator", "namespace": release.namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    pod["spec"]["serviceAccountName"] = "default"

    release.cluster.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(pod))

    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted:latest"'):
        release.cluster.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(pod))


def test_the_operator_may_do_what_it_asks_for_where_it_serves_and_nothing_elsewhere(release: Release) -> None:
    served, other = release.cluster.namespace(), release.cluster.namespace()
    release.install(CHART, "--set", f"namespaces={{{served}}}")

    asked = [(verb, rule) for rule in SERVED for verb in rule.verbs]
    assert refused(release, *(review(release, verb, rule, served) for verb, rule in asked)) == []
    elsewhere = [review(release, verb, rule, other) for verb, rule in asked]
    secrets = review(release, "get", PolicyRule("", "secrets", ()), served)
    assert refused(release, *elsewhere, secrets) == [*elsewhere, secrets]


def test_the_operator_may_make_and_change_its_own_lease_alone(release: Release) -> None:
    release.install()
    (rule,) = LEASE

    its_own = [review(release, verb, rule, release.namespace, RELEASE) for verb in rule.verbs]
    others = [
        review(release, verb, rule, release.namespace, name)
        for verb in ("create", "patch")
        for name in ("another", "")
    ]
    assert refused(release, *its_own, *others) == others


def review(release: Release, verb: str, rule: PolicyRule, namespace: str, name: str = "") -> Manifest:
    """Return the question to the API server whether the operator's account may do something."""
    resource, _, subresource = rule.resource.partition("/")
    attributes = {
        "verb": verb,
        "group": rule.group,
        "resource": resource,
        "namespace": namespace,
        "name": name,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{release.namespace}:{RELEASE}",
            "resourceAttributes": attributes | {"subresource": subresource},
        },
    }


def refused(release: Release, *reviews: Manifest) -> list[Manifest]:
    """Return those of the questions that the API server answers with no."""
    allowed = ("-o", 'jsonpath={.status.allowed}{"\\n"}')
    answers = release.cluster.kubectl(
        "create", "-f", "-", *allowed, input=yaml.safe_dump_all(reviews)
    ).split()
    assert set(answers) <= {"true", "false"}
    return [review for review, answer in zip(reviews, answers, strict=True) if answer == "false"]


def test_the_operator_works_with_the_rights_that_the_chart_gives(release: Release, tmp_path: Path) -> None:
    served = Served(release.cluster, release.cluster.namespace())
    release.install(CHART, "--set", f"namespaces={{{served.namespace}}}")

    with operating(release, tmp_path / "operator.log") as operator:
        served.declare()
        served.driver()
        served.runs("flights-driver-1")
        served.becomes("Running")
        served.kubectl("delete", "sparkapplication", "flights", "--wait=false")
        served.kubectl("wait", "--for=delete", "sparkapplication/flights", "--timeout=240s")
        refused = [line for line in operator.lines() if "forbidden" in json.dumps(line)]

    assert refused == []


@contextmanager
def operating(release: Release, log: Path) -> Iterator[OperatorProcess]:
    """Run the operator as the release sets it up, by its settings and with its account."""
    release.cluster.wait_for_crds(f"crd/{DEFINITION}")
    account = release.cluster.user(f"system:serviceaccount:{release.namespace}:{RELEASE}")
    settings = release.cluster.get("configmap", RELEASE, "-n", release.namespace)["data"]["operator.yaml"]
    file = log.with_suffix(".yaml")
    file.write_text(settings)
    flags = ("--config", str(file), "--default-image", IMAGE)
    with operator_process(account, log, *flags, environ=AS_THE_CHART_SAYS) as operator:
        yield operator.begin_leading()


def test_a_mistyped_value_never_reaches_the_cluster(release: Release) -> None:
    with pytest.raises(AssertionError, match="additional properties 'replica' not allowed"):
        release.install(CHART, "--set", "replica=2")

    assert release.helm("list", "-q").strip() == ""
