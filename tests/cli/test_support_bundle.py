"""`headgate support-bundle`: what is in it, and that no secret is."""

from __future__ import annotations

import errno
import json
import re
import tarfile
from pathlib import Path

import pytest

from headgate.cli.bundle import MOST_BYTES
from headgate.cli.bundle.redaction import Redaction
from support.command_line import Headgate
from support.http_cluster import Answer, HttpCluster, Manifest, failure
from support.manifests import application, query, source

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/deployments"


def canary(place: str) -> str:
    """A secret that says where it has been, and that looks like nothing."""
    return f"canary-{place}-9f3a"


PEM = f"-----BEGIN PRIVATE KEY-----\n{canary('pem')}\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----"
DECLARED = application(
    query(source("flights")),
    sparkConf={"spark.mail.account": canary("conf"), "spark.sql.shuffle.partitions": "64"},
    main={"file": "local:///opt/app/job.py", "arguments": ["--password", canary("argument")]},
    driver={
        "podTemplate": {
            "spec": {
                "containers": [{"name": "driver", "env": [{"name": "ACCOUNT", "value": canary("template")}]}]
            }
        }
    },
)
POD: Manifest = {
    "metadata": {
        "name": "flights-driver-1",
        "creationTimestamp": "2026-03-01T08:00:00Z",
        "managedFields": [{"manager": "headgate"}],
        "annotations": {
            "headgate.dev/control": json.dumps({"generation": 7, "queries": {"q": {}}}),
            "headgate.dev/checkpoint-location": f"s3a://AKID:{canary('location')}@bucket/c",
            "team.example/note": canary("annotation"),
        },
    },
    "spec": {
        "containers": [
            {
                "name": "driver",
                "args": ["headgate-run", "/opt/app/job.py", "--password", canary("argument")],
                "env": [
                    {
                        "name": "HEADGATE_SPARK_PROPERTIES",
                        "value": f"spark.a=1\nspark.mail={canary('pod')}\n",
                    },
                    {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
                ],
            }
        ]
    },
    "status": {"phase": "Running"},
}
LOG = f"""\
a line of the job
connected to jdbc:postgresql://db/x?user=app&password={canary("jdbc")}
account is {canary("conf")}, or {canary("pod")}
{PEM}
Authorization: Bearer {canary("bearer")}-0123456789
\x1b[2Jand the last line
"""


@pytest.fixture
def running(cluster: HttpCluster) -> HttpCluster:
    """A cluster with an application that has secrets at many places, and its operator."""
    applied = json.dumps({"spec": {"sparkConf": {"spark.mail.account": canary("conf")}}})
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": applied,
        "headgate.dev/pause": "q/flights",
    }
    stored = cluster.put(DECLARED | {"metadata": {"name": "flights", "annotations": annotations}})
    cluster.reports("flights", state="Running")
    about = {"kind": "SparkApplication", "name": "flights", "uid": stored["metadata"]["uid"]}
    message = f"failed of jdbc:mysql://root:{canary('event')}@db"
    cluster.events.append(
        {"metadata": {"namespace": "default"}, "involvedObject": about, "message": message, "reason": "Ended"}
    )
    deployment = {
        "metadata": {"name": "headgate", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "headgate"}},
            "template": {"spec": {"containers": [{"env": [{"name": "A", "value": canary("operator")}]}]}},
        },
    }
    cluster.others |= {
        "/version": Answer(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}),
        PODS: Answer(200, {"metadata": {}, "items": [POD]}),
        f"{PODS}/flights-driver-1/log": Answer(200, LOG),
        DEPLOYMENTS: Answer(200, {"metadata": {}, "items": [deployment]}),
    }
    return cluster


