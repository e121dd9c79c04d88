"""Replicas, leases and outages: who acts, who waits, and who ends."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from headgate.settings import Settings
from support.served import CONTROL, LEASE, Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster

SHORT = ("--lease-duration", "6s", "--lease-renew-deadline", "4s", "--lease-retry-period", "500ms")
"""As short as a busy API server lets a leader renew in time."""


def holder(served: Served) -> str | None:
    lease = json.loads(served.kubectl("get", "lease", LEASE, "-o", "json"))
    return lease["spec"].get("holderIdentity")


def test_a_replica_that_waits_is_ready_and_does_nothing(start, served: Served) -> None:
    start("--identity", "a").begin_leading()
    waiting = start("--identity", "b")
    waiting.line("waiting for the lease")
    served.declare()
    served.driver()

    assert waiting.probe("/readyz") == waiting.probe("/healthz") == (200, "ok\n")
    assert waiting.metric("headgate_operator_leader") == 0
    assert waiting.metric('headgate_operator_watch_events_total{resource="sparkapplications"}') == 0
    assert holder(served) == "a"


def test_an_operator_that_is_rolled_out_anew_takes_over_with_every_edit_and_touches_no_driver(
    start, served: Served
) -> None:
    leader = start("--identity", "a").begin_leading()
    other = start("--identity", "b")
    other.line("waiting for the lease")
    names = ("flights", "orders", "clicks")
    for name in names:
        served.declare(name)
        served.driver(name)
        served.runs(f"{name}-driver-1")
        served.becomes("Running", name)
    generations = {name: served.document(name)["generation"] for name in names}
    uids = {name: [pod["metadata"]["uid"] for pod in served.pods(name)] for name in names}

    assert leader.stop() == 0
    assert leader.line("the lease is released")
    for name in names:
        of_before = {**served.document(name), "schemaVersion": "1.0"}  # the release before knew no more of it
        served.kubectl(
            "annotate", "--overwrite", "pod", f"{name}-driver-1", f"{CONTROL}={json.dumps(of_before)}"
        )
        interval = [{"op": "replace", "path": "/spec/queries/0/checkpoint/interval", "value": "7s"}]
        served.kubectl("patch", "sparkapplication", name, "--type=json", "-p", json.dumps(interval))
    other.begin_leading()

    for name in names:
        wait_until(
            lambda n=name: served.document(n)["queries"]["q"]["intervalSeconds"] == 7, f"{name} to be told"
        )
        assert served.document(name)["generation"] > generations[name]
        assert served.becomes("Running", name)["attempt"] == 1
    assert {name: [pod["metadata"]["uid"] for pod in served.pods(name)] for name in names} == uids


def test_when_the_leader_crashes_the_other_acts(start, served: Served) -> None:
    leader = start(*SHORT, "--identity", "a").begin_leading()
    other = start("--identity", "b")
    other.line("waiting for the lease")
    served.declare()
    uid = served.driver()["metadata"]["uid"]
    leader.kill()
    served.declare("orders")

    wait_until(lambda: served.pods("orders"), "the other replica to act")
    assert holder(served) == "b"
    assert [pod["metadata"]["uid"] for pod in served.pods()] == [uid]


def test_the_default_terms_leave_it_seconds_to_act_within_20() -> None:
    assert Settings().lease_duration + Settings().lease_retry_period <= timedelta(seconds=17)


def test_a_replica_that_is_stopped_while_it_waits_exits_with_0(start, served: Served) -> None:
    start("--identity", "a").begin_leading()
    waiting = start("--identity", "b")
    waiting.line("waiting for the lease")

    assert waiting.stop() == 0
    assert holder(served) == "a"


def test_a_leader_whose_lease_is_taken_ends_at_once(start, served: Served) -> None:
    leader = start("--identity", "a").begin_leading()
    thief = {"spec": {"holderIdentity": "somebody", "renewTime": "2030-01-01T00:00:00.000000Z"}}
    served.kubectl("patch", "lease", LEASE, "--type=merge", "-p", json.dumps(thief))

    assert leader.wait() == 1
    assert leader.line("held by somebody now; this process ends at once")


def test_two_replicas_of_one_name_do_not_both_act(start, served: Served) -> None:
    first = start("--identity", "same").begin_leading()
    second = start("--identity", "same")

    assert first.wait() == 1
    assert first.line("give each replica an identity of its own, not same to all")
    second.begin_leading()


def test_a_leader_that_cannot_renew_ends_and_another_start_goes_on(start, served: Served) -> None:
    leader = start(*SHORT, "--identity", "a").begin_leading()
    served.declare()
    uid = served.driver()["metadata"]["uid"]
    served.cluster.stop_api_server()
    try:
        assert leader.wait() == 1
        assert leader.line("was not renewed for 4 s; this process ends at once")
        waiting = start("--identity", "b")
        assert wait_until(lambda: waiting.probe("/readyz")[0] == 503, "to be not ready")
        assert waiting.probe("/healthz") == (200, "ok\n")
    finally:
        served.cluster.start_api_server()
    waiting.begin_leading()
    served.runs("flights-driver-1")
    served.becomes("Running")
    assert [pod["metadata"]["uid"] for pod in served.pods()] == [uid]


def test_without_an_election_it_outlives_an_api_server_that_is_gone(start, served: Served) -> None:
    operator = start("--no-leader-election").begin_leading()
    series = operator.series()
    served.declare()
    served.driver()
    served.cluster.stop_api_server()
    wait_until(
        lambda: "cannot compare" in operator.path.read_text(encoding="utf-8"), "the outage to be noticed"
    )
    served.cluster.start_api_server()
    served.runs("flights-driver-1")
    served.becomes("Running")
    served.declare("orders")
    served.driver("orders")

    assert operator.probe("/healthz") == (200, "ok\n")
    assert operator.process.poll() is None
    assert operator.series() == series


def test_what_was_deleted_while_the_api_server_was_away_is_noticed(start, served: Served) -> None:
    operator = start("--no-leader-election").begin_leading()
    served.declare()
    uid = served.driver()["metadata"]["uid"]
    served.kubectl("delete", "pod", "flights-driver-1")
    served.cluster.restart_api_server()

    def replaced() -> bool:
        return any(pod["metadata"]["uid"] != uid for pod in served.pods())

    wait_until(replaced, "a driver in place of the one that was deleted")
    assert operator.process.poll() is None
