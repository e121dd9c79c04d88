"""`headgate operator` on a real API server: a life of an application, and crashes in the middle of it."""

from __future__ import annotations

import json
import subprocess

import pytest

from support.go_tools import go_tool
from support.served import CONTROL, Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster


def test_an_application_gets_a_driver_a_document_and_a_status(start, served: Served) -> None:
    operator = start().begin_leading()
    served.declare()
    driver = served.driver()

    document = json.loads(driver["metadata"]["annotations"][CONTROL])
    assert document["queries"]["q"]["intervalSeconds"] == 5
    assert driver["metadata"]["ownerReferences"][0]["name"] == "flights"
    served.is_scheduled("flights-driver-1")
    assert served.becomes("Starting")["attempt"] == 1
    served.runs("flights-driver-1")
    served.becomes("Running")
    line = operator.decision("Running")
    assert (line["application"], line["level"]) == (f"{served.namespace}/flights", "info")


def test_a_deleted_application_goes_after_its_driver(start, served: Served) -> None:
    start().begin_leading()
    served.declare()
    served.driver()
    served.kubectl("delete", "sparkapplication", "flights", "--wait=false")

    wait_until(lambda: served.application() is None, "the application to go")
    assert served.pods() == []


def test_a_suspended_application_stays_without_a_driver_and_comes_back(start, served: Served) -> None:
    start().begin_leading()
    served.declare()
    served.driver()
    served.declare(suspend=True)
    served.becomes("Suspended")
    assert served.pods() == []

    served.declare(suspend=False)
    served.driver(attempt=2)


def test_a_driver_that_fails_is_started_again(start, served: Served) -> None:
    start().begin_leading()
    served.declare(restart={"backoff": "1s"})
    served.driver()
    served.runs("flights-driver-1")
    served.becomes("Running")
    served.ends("flights-driver-1", 1)

    served.driver(attempt=2)
    wait_until(lambda: len(served.pods()) == 1, "the pod of the first attempt to go")


def test_an_application_that_has_ended_is_kept_for_its_time_and_then_deleted(start, served: Served) -> None:
    operator = start().begin_leading()
    served.declare(ttlAfterFinished="1000000h")
    served.driver()
    served.runs("flights-driver-1")
    served.becomes("Running")
    served.ends("flights-driver-1", 0)
    served.becomes("Completed")

    served.declare(ttlAfterFinished="1s")
    wait_until(lambda: served.application() is None, "the application to go")
    assert "ttlAfterFinished" in operator.decision("Expired")["event"]


def test_after_a_crash_the_next_process_goes_on_with_the_same_driver(start, served: Served) -> None:
    first = start("--lease-duration", "6s", "--lease-renew-deadline", "4s").begin_leading()
    served.declare()
    uid = served.driver()["metadata"]["uid"]
    first.kill()
    served.runs("flights-driver-1")

    second = start("--identity", "next")
    second.begin_leading()
    served.becomes("Running")
    assert [pod["metadata"]["uid"] for pod in served.pods()] == [uid]


@pytest.mark.parametrize("seen", ["nothing", "status", "pod"])
def test_a_crash_in_the_middle_of_a_start_leaves_one_driver(start, served: Served, seen: str) -> None:
    first = start("--no-leader-election").begin_leading()
    is_there = {
        "nothing": lambda: True,
        "status": served.status,
        "pod": served.pods,
    }
    served.declare()
    wait_until(is_there[seen], seen)
    first.kill()

    start("--no-leader-election").begin_leading()
    served.driver()
    served.is_scheduled("flights-driver-1")
    served.becomes("Starting")
    assert [pod["metadata"]["name"] for pod in served.pods()] == ["flights-driver-1"]


def test_an_application_of_another_namespace_is_left_alone(start, served: Served) -> None:
    start().begin_leading()
    elsewhere = Served(served.cluster, served.cluster.namespace())
    elsewhere.declare()
    served.declare()
    served.driver()

    assert elsewhere.status() == {} or elsewhere.status().get("attempt") is None
    assert elsewhere.pods() == []


def test_what_others_write_on_it_meanwhile_does_not_disturb_it(start, served: Served) -> None:
    operator = start().begin_leading()
    served.declare()
    for turn in range(15):
        served.kubectl("annotate", "--overwrite", "sparkapplication", "flights", f"example.com/turn={turn}")
        if turn == 5:
            served.driver()
            served.runs("flights-driver-1")
    status = served.becomes("Running")

    assert status["attempt"] == 1
    assert [pod["metadata"]["name"] for pod in served.pods()] == ["flights-driver-1"]
    assert not [line for line in operator.lines() if "defect" in line["event"]]


def test_a_scrape_passes_promtool_and_has_what_the_page_describes(start, served: Served) -> None:
    operator = start().begin_leading()
    served.declare()
    served.driver()
    served.is_scheduled("flights-driver-1")
    served.becomes("Starting")
    scrape = operator.metrics()

    checked = subprocess.run(
        [go_tool("promtool"), "check", "metrics"], input=scrape, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert operator.metric("headgate_operator_leader") == 1
    assert operator.metric('headgate_operator_applications{state="Starting"}') == 1
    assert (operator.metric('headgate_operator_reconcile_duration_seconds_count{result="done"}') or 0) >= 1