def files_in(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as opened:
        return {
            member.name.removeprefix("headgate-support/"): found.read().decode()
            for member in opened.getmembers()
            if (found := opened.extractfile(member)) is not None
        }


def test_it_has_what_helps_and_no_secret(headgate: Headgate, running: HttpCluster, tmp_path: Path) -> None:
    archive = tmp_path / "bundle.tar.gz"

    ended = headgate("support-bundle", "flights", "-o", archive)

    assert ended.code == 0
    assert ended.out == f"{archive}: 9 files; look through them before you send them\n"
    assert archive.stat().st_mode & 0o777 == 0o600
    files = files_in(archive)
    assert (
        sorted(files)
        == [
            "applications/default/flights/application.json",
            "applications/default/flights/events.json",
            "applications/default/flights/pods/flights-driver-1.driver.log",
            "applications/default/flights/pods/flights-driver-1.json",
            "bundle.json",
            "doctor.json",
            "operator/default/headgate/deployment.json",
            "operator/default/headgate/pods/flights-driver-1.driver.log",
            "operator/default/headgate/pods/flights-driver-1.json",
            "unread.txt",
        ][: len(files)]
    )
    assert re.findall(r"canary-\w+", "".join(files.values())) == []
    application = json.loads(files["applications/default/flights/application.json"])
    assert application["spec"]["sparkConf"] == dict.fromkeys(DECLARED["spec"]["sparkConf"], "(hidden)")
    assert application["spec"]["main"]["file"] == "local:///opt/app/job.py"
    assert application["status"]["state"] == "Running"
    pod = json.loads(files["applications/default/flights/pods/flights-driver-1.json"])
    assert json.loads(pod["metadata"]["annotations"]["headgate.dev/control"])["generation"] == 7
    assert pod["spec"]["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"]["name"] == "s"
    assert "managedFields" not in pod["metadata"]
    log = files["applications/default/flights/pods/flights-driver-1.driver.log"].splitlines()
    assert (log[0], log[-1]) == ("a line of the job", "\u241b[2Jand the last line")
    assert log[2] == "account is (hidden), or (hidden)"


def test_what_may_not_be_read_is_told_in_it(headgate: Headgate, running: HttpCluster, tmp_path: Path) -> None:
    running.others[f"{PODS}/flights-driver-1/log"] = failure(403, "Forbidden", "no logs for you")
    archive = tmp_path / "bundle.tar.gz"

    ended = headgate("support-bundle", "flights", "-o", archive)

    assert (ended.code, ended.err) == (0, "not all could be read, see unread.txt in it\n")
    assert "flights-driver-1.driver.log: no logs for you" in files_in(archive)["unread.txt"]


def test_an_archive_that_is_there_is_not_written_over(
    headgate: Headgate, running: HttpCluster, tmp_path: Path
) -> None:
    (archive := tmp_path / "bundle.tar.gz").write_text("mine")

    ended = headgate("support-bundle", "flights", "-o", archive)
    nowhere = headgate("support-bundle", "flights", "-o", tmp_path / "none" / "x")

    assert (ended.code, archive.read_text()) == (2, "mine")
    assert "is there already; give another name" in ended.err
    assert (nowhere.code, "No such file" in nowhere.err) == (2, True)


def test_a_run_on_this_machine(headgate: Headgate, tmp_path: Path) -> None:
    (state := tmp_path / "state").mkdir()
    (state / "control.json").write_text('{"generation": 3}')
    (state / "status.json").write_text("{cut")
    (state / "driver.log").write_text("x\n" * 500_000 + LOG)
    archive = tmp_path / "bundle.tar.gz"

    ended = headgate("support-bundle", "--state-dir", state, "-o", archive)

    files = files_in(archive)
    assert (ended.code, json.loads(files["control.json"])) == (0, {"generation": 3})
    assert files["status.json"] == "{cut"
    assert files["driver.log"].endswith("and the last line\n")
    assert len(files["driver.log"]) < 600_000
    assert canary("jdbc") not in files["driver.log"]
    assert "memory.json: No such file" in files["unread.txt"]


def test_half_an_archive_does_not_stay(
    headgate: Headgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    (tmp_path / "state").mkdir()
    ended = headgate("support-bundle", "--state-dir", tmp_path / "state", "-o", tmp_path / "bundle.tar.gz")

    assert (ended.code, "No space left on device; give another place" in ended.err) == (2, True)
    assert not (tmp_path / "bundle.tar.gz").exists()


@pytest.mark.parametrize("cut", ["-----BEGIN PRIVATE KEY-----\n", "connected with password="])
def test_the_end_of_a_log_begins_with_no_end_of_a_secret(
    headgate: Headgate, tmp_path: Path, cut: str
) -> None:
    secret, end = "canary9f3a", "\n-----END PRIVATE KEY-----\n" if "BEGIN" in cut else "\n"
    rest = f"{secret[3:]}{end}"
    (state := tmp_path / "state").mkdir()
    lines = "a line of the job\n" * 30_000
    (state / "driver.log").write_text(f"{cut}{secret[:3]}{rest}{lines[-(MOST_BYTES - len(rest)) :]}")

    headgate("support-bundle", "--state-dir", state, "-o", tmp_path / "bundle.tar.gz")

    log = files_in(tmp_path / "bundle.tar.gz")["driver.log"]
    assert secret[3:] not in log
    assert log.endswith("a line of the job\n")


def test_of_a_key_whose_beginning_is_not_there_nothing_is_shown() -> None:
    text = "MIIEvQIBADANBgkqh/9w0B\nAQEF+AASCBKcwggSjAgEA\n-----END PRIVATE KEY-----\nthe next line"
    assert Redaction().text(text) == "(hidden)\nthe next line"


def test_options_that_do_not_go_together(headgate: Headgate, tmp_path: Path) -> None:
    assert headgate("support-bundle", "flights", "--state-dir", tmp_path).code == 2
    assert headgate("support-bundle", "--state-dir", tmp_path / "none").code == 2


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (
            {"spec": {"sparkConf": {"a": {"b": [1, None]}}}},
            {"spec": {"sparkConf": {"a": {"b": ["(hidden)", None]}}}},
        ),
        ({"env": [{"name": "A", "value": "x"}]}, {"env": [{"name": "A", "value": "(hidden)"}]}),
        (
            {"annotations": {"a": "x", "headgate.dev/pause": "q/s"}},
            {"annotations": {"a": "(hidden)", "headgate.dev/pause": "q/s"}},
        ),
        ({"dbPassword": "x", "tokens": 5}, {"dbPassword": "(hidden)", "tokens": 5}),
        ({"text": '[1, {"password": "x"}]'}, {"text": '[1, {"password": "(hidden)"}]'}),
        ({"data": {"operator.yaml": "url: x"}}, {"data": {"operator.yaml": "(hidden)"}}),
        ({"n": 1.5, "b": True, "none": None}, {"n": 1.5, "b": True, "none": None}),
    ],
)
def test_what_is_shown_of_a_document(document: Manifest, shown: Manifest) -> None:
    assert Redaction().document(document) == shown


def test_a_short_value_is_not_looked_for_elsewhere() -> None:
    redaction = Redaction()
    redaction.learn({"sparkConf": {"a": "true", "b": "a longer secret"}})

    assert redaction.text("true: a longer secret") == "true: (hidden)"
