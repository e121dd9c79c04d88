"""Commands against a cluster: what they read and write, what they print, how they exit, and what goes wrong."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.api.crd import custom_resource_definition
from headgate.cli.cluster import waiting
from support.command_line import Headgate
from support.http_cluster import (
    Answer,
    HttpCluster,
    Manifest,
    Request,
    failure,
    http_cluster,
    kubeconfig_text,
)
from support.manifests import application, query, source


def flights(**spec: Any) -> Manifest:
    """Two queries, one with two sources."""
    manifest = application(
        query(source("flights"), source("weather")), query(source("flights"), name="totals"), **spec
    )
    return manifest | {"metadata": {"name": "flights"}}


def named(name: str, **metadata: Any) -> Manifest:
    return flights() | {"metadata": {"name": name, **metadata}}


BACKLOG = {
    "name": "q",
    "backlog": True,
    "reason": "WatermarkLag",
    "watermarkLag": "1h",
    "pendingRecords": 4_000_000,
    "throughput": 51_000.0,
    "interval": "2m",
    "eta": "1m20s",
}


# Connections


@pytest.mark.parametrize(
    ("command", "questions"),
    [(("status", "flights"), 2), (("pause", "flights", "q/flights"), 2)],
)
def test_a_command_asks_all_its_questions_over_one_connection(
    command: tuple[str, ...], questions: int, headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(flights())

    headgate(*command)

    assert len(cluster.requests) >= questions
    assert len(cluster.connections) == 1, "each one more is a handshake that somebody waits for"


# Whose word holds


def test_status_says_whose_word_holds_and_who_knows_of_options(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    governed = query(source("flights", paused=True), checkpoint={"interval": "5s"})
    properties = {"spark.headgate.interval": "9s", "spark.headgate.minPause": "1s"}
    cluster.put(application(governed, sparkConf=properties) | {"metadata": {"name": "flights"}})

    said = headgate("status", "flights").out.partition("whose word holds\n")[2].splitlines()

    name = governed["name"]
    assert said[:3] == [
        f"  query {name}: interval: document; minPause: property spark.headgate.minPause",
        f"  source flights of query {name}: paused: document",
        "  any other: an option of the job, which holds against a property, or the default; "
        "headgate explain app/flights --metrics URL asks the driver",
    ]


# Suspend and resume


def test_suspend_patches_the_spec_and_nothing_else(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())

    ended = headgate("suspend", "flights")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "flights is suspended; its driver is stopped at the end of its batch\n"
    assert cluster.patches == [{"spec": {"suspend": True}}]
    assert cluster.requests[-1].query == {"fieldManager": "headgate-cli", "fieldValidation": "Ignore"}


def test_resume_takes_the_suspension_back(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights(suspend=True))

    ended = headgate("resume", "flights")

    assert ended.out == "flights is resumed; its driver is started\n"
    assert cluster.patches == [{"spec": {"suspend": False}}]


@pytest.mark.parametrize(
    ("command", "spec", "said"),
    [("suspend", {"suspend": True}, "suspended already"), ("resume", {}, "not suspended already")],
)
def test_what_is_so_already_is_not_written(
    command: str, spec: dict[str, Any], said: str, headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(flights(**spec))

    ended = headgate(command, "flights")

    assert (ended.code, ended.out, cluster.patches) == (0, f"flights is {said}\n", [])


def managed(manager: str, **fields: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Apply",
        "fieldsV1": {"f:spec": {f"f:{name}": {} for name in fields}},
    }


@pytest.mark.parametrize(
    ("metadata", "note"),
    [
        ({}, ""),
        ({"labels": {"app.kubernetes.io/instance": "release"}}, ""),
        (
            {
                "annotations": {
                    "argocd.argoproj.io/tracking-id": "lake:headgate.dev/SparkApplication:default/flights"
                }
            },
            "note: Argo CD's application lake does not apply spec.suspend, so this stays until somebody changes it",
        ),
        (
            {
                "labels": {"kustomize.toolkit.fluxcd.io/name": "lake"},
                "managedFields": [managed("kustomize-controller", suspend=True)],
            },
            "note: Flux's Kustomization lake applies spec.suspend too and sets it back at its next sync; to keep it, "
            "commit spec.suspend: true to Git",
        ),
        (
            {"managedFields": [managed("argocd-controller", main=True), managed("kubectl", suspend=True)]},
            "note: Argo CD does not apply spec.suspend",
        ),
        (
            {
                "annotations": {
                    "argocd.argoproj.io/tracking-id": "lake:x",
                    "kubectl.kubernetes.io/last-applied-configuration": '{"spec": {"suspend": false}}',
                }
            },
            "note: Argo CD's application lake applies spec.suspend too",
        ),
    ],
    ids=[
        "nobody",
        "a chart's label",
        "Argo CD",
        "Flux declares it",
        "by manager alone",
        "applied by the client",
    ],
)
def test_suspend_says_what_gitops_will_do_to_it(
    metadata: dict[str, Any], note: str, headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(named("flights", **metadata))

    ended = headgate("suspend", "flights")

    assert ended.code == 0
    assert ended.err.startswith(note)
    assert bool(ended.err) == bool(note)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits pass at once; returns how long each would have been."""
    passed: list[float] = []
    monkeypatch.setattr(waiting, "sleep", passed.append)
    monkeypatch.setattr(waiting, "monotonic", lambda: sum(passed))
    return passed


