"""`headgate doctor`: what it finds in a cluster and on a machine, with the remedy and the exit code."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate import __version__
from headgate.api.application import application_schema
from headgate.api.crd import custom_resource_definition
from headgate.cli.checks.applications import SUPPORTED_SPARK
from headgate.cli.checks.cluster import LEAST_KUBERNETES, PART_OF, VERSION
from headgate_contract import ControlDocument, metrics
from headgate_contract.receiving import write
from support.command_line import Ended, Headgate
from support.driver_page import DriverPage
from support.fake_prometheus import Answer as Page
from support.fake_prometheus import fake_prometheus
from support.http_cluster import Answer, HttpCluster, Manifest, failure
from support.manifests import application, query, source

OPERATOR = "headgate-system/headgate"
DEPLOYMENTS = "/apis/apps/v1/deployments"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/headgate-system/leases/headgate"
OPENAPI = "/openapi/v3/apis/headgate.dev/v1alpha1"
LONG_AGO = "2026-03-01T08:00:00Z"


def definition() -> Manifest:
    """The CRD as an API server describes it."""
    (version,) = custom_resource_definition()["spec"]["versions"]
    named = {"group": "headgate.dev", "version": "v1alpha1", "kind": "SparkApplication"}
    schema = json.loads(json.dumps(version["schema"]["openAPIV3Schema"]))
    schemas = {"one": {**schema, "x-kubernetes-group-version-kind": [named]}}
    return {"openapi": "3.0.0", "components": {"schemas": schemas}}


def deployment(ready: int = 2, version: str = __version__) -> Manifest:
    return {
        "metadata": {"name": "headgate", "namespace": "headgate-system", "labels": {VERSION: version}},
        "spec": {"replicas": 2, "template": {"spec": {"serviceAccountName": "headgate-operator"}}},
        "status": {"readyReplicas": ready},
    }


def lease(seconds_ago: float = 1.0) -> Manifest:
    renewed = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    spec = {"holderIdentity": "headgate-1", "renewTime": renewed.isoformat(), "leaseDurationSeconds": 15}
    return {"metadata": {}, "spec": spec}


@pytest.fixture
def well(cluster: HttpCluster) -> HttpCluster:
    """A cluster with nothing in the way, and one application that runs."""
    cluster.others |= {
        "/version": Answer(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}),
        OPENAPI: Answer(200, definition()),
        DEPLOYMENTS: Answer(200, {"metadata": {}, "items": [deployment()]}),
        LEASE: Answer(200, lease()),
    }
    declared = application(query(source("flights")), sparkVersion="4.3")
    cluster.put(declared | {"metadata": {"name": "flights"}})
    runs(cluster)
    return cluster


def condition(type_: str, status: str, reason: str, message: str = "so it is") -> Manifest:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": LONG_AGO,
    }


def runs(cluster: HttpCluster, *conditions: Manifest, **status: Any) -> None:
    """The operator reports that the application runs; conditions replace those of their type."""
    usual = [
        condition("Ready", "True", "Running"),
        condition("Reconciling", "False", "Running"),
        condition("Stalled", "False", "Running"),
        condition("MetricsAvailable", "True", "Scraped"),
    ]
    said = {each["type"]: each for each in (*usual, *conditions)}
    cluster.reports(
        "flights",
        **{
            "state": "Running",
            "controlGeneration": 3,
            "acknowledgedGeneration": 3,
            "sparkVersion": "4.3.0",
            "headgateVersion": __version__,
            "conditions": list(said.values()),
            "queries": [{"name": "q", "sources": [{"name": "flights"}]}],
            **status,
        },
    )


def found(ended: Ended) -> dict[str, tuple[str, str, str]]:
    """Level, sentence and remedy of each check; what is not well anywhere, or not known, has a remedy."""
    assert [each for each in json.loads(ended.out) if each["level"] != "ok" and not each["remedy"]] == []
    return {each["check"]: (each["level"], each["says"], each["remedy"]) for each in json.loads(ended.out)}


def test_where_nothing_is_in_the_way_every_check_says_so(headgate: Headgate, well: HttpCluster) -> None:
    ended = headgate("doctor")

    assert (ended.code, ended.err) == (0, "")
    assert [line.split(":")[0] for line in ended.out.splitlines()] == [
        "ok       api-server of cluster",
        "ok       crd of cluster",
        f"ok       operator of {OPERATOR}",
        f"ok       lease of {OPERATOR}",
        f"ok       rights of {OPERATOR}",
        "ok       prometheus of cluster",
        "ok       life of default/flights",
        "ok       metrics of default/flights",
        "ok       control of default/flights",
        "ok       sources of default/flights",
        "ok       spark of default/flights",
        "ok       headgate of default/flights",
    ]
    assert {request.method for request in well.requests} == {"GET", "POST"}
    posted = {request.path for request in well.requests if request.method == "POST"}
    assert posted == {"/apis/authorization.k8s.io/v1/subjectaccessreviews"}, "nothing is changed"


def test_the_operators_account_is_asked_about_and_not_the_caller(
    headgate: Headgate, well: HttpCluster
) -> None:
    well.denied = {"create pods", "patch sparkapplications/status"}

    ended = headgate("doctor", "--json")

    level, says, remedy = found(ended)["rights"]
    assert (ended.code, level) == (1, "problem")
    assert says == (
        "headgate-operator may not patch sparkapplications/status.headgate.dev, create pods in namespace default"
    )
    assert "namespaces" in remedy
    spec = next(request for request in well.requests if request.method == "POST").body["spec"]
    assert spec["user"] == "system:serviceaccount:headgate-system:headgate-operator"
    assert "system:serviceaccounts:headgate-system" in spec["groups"]


def without(path: str) -> Manifest:
    """The description of a CRD that lacks one field."""
    described = definition()
    *way, last = path.split(".")
    node = described["components"]["schemas"]["one"]
    for step in way:
        node = node["properties"][step]
    del node["properties"][last]
    return described


@pytest.mark.parametrize(
    ("path", "answer", "check", "level", "says", "remedy"),
    [
        (
            "/version",
            Answer(200, {"major": "1", "minor": "28+"}),
            "api-server",
            "problem",
            "needs 1.29",
            "upgrade",
        ),
        (
            OPENAPI,
            failure(404, "NotFound", "page not found"),
            "crd",
            "problem",
            "has no SparkApplication",
            "headgate crd",
        ),
        (
            OPENAPI,
            Answer(200, without("spec.suspend")),
            "crd",
            "warning",
            "lacks spec.suspend",
            "headgate crd",
        ),
        (
            OPENAPI,
            Answer(200, without("status.state")),
            "crd",
            "problem",
            "lacks status.state",
            "headgate crd",
        ),
        (
            OPENAPI,
            failure(403, "Forbidden", "cannot get path"),
            "crd",
            "unknown",
            "may not be looked at",
            "somebody look who may",
        ),
        (
            DEPLOYMENTS,
            Answer(200, {"metadata": {}, "items": []}),
            "operator",
            "warning",
            PART_OF,
            "install the chart",
        ),
        (
            DEPLOYMENTS,
            Answer(200, {"metadata": {}, "items": [deployment(ready=0)]}),
            "operator",
            "problem",
            "no replica",
            "kubectl logs -n headgate-system deploy/headgate",
        ),
        (
            DEPLOYMENTS,
            Answer(200, {"metadata": {}, "items": [deployment(ready=1)]}),
            "operator",
            "warning",
            "1 of 2 replicas are ready",
            "kubectl describe pods -n headgate-system",
        ),
        (
            DEPLOYMENTS,
            Answer(200, {"metadata": {}, "items": [deployment(version="0.0.9")]}),
            "operator",
            "warning",
            "version 0.0.9",
            "the operator's version",
        ),
        (
            LEASE,
            Answer(200, lease(seconds_ago=90)),
            "lease",
            "problem",
            "the lease was not renewed, last by headgate-1 ",
            "clocks",
        ),
        (
            LEASE,
            failure(404, "NotFound", "no such lease", name="headgate"),
            "lease",
            "unknown",
            "cannot be read",
            "without an election",
        ),
    ],
)
def test_what_is_wrong_with_the_cluster(
    headgate: Headgate,
    well: HttpCluster,
    path: str,
    answer: Answer,
    check: str,
    level: str,
    says: str,
    remedy: str,
) -> None:
    well.others[path] = answer

    ended = headgate("doctor", "--json")

    told = found(ended)[check]
    assert (told[0], ended.code) == (level, int(level == "problem")), told
    assert says in told[1]
    assert remedy in told[2]


LOST = [{"name": "q", "sources": [{"name": "flights", "outOfReach": "broker:9092: no route"}]}]
OUTAGE = condition("MetricsAvailable", "False", "QueryTimeout", "no answer within 10s")


@pytest.mark.parametrize(
    ("conditions", "status", "check", "level", "says"),
    [
        ([OUTAGE], {}, "metrics", "problem", "QueryTimeout: no answer within 10s"),
        ([OUTAGE], {}, "prometheus", "problem", "Prometheus does not answer the operator: QueryTimeout"),
        ([OUTAGE], {}, "sources", "unknown", "reports nothing"),
        ([condition("MetricsAvailable", "False", "NoSeries")], {}, "prometheus", "ok", "for 1 of 1"),
        (
            [condition("MetricsAvailable", "Unknown", "DriverStarting")],
            {},
            "metrics",
            "unknown",
            "not known yet",
        ),
        (
            [],
            {"acknowledgedGeneration": 2},
            "control",
            "warning",
            "document 3 is published, and 2 is in force",
        ),
        (
            [condition("Reconciling", "True", "ControlPending")],
            {"acknowledgedGeneration": None},
            "control",
            "problem",
            "none is known to be in force",
        ),
        ([], {"controlGeneration": None}, "control", "unknown", "no control document"),
        (
            [],
            {"queries": LOST},
            "sources",
            "problem",
            "cannot reach source flights of query q: broker:9092: no route",
        ),
        (
            [],
            {"queries": [{"name": "q", "failure": "OffsetOutOfRange", "sources": []}]},
            "query",
            "problem",
            "query q has failed: OffsetOutOfRange",
        ),
        (
            [],
            {"queries": [{"name": "q", "triggerProblem": "give it a shorter one", "sources": []}]},
            "query",
            "warning",
            "query q reacts no faster than its own trigger: give it a shorter one",
        ),
        (
            [],
            {"queries": [{"name": "q", "realTimeRefused": "it needs 9 task slots", "sources": []}]},
            "query",
            "warning",
            "query q stays in micro-batches though live.mode is RealTime: it needs 9 task slots",
        ),
        (
            [],
            {"queries": [{"name": "q", "sources": [{"name": "t", "snapshotProblem": "partition t/0: no"}]}]},
            "query",
            "warning",
            "source t of query q does not tell where its snapshot ends: partition t/0: no",
        ),
        (
            [],
            {"sparkVersion": "3.5.1"},
            "spark",
            "problem",
            "Spark 3.5.1, for which Headgate's shim is not made",
        ),
        ([], {"sparkVersion": "4.30.0"}, "spark", "problem", "is not made"),
        ([], {"sparkVersion": "4.2.0"}, "spark", "warning", "spec.sparkVersion says 4.3"),
        ([], {"sparkVersion": None}, "spark", "unknown", "has not reported"),
        ([], {"headgateVersion": "0.0.9"}, "headgate", "warning", "the driver runs Headgate 0.0.9"),
        ([], {"headgateVersion": None}, "headgate", "unknown", "has not reported which Headgate"),
        ([condition("ExecutorsMissing", "True", "QuotaUsedUp")], {}, "executors", "warning", "QuotaUsedUp"),
        (
            [condition("Stalled", "True", "InvalidSetup")],
            {"state": "Failed"},
            "life",
            "problem",
            "InvalidSetup",
        ),
        (
            [condition("Ready", "False", "BackingOff")],
            {"state": "BackingOff"},
            "life",
            "warning",
            "BackingOff",
        ),
        ([], {"state": "Suspended"}, "life", "ok", "it is Suspended"),
        ([], {"state": "Nonsense"}, "operator", "problem", "of another version"),
    ],
)
def test_what_is_wrong_with_an_application(
    headgate: Headgate,
    well: HttpCluster,
    conditions: list[Manifest],
    status: dict[str, Any],
    check: str,
    level: str,
    says: str,
) -> None:
    runs(well, *conditions, **{name: value for name, value in status.items() if value is not None})
    for name in (name for name, value in status.items() if value is None):
        del well.objects["default", "flights"]["status"][name]

    ended = headgate("doctor", "flights", "--json")

    told = found(ended)[check]
    assert told[0] == level, told
    assert says in told[1]
    if level == "problem":
        assert ended.code == 1


def test_findings_about_a_query_name_the_user_of_spark_connect_who_started_it(
    headgate: Headgate, well: HttpCluster
) -> None:
    told = {"failure": "OffsetOutOfRange", "triggerProblem": "none", "realTimeRefused": "no room"}
    lost = {"outOfReach": "no route", "snapshotProblem": "no end"}
    runs(well, queries=[{"name": "q", "owner": "ada", **told, "sources": [{"name": "t", **lost}]}])

    findings = json.loads(headgate("doctor", "flights", "--json").out)

    said = [each["says"] for each in findings if each["check"] in {"query", "sources"}]
    assert len(said) == 5
    assert [each for each in said if "query q (owner ada, Spark Connect)" not in each] == []


def test_an_application_that_nobody_has_seen(headgate: Headgate, well: HttpCluster) -> None:
    well.put(application(query(), sparkVersion="4.3") | {"metadata": {"name": "orders"}})

    ended = headgate("doctor")

    assert ended.code == 1
    assert "problem  operator of default/orders: no operator has acted on it" in ended.out
    assert "-> see that an operator runs, and that it serves namespace default" in ended.out


def test_an_application_that_is_not_there_is_a_finding_beside_the_others(
    headgate: Headgate, well: HttpCluster
) -> None:
    ended = headgate("doctor", "flihgts", "--json")

    assert ended.code == 1
    assert found(ended)["crd"][0] == "ok"
    assert "did you mean flights?" in found(ended)["applications"][1]


def test_a_change_that_is_not_acted_upon_yet_is_told_beside_the_rest(
    headgate: Headgate, well: HttpCluster
) -> None:
    known = well.objects["default", "flights"]
    known["metadata"]["generation"] = 2

    ended = headgate("doctor", "--json")

    assert ended.code == 0
    assert found(ended)["metrics"][0] == "ok"
    assert "warning" in {each["level"] for each in json.loads(ended.out) if each["of"] == "default/flights"}


def test_a_cluster_that_does_not_answer(headgate: Headgate, cluster: HttpCluster, tmp_path: Path) -> None:
    text = yaml.safe_load(cluster.kubeconfig.read_text())
    text["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    (nowhere := tmp_path / "nowhere").write_text(yaml.safe_dump(text))

    ended = headgate("doctor", "--kubeconfig", nowhere)

    assert ended.code == 1
    assert "cannot be reached: nobody listens there" in ended.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("flights", "--local"), "leave out NAME"),
        (("--local", "-A"), "leave out NAME"),
        (("--state-dir", "x"), "give --local"),
        (("--launcher", "x"), "give --local"),
        (("--local", "--launcher", "'"), "write it as in a shell"),
    ],
)
def test_options_that_do_not_go_together(headgate: Headgate, arguments: tuple[str, ...], says: str) -> None:
    ended = headgate("doctor", *arguments)

    assert ended.code == 2
    assert says in ended.err


def test_numbers_are_those_of_the_chart_and_of_the_resource() -> None:
    chart = yaml.safe_load(Path("charts/headgate/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={'.'.join(map(str, LEAST_KUBERNETES))}.0-0"
    spec = application_schema()["properties"]["spec"]["properties"]
    assert spec["sparkVersion"]["pattern"].startswith("^" + SUPPORTED_SPARK.pattern.partition("(")[0])


# This machine


def launcher(folder: Path, script: str) -> str:
    """A program that takes the arguments of headgate-run."""
    program = folder / "launcher"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


FOUND = '{"python": "3.12.1", "spark": "4.2.0", "java": "21", "governed": %s}'
RESULT = f"eval result=\\${{$#}}; echo '{FOUND}' > $result"


def test_a_machine_on_which_a_query_was_governed(headgate: Headgate, tmp_path: Path) -> None:
    ended = headgate("doctor", "--local", "--launcher", launcher(tmp_path, RESULT % "true"), "--json")

    assert ended.code == 0
    assert {level for level, _, _ in found(ended).values()} == {"ok"}
    assert "Spark 4.2.0 and its shim fit" in found(ended)["spark"][1]
    assert found(ended)["java"][1] == "Java 21"


@pytest.mark.parametrize(
    ("script", "says", "remedy"),
    [
        (
            "echo 'headgate-run: error: the shim is missing: reinstall' >&2; exit 78",
            "the shim is missing: reinstall",
            "do what it says",
        ),
        (
            "echo 'No module named headgate_spark'; exit 1",
            "No module named headgate_spark",
            ".whl[spark]",
        ),
        (
            "echo 'java.lang.NoSuchMethodError: x'; echo '    at a.B(C.java:1)'; exit 1",
            "java.lang.NoSuchMethodError: x",
            ".whl[spark]",
        ),
        ("exit 3", "it ended without a word", ".whl[spark]"),
        (RESULT % "false", "the planner knows nothing of it", "spark.sql.extensions"),
        ("echo jdbc:postgresql://db/x?password=cAnary-1; exit 1", "password=(hidden)", ".whl[spark]"),
    ],
)
def test_what_is_wrong_with_a_machine(
    headgate: Headgate, tmp_path: Path, script: str, says: str, remedy: str
) -> None:
    ended = headgate("doctor", "--local", "--launcher", launcher(tmp_path, script), "--json")

    level, told, what = found(ended)["spark"]
    assert (ended.code, level) == (1, "problem")
    assert says in told
    assert remedy in what


def test_a_launcher_that_is_not_there(headgate: Headgate, tmp_path: Path) -> None:
    ended = headgate("doctor", "--local", "--launcher", tmp_path / "none", "--json")

    assert ended.code == 1
    assert "No such file" in found(ended)["launcher"][1]


# A run of `headgate local`


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[Path, DriverPage]]:
    """The state folder of a run whose driver serves a page, and has document 7 in force."""
    page = DriverPage()
    page.query()
    page.source()
    page.set(metrics.CONTROL_GENERATION, 7)
    (folder := tmp_path / "state").mkdir()
    (folder / "control.json").write_text(write(ControlDocument(generation=7, application="flights")))
    with fake_prometheus(lambda _: Page(page.text.encode())) as served:
        announced = {"pid": os.getpid(), "metricsPort": int(served.url.rpartition(":")[2])}
        (folder / "announce.json").write_text(json.dumps(announced))
        yield folder, page


def look_at(headgate: Headgate, folder: Path, tmp_path: Path) -> Ended:
    trial = launcher(tmp_path, RESULT % "true")
    return headgate("doctor", "--local", "--launcher", trial, "--state-dir", folder, "--json")


def test_a_run_with_nothing_in_the_way(
    headgate: Headgate, run: tuple[Path, DriverPage], tmp_path: Path
) -> None:
    ended = look_at(headgate, run[0], tmp_path)

    assert ended.code == 0
    told = found(ended)
    assert [told[check][0] for check in ("metrics", "control", "sources")] == ["ok"] * 3


def test_a_run_whose_driver_says_what_is_wrong(
    headgate: Headgate, run: tuple[Path, DriverPage], tmp_path: Path
) -> None:
    folder, page = run
    page.set(metrics.CONTROL_GENERATION, 6)
    labels = {"query": "delays", "source": "flights", "cause": "broker:9092: no route"}
    page.set(metrics.SOURCE_OUT_OF_REACH, 1, **labels)
    page.set(metrics.QUERY_REAL_TIME_REFUSED, 1, query="delays", cause="it needs 9 task slots")

    ended = look_at(headgate, folder, tmp_path)

    assert ended.code == 1
    told = found(ended)
    assert told["control"][:2] == ("problem", "its control document 7 is written, and 6 is in force")
    assert (
        told["sources"][1] == "the driver cannot reach source flights of query delays: broker:9092: no route"
    )
    assert told["query"][:2] == (
        "warning",
        "query delays stays in micro-batches though live.mode is RealTime: it needs 9 task slots",
    )


def test_a_run_of_spark_connect_names_the_owner_of_a_query(
    headgate: Headgate, run: tuple[Path, DriverPage], tmp_path: Path
) -> None:
    folder, page = run
    page.set(metrics.QUERY_OWNER, 1, query="delays", user="ada", session="5f0c")
    page.set(metrics.SOURCE_OUT_OF_REACH, 1, query="delays", source="flights", cause="no route")
    page.set(metrics.QUERY_REAL_TIME_REFUSED, 1, query="delays", cause="no room")

    told = found(look_at(headgate, folder, tmp_path))

    assert "of query delays (owner ada, Spark Connect): no route" in told["sources"][1]
    assert told["query"][1].startswith("query delays (owner ada, Spark Connect) stays in")


def test_a_run_whose_driver_is_gone(headgate: Headgate, run: tuple[Path, DriverPage], tmp_path: Path) -> None:
    folder, _ = run
    (folder / "announce.json").write_text('{"metricsPort": 1}')
    gone = look_at(headgate, folder, tmp_path)
    (folder / "announce.json").unlink()
    never = look_at(headgate, folder, tmp_path)

    assert (gone.code, found(gone)["metrics"][0]) == (1, "problem")
    assert "ConnectionFailed" in found(gone)["metrics"][1]
    assert (never.code, found(never)["metrics"][0]) == (0, "unknown")


@pytest.mark.parametrize(
    "announced", ["[" * 100_000, "[]", '{"metricsPort": true}', '{"metricsPort": 65536}']
)
def test_a_run_with_damaged_files(
    headgate: Headgate, run: tuple[Path, DriverPage], tmp_path: Path, announced: str
) -> None:
    folder, _ = run
    (folder / "control.json").write_bytes(b"\xff\xfe")
    damaged = look_at(headgate, folder, tmp_path)
    (folder / "announce.json").write_text(announced)
    nowhere = look_at(headgate, folder, tmp_path)

    assert (damaged.code, found(damaged)["control"][0]) == (0, "unknown")
    assert (nowhere.code, found(nowhere)["metrics"][0]) == (0, "unknown")


@pytest.mark.parametrize(("exit_code", "code", "level"), [("0", 0, "unknown"), ("76", 1, "problem")])
def test_a_run_whose_driver_has_ended(
    headgate: Headgate, run: tuple[Path, DriverPage], tmp_path: Path, exit_code: str, code: int, level: str
) -> None:
    (run[0] / "exit-code").write_text(f"{exit_code}\n")
    ended = look_at(headgate, run[0], tmp_path)
    says = f"no driver runs: the last one has ended with exit code {exit_code}"
    assert (ended.code, found(ended)["metrics"][:2]) == (code, (level, says))


def test_a_state_folder_that_is_not_there(headgate: Headgate, tmp_path: Path) -> None:
    ended = headgate(
        "doctor", "--local", "--launcher", launcher(tmp_path, RESULT), "--state-dir", tmp_path / "none"
    )

    assert (ended.code, "there is no such folder" in ended.err) == (2, True)
    assert ended.out == "", "the machine is not looked at before"
    ended = headgate("support-bundle", "--state-dir", 300 * "x")
    assert (ended.code, ": File name too long; headgate local names its own" in ended.err) == (2, True)