def after_looks(cluster: HttpCluster, *statuses: dict[str, Any]) -> None:
    """The operator writes the next status each time that somebody has looked after the patch."""
    remaining = list(statuses)

    def look(request: Request) -> None:
        if cluster.patches and remaining:
            cluster.reports("flights", **remaining.pop(0))

    cluster.after = look


def test_waiting_ends_when_the_operator_reports_it(
    headgate: Headgate, cluster: HttpCluster, no_pause: list[float]
) -> None:
    cluster.put(flights())
    cluster.reports("flights", state="Suspended")
    after_looks(cluster, {"state": "Running"}, {"state": "Stopping"}, {"state": "Suspended"})

    ended = headgate("suspend", "flights", "--wait")

    assert ended.code == 0
    assert ended.out.endswith("flights is Suspended\n")
    assert len(no_pause) == 2


def test_a_status_of_the_spec_before_does_not_end_the_wait(
    headgate: Headgate, cluster: HttpCluster, no_pause: list[float]
) -> None:
    cluster.put(flights(suspend=True))
    cluster.reports("flights", state="Running")
    cluster.objects["default", "flights"]["spec"]["suspend"] = True

    ended = headgate("resume", "flights", "--wait", "--timeout", "5s")

    assert ended.code == 1
    assert (
        ended.err
        == "error: not there after 5s: no operator has acted on flights yet; it goes on without you\n"
    )
    assert sum(no_pause) == 5


def test_a_wait_that_is_over_says_where_it_is(
    headgate: Headgate, cluster: HttpCluster, no_pause: list[float]
) -> None:
    cluster.put(flights())
    condition = {
        "type": "Reconciling",
        "status": "True",
        "reason": "Suspended",
        "message": "waits for the batch",
    }
    stopping = {
        "state": "Stopping",
        "conditions": [condition | {"lastTransitionTime": "2026-03-01T08:00:00Z"}],
    }
    after_looks(cluster, stopping)

    ended = headgate("suspend", "flights", "--wait", "--timeout=3s")

    assert ended.code == 1
    assert (
        "not there after 3s: flights is Stopping (waits for the batch); it goes on without you" in ended.err
    )


def test_a_resumed_application_that_fails_ends_the_wait(
    headgate: Headgate, cluster: HttpCluster, no_pause: list[float]
) -> None:
    cluster.put(flights(suspend=True))
    condition = {"type": "Stalled", "status": "True", "reason": "Failed", "message": "no such file"}
    failed = {"state": "Failed", "conditions": [condition | {"lastTransitionTime": "2026-03-01T08:00:00Z"}]}
    after_looks(cluster, failed)

    ended = headgate("resume", "flights", "--wait")

    assert ended.code == 1
    assert ended.err == "error: flights has failed: no such file; see headgate status flights\n"


def test_an_api_server_that_is_away_for_a_moment_does_not_end_the_wait(
    headgate: Headgate, cluster: HttpCluster, no_pause: list[float]
) -> None:
    cluster.put(flights())
    after_looks(cluster, {"state": "Suspended"})
    cluster.scripted.extend([None, None, Answer(503, "no")])

    assert headgate("suspend", "flights", "--wait").code == 0


def test_a_timeout_without_a_unit_is_refused_before_anything_is_written(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(flights())

    ended = headgate("suspend", "flights", "--wait", "--timeout", "60")

    assert ended.code == 2
    assert "error: --timeout: 60 has no unit" in ended.err
    assert cluster.patches == []


# Pauses


def annotation_of(cluster: HttpCluster, name: str) -> str | None:
    annotations = cluster.objects["default", "flights"]["metadata"].get("annotations", {})
    text: str | None = annotations.get(f"headgate.dev/{name}")
    return text


def test_pause_adds_to_what_is_paused(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(named("flights", annotations={"headgate.dev/paused": "totals/flights"}))

    ended = headgate("pause", "flights", "q/weather", "totals/flights")

    assert ended.code == 0
    assert ended.out == "q/weather is paused from its next batch on\ntotals/flights was paused already\n"
    assert annotation_of(cluster, "paused") == "q/weather,totals/flights"


def test_unpause_takes_away_what_it_names_and_at_last_the_annotation(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(named("flights", annotations={"headgate.dev/paused": "q/weather, totals/flights"}))

    assert headgate("unpause", "flights", "q/weather").out == "q/weather is read again\n"
    assert annotation_of(cluster, "paused") == "totals/flights"
    assert headgate("unpause", "flights", "totals/flights", "q/flights").out == (
        "q/flights was not paused\ntotals/flights is read again\n"
    )
    assert "headgate.dev/paused" not in cluster.objects["default", "flights"]["metadata"]["annotations"]


def test_unpause_cannot_undo_what_is_declared_and_says_so(headgate: Headgate, cluster: HttpCluster) -> None:
    manifest = flights()
    manifest["spec"]["queries"][0]["sources"][0]["paused"] = True
    manifest["metadata"]["annotations"] = {"headgate.dev/paused": "q/flights,q/weather"}
    cluster.put(manifest)

    ended = headgate("unpause", "flights", "q/flights", "q/weather")

    assert ended.code == 1
    assert ended.out == "q/weather is read again\n"
    assert ended.err.startswith(
        "error: q/flights: paused in the spec of flights, which only a change of it undoes"
    )
    assert annotation_of(cluster, "paused") is None


def test_a_pause_of_a_source_that_is_gone_can_still_be_lifted(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(named("flights", annotations={"headgate.dev/paused": "old/source"}))

    assert headgate("unpause", "flights", "old/source").out == "old/source is read again\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "q/wether",
            "flights lists no source q/wether; did you mean q/weather? it has: q/flights, q/weather,",
        ),
        ("weather", "flights lists no source weather; did you mean q/weather?"),
        ("xyz", "flights lists no source xyz; it has: q/flights, q/weather, totals/flights"),
    ],
)
@pytest.mark.parametrize("command", ["pause", "unpause"])
def test_a_name_that_is_not_listed_is_refused_with_those_that_are(
    command: str, typed: str, said: str, headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(flights())

    ended = headgate(command, "flights", "q/flights", typed)

    assert ended.code == 1
    assert said in ended.err
    assert cluster.patches == []


def test_nothing_can_be_paused_where_nothing_is_listed(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(application() | {"metadata": {"name": "flights"}})

    assert (
        "lists no source q/s, nor any other; list it under spec.queries"
        in headgate("pause", "flights", "q/s").err
    )


def test_a_pause_is_tried_again_when_somebody_was_faster(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())

    def somebody_pauses(request: Request) -> None:
        if request.method == "GET":
            cluster.after = lambda _request: None
            cluster.put(named("flights", annotations={"headgate.dev/paused": "totals/flights"}))

    cluster.after = somebody_pauses

    assert headgate("pause", "flights", "q/weather").code == 0
    assert len(cluster.patches) == 2
    assert annotation_of(cluster, "paused") == "q/weather,totals/flights"


def test_a_pause_that_never_gets_a_word_in_says_so(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())
    cluster.after = lambda request: cluster.reports("flights", attempt=1) if request.method == "GET" else None

    ended = headgate("pause", "flights", "q/weather")

    assert ended.code == 1
    assert re.search("it has been modified; try again$", ended.err.strip())
    assert len(cluster.patches) == 5


# Checkpoints

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_a_checkpoint_is_asked_of_every_query(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(named("flights", annotations={"headgate.dev/checkpoint": "q/2026-03-01T08:00:00Z"}))

    ended = headgate("checkpoint", "flights")

    assert ended.out == "flights: the next batch of every query is due at once\n"
    assert re.fullmatch(MOMENT, annotation_of(cluster, "checkpoint") or "")


def test_a_checkpoint_of_one_query_leaves_the_requests_of_the_others(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(named("flights", annotations={"headgate.dev/checkpoint": "2026-03-01T08:00:00Z"}))

    ended = headgate("checkpoint", "flights", "totals")

    assert ended.out == "flights: the next batch of totals is due at once\n"
    assert re.fullmatch(rf"2026-03-01T08:00:00Z,totals/{MOMENT}", annotation_of(cluster, "checkpoint") or "")


def test_a_checkpoint_of_an_unknown_query_is_refused(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())

    ended = headgate("checkpoint", "flights", "total")

    assert (ended.code, cluster.patches) == (1, [])
    assert ended.err == "error: flights lists no query total; did you mean totals? it has: q, totals\n"


def test_a_checkpoint_of_what_does_not_run_is_noted(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())
    cluster.reports("flights", state="Suspended")

    assert (
        headgate("checkpoint", "flights").err
        == "note: flights is Suspended, so that no query can commit now\n"
    )


# Reading


def test_status_shows_one_application_with_its_last_events(headgate: Headgate, cluster: HttpCluster) -> None:
    uid = cluster.put(flights())["metadata"]["uid"]
    cluster.reports("flights", state="Running", attempt=3, queries=[BACKLOG])
    for name, whose, message in (
        ("flights", uid, "in backlog by WatermarkLag"),
        ("flights", "that of one that was deleted", "not this one"),
        ("other", "another", "not this one"),
    ):
        about = {"kind": "SparkApplication", "name": name, "uid": whose}
        event = {"reason": "BacklogEntered", "message": message, "lastTimestamp": "2026-03-01T08:00:00Z"}
        cluster.events.append({"metadata": {"namespace": "default"}, "involvedObject": about, **event})

    ended = headgate("status", "flights")

    assert (ended.code, ended.err) == (0, "")
    assert "state     Running, attempt 3\n" in ended.out
    assert "query q  BACKLOG by WatermarkLag\n" in ended.out
    assert "ago  BacklogEntered  in backlog by WatermarkLag\n" in ended.out
    assert "not this one" not in ended.out
    assert "\x1b" not in ended.out


def test_status_goes_without_events_where_they_may_not_be_read(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(flights())
    cluster.scripted.extend(
        [None, failure(403, "Forbidden", 'events is forbidden: User "ann" cannot list resource')]
    )

    ended = headgate("status", "flights")

    assert ended.code == 0
    assert (
        '  not shown: events is forbidden: User "ann" cannot list resource; ask for that right' in ended.out
    )


def test_status_without_a_name_shows_all_worst_first(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())
    cluster.put(named("behind"))
    cluster.put(named("elsewhere"), namespace="other")
    for name, status in (("flights", {}), ("behind", {"queries": [BACKLOG]})):
        known = cluster.objects["default", name]
        cluster.put({**known, "status": {"state": "Running", **status}})

    ended = headgate("status")

    assert [line.split()[0] for line in ended.out.splitlines()] == ["NAME", "behind", "flights"]
    everywhere = headgate("status", "-A").out
    assert [line.split()[:2] for line in everywhere.splitlines()] == [
        ["NAMESPACE", "NAME"],
        ["other", "elsewhere"],
        ["default", "behind"],
        ["default", "flights"],
    ]


def test_status_as_json_is_the_object(headgate: Headgate, cluster: HttpCluster) -> None:
    stored = cluster.put(flights())

    assert json.loads(headgate("status", "flights", "--json").out) == stored
    assert json.loads(headgate("status", "--json").out) == [stored]


def test_nothing_to_show_is_said_and_no_failure(headgate: Headgate, cluster: HttpCluster) -> None:
    ended = headgate("status", "-n", "empty")

    assert (ended.code, ended.out, ended.err) == (0, "", "no applications in namespace empty\n")


def test_top_writes_one_table_where_there_is_no_terminal(headgate: Headgate, cluster: HttpCluster) -> None:
    for number in range(7):
        cluster.put(named(f"app{number}"))
    cluster.page = 3

    for arguments in (["top"], ["top", "--once"]):
        ended = headgate(*arguments)
        assert ended.code == 0
        assert len(ended.out.splitlines()) == 8


def in_pauses(monkeypatch: pytest.MonkeyPatch, *happens: Callable[[], None]) -> None:
    """Have something happen in each pause, and Ctrl-C in the one after.

    Threads that a driver of an earlier test has left pause as they did: py4j's collector never ends.
    """
    pauses, sleep = iter(happens), time.sleep

    def pause(seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            sleep(seconds)
        elif (meanwhile := next(pauses, None)) is None:
            raise KeyboardInterrupt
        else:
            meanwhile()

    monkeypatch.setattr("time.sleep", pause)


def test_top_is_drawn_anew_in_a_terminal_and_outlives_an_api_server_that_is_away(
    headgate: Headgate, cluster: HttpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(named("first"))
    in_pauses(
        monkeypatch,
        lambda: cluster.put(named("second")),
        lambda: cluster.scripted.append(Answer(503, "no")),
    )
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    ended = headgate("top", "--every", "1")

    assert ended.code == 0
    assert "second" in ended.out
    last = ended.out.rpartition("NAME")[2]
    assert all(words in last for words in ("first", "second", "not refreshed: ", "answers 503"))


def test_top_leaves_the_terminal_in_order_where_it_is_told_to_end(
    headgate: Headgate, cluster: HttpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pauses(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert headgate("top", "--every", "1").code == 128 + signal.SIGTERM
    assert headgate("top", "--every", "1e300").code == 2


ESCAPES = "ValueError: \x1b[2J\x1b[H\x1b]8;;http://evil.example\x1b\\ok\x9b5A\nflights   Running"


@pytest.mark.parametrize("arguments", [("status",), ("status", "flights"), ("top", "--once")])
def test_what_a_job_has_said_does_nothing_to_the_terminal_of_who_looks(
    headgate: Headgate, cluster: HttpCluster, arguments: tuple[str, ...]
) -> None:
    cluster.put(flights())
    stalled = {"type": "Stalled", "status": "True", "reason": "Failed", "message": ESCAPES}
    conditions = [stalled | {"lastTransitionTime": "2026-03-01T08:00:00Z"}]
    query = {"name": "totals", "backlog": False, "failure": ESCAPES}
    cluster.reports("flights", state="Failed", conditions=conditions, queries=[query])

    ended = headgate(*arguments)

    assert "Failed" in ended.out
    assert not {"\x1b", "\x9b"} & set(ended.out)
    assert not any(line.startswith("flights   Running") for line in ended.out.splitlines())


def test_nor_does_what_ends_a_wait(headgate: Headgate, cluster: HttpCluster, no_pause: list[float]) -> None:
    cluster.put(flights(suspend=True))
    stalled = {"type": "Stalled", "status": "True", "reason": "Failed", "message": ESCAPES}
    conditions = [stalled | {"lastTransitionTime": "2026-03-01T08:00:00Z"}]
    after_looks(cluster, {"state": "Failed", "conditions": conditions})

    ended = headgate("resume", "flights", "--wait")

    assert "flights has failed: ValueError" in ended.err
    assert not {"\x1b", "\x9b"} & set(ended.err)


def test_nor_does_an_answer_of_a_proxy_while_it_is_drawn_anew(
    headgate: Headgate, cluster: HttpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(flights())
    in_pauses(monkeypatch, lambda: cluster.scripted.append(Answer(503, f"evil {ESCAPES}")))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    ended = headgate("top")

    assert "not refreshed: " in ended.out
    assert "http://evil.example\x1b" not in ended.out
    assert "\x9b" not in ended.out


def test_explain_reads_the_application_of_the_cluster(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights(suspend=True))
    cluster.reports("flights", state="Hibernating")

    ended = headgate("explain", "app/flights")

    assert ended.code == 0
    assert ended.out.startswith("application flights\n")
    assert "  operator   is suspended" in ended.out


def test_explain_says_what_applying_a_file_would_do(
    headgate: Headgate, cluster: HttpCluster, tmp_path: Path
) -> None:
    cluster.put(flights())
    edited = tmp_path / "app.yaml"
    edited.write_text(json.dumps(flights(driver={"memory": "2g"})))

    ended = headgate("explain", "--diff", "app/flights", edited)

    assert ended.out.splitlines()[0] == "application flights: 1 restart"


def test_explain_of_what_an_older_crd_let_through_says_what_is_wrong(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.put(flights(restart={"backoff": "5"}))

    ended = headgate("explain", "app/flights")

    assert ended.code == 1
    assert (
        "this version refuses what is in the cluster:\napp/flights: error: spec.restart.backoff: 5"
        in ended.err
    )


def test_what_a_newer_crd_fills_in_is_no_reason_to_refuse_what_is_in_the_cluster(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    """The CRD goes first in an upgrade, and the command line may follow last."""
    (version,) = custom_resource_definition()["spec"]["versions"]
    schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    later = {"type": "string", "default": "1Gi"}
    schema["properties"]["spec"]["properties"]["driver"]["properties"]["later"] = later
    kind = {"group": "headgate.dev", "version": "v1alpha1", "kind": "SparkApplication"}
    schemas = {"app": {**schema, "x-kubernetes-group-version-kind": [kind]}}
    cluster.others["/openapi/v3/apis/headgate.dev/v1alpha1"] = Answer(
        200, {"openapi": "3.0.0", "components": {"schemas": schemas}}
    )
    cluster.put(flights(driver={"memory": "1g", "later": "1Gi"}))

    assert headgate("explain", "app/flights").out.startswith("application flights\n")
    assert "whose word holds\n" in headgate("status", "flights").out

    cluster.put(flights(driver={"memory": "1g", "later": "2Gi"}))

    assert "spec.driver.later" in headgate("explain", "app/flights").err


# What goes wrong

EVERY_COMMAND = pytest.mark.parametrize(
    "arguments",
    [
        ["status", "flights"],
        ["status"],
        ["top", "--once"],
        ["suspend", "flights"],
        ["resume", "flights"],
        ["pause", "flights", "q/flights"],
        ["unpause", "flights", "q/flights"],
        ["checkpoint", "flights"],
        ["explain", "app/flights"],
    ],
    ids=" ".join,
)


def one_sentence(text: str) -> bool:
    return text.startswith("error: ") and text.count("\n") == 1 and "Traceback" not in text


@EVERY_COMMAND
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            failure(401, "Unauthorized", "Unauthorized"),
            "does not know who you are; log in again, or give another --context",
        ),
        (
            failure(403, "Forbidden", 'sparkapplications.headgate.dev is forbidden: User "ann" cannot get'),
            'User "ann" cannot get; ask for that right, or give another --context',
        ),
        (
            Answer(404, "404 page not found\n"),
            "the cluster knows no SparkApplication of headgate.dev/v1alpha1; install the CRD",
        ),
        (failure(500, "InternalError", "etcd is gone"), "answers 500 etcd is gone; try again later"),
        (Answer(503, "<html>upstream</html>"), "answers 503 without a word; try again later"),
        (
            Answer(200, "<html>welcome</html>"),
            "is no API server of Kubernetes; check the server in the kubeconfig",
        ),
        (Answer(200, "[]"), "is no API server of Kubernetes"),
    ],
    ids=["401", "403", "no CRD", "500", "503", "a portal", "other JSON"],
)
def test_a_refusal_is_one_sentence_with_a_remedy(
    arguments: list[str], answer: Answer, said: str, headgate: Headgate, cluster: HttpCluster
) -> None:
    cluster.scripted.append(answer)

    ended = headgate(*arguments)

    assert ended.code == 1
    assert one_sentence(ended.err), ended.err
    assert said in ended.err


@EVERY_COMMAND
def test_a_cluster_that_does_not_answer_is_one_sentence(
    arguments: list[str], headgate: Headgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        (tmp_path / "config").write_text(kubeconfig_text(server))

        ended = headgate(*arguments)

    assert ended.code == 1
    assert ended.err == (
        f"error: {server} cannot be reached: nobody listens there; check that the cluster is up, or give another "
        "--context\n"
    )


def test_a_server_that_is_no_friend_of_tls_is_one_sentence(headgate: Headgate, tmp_path: Path) -> None:
    with http_cluster(tmp_path) as served:
        server = served.server.replace("http:", "https:")
        (tmp_path / "config").write_text(kubeconfig_text(server))
        ended = headgate("status", "--kubeconfig", tmp_path / "config")

    assert ended.code == 1
    assert ended.err.startswith(f"error: {server} cannot be reached: [SSL: WRONG_VERSION_NUMBER]")
    assert one_sentence(ended.err)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"flight": "default"}, "there is no application flights in namespace default; did you mean flight?"),
        (
            {"flights": "prod"},
            "there is no application flights in namespace default, but in prod; give that with -n",
        ),
        ({"zzz": "default"}, "there is no application flights in namespace default, which has: zzz"),
        ({}, "there is no application flights in namespace default, which has none"),
    ],
)
@pytest.mark.parametrize("command", ["status", "suspend", "checkpoint"])
def test_an_application_that_is_not_there_is_looked_for(
    command: str, others: dict[str, str], said: str, headgate: Headgate, cluster: HttpCluster
) -> None:
    for name, namespace in others.items():
        cluster.put(named(name), namespace)

    ended = headgate(command, "flights")

    assert (ended.code, ended.err) == (1, f"error: {said}\n")


def test_whoever_may_see_one_namespace_is_told_of_that_one(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(named("zzz"))
    cluster.scripted.extend([None, None, failure(403, "Forbidden", "cannot list at the cluster scope")])

    assert headgate("status", "flights").err.endswith("in namespace default, which has: zzz\n")


def test_a_write_that_is_refused_says_why(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())
    cluster.scripted.extend([None, failure(422, "Invalid", "spec.main: Required value", name="flights")])

    ended = headgate("suspend", "flights")

    assert (ended.code, ended.err) == (1, "error: the API server refuses it: spec.main: Required value\n")


def test_a_status_of_a_newer_version_is_said_to_be_one(headgate: Headgate, cluster: HttpCluster) -> None:
    cluster.put(flights())
    cluster.reports("flights", state="Hibernating")

    assert "unreadable  status.state: Input should be 'Pending'" in headgate("status", "flights").out
    assert "Unreadable" in headgate("top").out


# Which cluster


UNTOUCHABLE = 300 * "x"
"""A file that the system does not even look for, as it does not in a folder of somebody else's."""


def config_with(tmp_path: Path, name: str, server: str, **context: str) -> Path:
    path = tmp_path / name
    path.write_text(kubeconfig_text(server, **context).replace("test", name))
    return path


def test_the_namespace_is_that_of_the_context_unless_another_is_given(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    text = cluster.kubeconfig.read_text()
    cluster.kubeconfig.write_text(text.replace("cluster: test\n", "cluster: test\n    namespace: prod\n", 1))

    headgate("status")
    headgate("status", "-n", "dev")

    paths = [request.path for request in cluster.requests]
    assert [path.split("/")[5] for path in paths] == ["prod", "dev"]


def test_several_kubeconfigs_are_read_as_one(
    headgate: Headgate, cluster: HttpCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = config_with(tmp_path, "first", "http://127.0.0.1:1")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'none'}:{cluster.kubeconfig}")

    assert headgate("status").code == 1
    assert headgate("status", "--context", "test").code == 0


@pytest.mark.parametrize(("command", "option"), [("doctor", "--local"), ("support-bundle", "--state-dir")])
def test_what_looks_at_this_machine_too_names_the_option_where_there_is_no_cluster(
    headgate: Headgate, command: str, option: str
) -> None:
    ended = headgate(command)
    assert (ended.code, f"give --kubeconfig, or {option} for this machine" in ended.err) == (2, True)


def test_a_home_that_nobody_knows_is_no_kubeconfig(
    headgate: Headgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "~nobody-of-that-name/config")
    ended = headgate("status")
    assert (ended.code, one_sentence(ended.err)) == (2, True)
    assert "KUBECONFIG is ~nobody-of-that-name/config, and there is no such file" in ended.err


def test_a_kubeconfig_without_a_current_context_will_do_for_another(
    headgate: Headgate, cluster: HttpCluster
) -> None:
    text = cluster.kubeconfig.read_text().replace("current-context: test\n", "")
    cluster.kubeconfig.write_text(text)

    assert headgate("status", "--context", "test").code == 0
    ended = headgate("status")
    assert (ended.code, "says no current context; give --context one of its own: test" in ended.err) == (
        2,
        True,
    )


PROXIED = kubeconfig_text("http://x").replace("server: http://x", "server: http://x\n    proxy-url: x")
LOGGED_OUT = kubeconfig_text("http://x").replace(
    "token: secret",
    "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, echo log in >&2; exit 1], "
    "interactiveMode: Never}",
)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        (None, ["--kubeconfig", "none"], "none: there is no such kubeconfig"),
        (None, ["--kubeconfig", UNTOUCHABLE], "File name too long: 'xxx"),
        (None, [], "no cluster is configured: there is no ~/.kube/config, and this is not a pod"),
        (None, ["--context", "prod"], "--context prod: there is no kubeconfig; set KUBECONFIG"),
        ("{", [], "check it with kubectl config view"),
        ("contexts:\n\t- {}", [], "/config: malformed YAML in line 2: found character"),
        ("", [], "has no contexts; set KUBECONFIG or give --kubeconfig another one"),
        ("[1]", [], "has not the form of a kubeconfig; check it with kubectl config view"),
        ("contexts: [{}]", [], "a member 'name' is missing; check it with kubectl config view"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]",
            [],
            "check it with kubectl config view",
        ),
        (kubeconfig_text("http://x", namespace=123), [], "of context test is no text; put 123 in quotes"),
        (kubeconfig_text("http://x"), ["--context", "tests"], "--context tests is not in"),
        (kubeconfig_text("http://x"), ["--context", "tests"], "did you mean test?"),
        (kubeconfig_text("http://x"), ["--context", "prod"], "it has: test"),
        (
            kubeconfig_text(""),
            [],
            "the server of context test is '', which is no address; give one as https:",
        ),
        (kubeconfig_text("x:6443"), [], "the server of context test is 'x:6443', which is no address"),
        (
            kubeconfig_text("http://x:99999"),
            [],
            "the server of context test is 'http://x:99999', which is no",
        ),
        (PROXIED, [], "the proxy-url of context test is 'x', which is no address"),
        (LOGGED_OUT, [], "the login of context test failed: exec: process returned 1. log in; log in anew"),
        (kubeconfig_text("http://x"), ["--namespace", ".."], "'..' is no name of a namespace; give one of"),
        (kubeconfig_text("http://x"), [""], "'' is no name of an application; give one of lower-case"),
        (kubeconfig_text("http://x"), [".."], "'..' is no name of an application"),
        (kubeconfig_text("http://x"), ["a\nb"], "'a\\nb' is no name of an application"),
        (kubeconfig_text("http://x"), ["\udcff"], "'\\udcff' is no name of an application"),
    ],
)
def test_a_cluster_that_is_not_configured_is_a_matter_of_usage(
    text: str | None,
    arguments: list[str],
    said: str,
    headgate: Headgate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if text is not None:
        (tmp_path / "config").write_text(text)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))

    ended = headgate("status", *arguments)

    assert ended.code == 2
    assert one_sentence(ended.err), ended.err
    assert said in ended.err


def test_a_kubeconfig_of_brackets_alone_is_nested_too_deeply(headgate: Headgate, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[" * 5000)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # as in a new process: commands before this one raise it
    try:
        ended = headgate("status", "--kubeconfig", tmp_path / "config")
    finally:
        sys.setrecursionlimit(limit)

    assert ended.code == 2
    assert ended.err == f"error: {tmp_path}/config: is nested too deeply; check it with kubectl config view\n"


def test_no_name_is_not_all_of_them(headgate: Headgate, cluster: HttpCluster, tmp_path: Path) -> None:
    """`headgate support-bundle "$APP"`, where nothing has set `APP`."""
    cluster.put(flights())
    assert headgate("support-bundle", "", "--output", tmp_path / "bundle.tar.gz").code == 2
    assert not (tmp_path / "bundle.tar.gz").exists()


# As a plugin, and what is not loaded


def test_as_a_plugin_of_kubectl_it_calls_itself_so(headgate: Headgate) -> None:
    assert (
        "Usage: kubectl headgate status"
        in headgate("status", "--help", called="/usr/bin/kubectl-headgate").out
    )


def test_commands_without_a_cluster_do_not_load_its_client() -> None:
    program = (
        "import sys\nsys.argv = ['headgate', 'validate', 'examples/flights.yaml']\n"
        "from headgate.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'kubernetes', 'kopf', 'urllib3', 'requests', 'aiohttp'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    root = Path(__file__).parents[2]

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False, cwd=root
    )

    assert ended.returncode == 0, ended.stderr
