"""What becomes of drivers in a cluster: those that cannot start, that end, and that somebody else ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headgate.adapters.kubernetes.client import PODS, Manifest
from headgate.adapters.kubernetes.names import CONTROL
from headgate.api.labels import APPLICATION, ROLE
from headgate.errors import ApiRefused, ApiUnavailable, TransientError
from headgate.key import Key, key_of
from support.looping import query
from support.operating import KEY, Operation

POD = Key("team", "flights-driver-1")


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "driver", "state": state}]}


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu.",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        }
    ],
}


def failures(o: Operation) -> int:
    count: int = o.status()["memory"]["history"]["failures"]
    return count


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (waiting("ImagePullBackOff", 'Back-off pulling image "x"'), "ImagePullFailed", "spec.image"),
        (waiting("ErrImageNeverPull"), "ImagePullFailed", "spec.image"),
        (
            waiting("CreateContainerConfigError", 'secret "kafka" not found'),
            "ContainerConfigError",
            "secret",
        ),
        (UNSCHEDULABLE, "Unschedulable", "Insufficient cpu"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_driver_waits_for_is_named_with_the_remedy_and_stalls_after_a_minute(
    status: dict[str, Any], reason: str, words: str
) -> None:
    o = Operation()
    o.declare()
    o.reconciles(2)
    o.cluster.set_pod("flights-driver-1", **status)
    o.reconcile()
    assert o.state() == "Starting"
    assert (o.condition("Ready")["status"], o.condition("Ready")["reason"]) == ("False", reason)
    assert words in o.condition("Ready")["message"]
    assert o.condition("Stalled")["status"] == "False"
    o.reconcile(seconds=60)
    assert (o.condition("Stalled")["status"], o.condition("Stalled")["reason"]) == ("True", reason)
    assert o.condition("Reconciling")["status"] == "False"
    o.cluster.pod_runs("flights-driver-1")
    o.reconcile()
    assert o.state() == "Running"
    assert o.condition("Stalled")["status"] == "False"


WEBHOOK = "API server: POST pods: 500: failed calling webhook policy: connection refused"


def failing(call: str) -> None:
    if call in ("create pods", "patch pods"):
        raise ApiUnavailable(WEBHOOK)


def test_a_webhook_that_does_not_answer_is_told_after_a_minute() -> None:
    o = Operation()
    o.declare()
    o.cluster.before = failing
    for _ in range(5):
        o.reconciles(1)
        assert (o.condition("Ready")["reason"], o.condition("Stalled")["status"]) == ("Started", "False")
        o.cluster.now += 9
    o.cluster.now += 30
    o.reconciles(2)
    assert (o.condition("Ready")["reason"], o.condition("Stalled")["status"]) == ("StartRefused", "True")
    assert "failed calling webhook policy" in o.condition("Stalled")["message"]
    o.cluster.before = lambda _call: None
    o.reconciles(3)
    assert o.names == ["flights-driver-1"]
    assert o.condition("Stalled")["status"] == "False"


def test_a_webhook_that_keeps_a_document_from_a_driver_is_told_after_a_minute() -> None:
    o = Operation()
    o.run()
    o.cluster.before = failing
    o.declare(queries=[query(checkpoint={"interval": "9s", "intervalDuringBacklog": "2m"})])
    o.reconciles(2)
    assert (o.condition("Stalled")["status"], o.state()) == ("False", "Running")
    o.cluster.now += 70
    o.reconciles(1)
    assert (o.condition("Stalled")["status"], o.condition("Stalled")["reason"]) == ("True", "ControlRefused")


def test_a_container_that_is_never_made_stalls_after_five_minutes() -> None:
    o = Operation()
    o.declare()
    o.reconciles(2)
    o.cluster.set_pod("flights-driver-1", **waiting("ContainerCreating"))
    o.reconcile(seconds=290)
    assert (o.state(), o.condition("Ready")["reason"]) == ("Starting", "WaitingForDriver")
    o.reconcile(seconds=20)
    assert (o.condition("Ready")["reason"], o.condition("Stalled")["status"]) == ("ContainerCreating", "True")
    assert "kubectl describe pod flights-driver-1" in o.condition("Stalled")["message"]
    o.cluster.pod_runs("flights-driver-1")
    o.reconciles(2)
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5', "QuotaExceeded"),
        (
            'pods "x" is forbidden: error looking up service account team/headgate-driver: serviceaccount '
            '"headgate-driver" not found',
            "ServiceAccountMissing",
        ),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsUser', "StartRefused"),
        ('admission webhook "policy" denied the request: no', "StartRefused"),
    ],
)
def test_a_pod_that_the_api_server_refuses_is_a_reason_with_its_words(message: str, reason: str) -> None:
    o = Operation()
    refuses = True

    def before(call: str) -> None:
        if call == "create pods" and refuses:
            raise ApiRefused(f"403: {message}", message)

    o.cluster.before = before
    o.declare()
    with pytest.raises(ApiRefused):
        o.reconcile()
    with pytest.raises(ApiRefused):
        o.reconcile()
    assert (o.state(), o.condition("Ready")["reason"]) == ("Pending", reason)
    assert message[:20] in o.condition("Ready")["message"]
    with pytest.raises(ApiRefused):
        o.reconcile(seconds=61)
    assert o.condition("Stalled")["status"] == "True"
    refuses = False
    o.reconciles(3)
    assert (o.state(), o.names) == ("Starting", ["flights-driver-1"])
    assert o.condition("Stalled")["status"] == "False"


def test_a_driver_that_failed_stays_for_its_log_until_the_next_one_starts() -> None:
    o = Operation()
    o.run()
    o.cluster.pod_ends("flights-driver-1", 1, message="Traceback\nValueError: no such topic: flights\n")
    o.reconcile()
    assert (o.state(), o.names) == ("BackingOff", ["flights-driver-1"])
    assert "exit code 1 (ValueError: no such topic: flights)" in o.condition("Ready")["message"]
    o.reconcile(seconds=20)
    assert o.names == [], "what is left of the one before goes first"
    o.reconcile()
    assert o.names == ["flights-driver-2"]


def test_the_next_driver_waits_until_the_api_server_has_forgotten_the_one_before() -> None:
    o = Operation()
    o.run()
    o.cluster.pod_ends("flights-driver-1", 1)
    o.cluster.edit(PODS, POD, lambda pod: pod["metadata"].update(finalizers=["somebody/else"]))
    o.reconciles(2)
    o.cluster.now += 20
    o.reconciles(5)
    assert o.names == ["flights-driver-1"]
    assert (o.condition("Ready")["reason"], o.condition("Stalled")["status"]) == ("PodHeld", "False")
    assert "somebody/else" in o.condition("Ready")["message"]
    o.cluster.now += 60
    o.reconcile()
    assert (o.condition("Stalled")["reason"], o.condition("Stalled")["status"]) == ("PodHeld", "True")
    o.cluster.vanish("flights-driver-1")
    o.reconciles(2)
    assert o.names == ["flights-driver-2"]


def test_a_driver_that_was_out_of_memory_says_what_to_do() -> None:
    o = Operation()
    o.run()
    o.cluster.pod_ends("flights-driver-1", 137, reason="OOMKilled")
    o.reconcile()
    assert "OOMKilled" in o.condition("Ready")["message"]
    assert "driver.memory" in o.condition("Ready")["message"]


def test_the_driver_after_one_that_was_out_of_memory_counts_it_and_the_next_one_does_not() -> None:
    o = Operation()
    o.run()
    assert ENDED_BEFORE not in environment(o)
    o.cluster.pod_ends("flights-driver-1", 137, reason="OOMKilled")
    starts_again(o, 2)
    assert ENDED_BEFORE in environment(o)
    o.cluster.pod_ends("flights-driver-2", 1)
    starts_again(o, 3)
    assert ENDED_BEFORE not in environment(o)


ENDED_BEFORE = {"name": "HEADGATE_PREVIOUS_END", "value": "OOMKilled"}


def environment(o: Operation) -> Sequence[Manifest]:
    found: Sequence[Manifest] = o.pod["spec"]["containers"][0]["env"]
    return found


def starts_again(o: Operation, attempt: int) -> None:
    o.reconciles(1)
    o.cluster.now += 300
    o.reconciles(4)
    assert o.names == [f"flights-driver-{attempt}"]


def test_a_batch_that_does_not_fit_stalls_the_application_with_remedies() -> None:
    o = Operation()
    o.run()
    o.cluster.pod_ends("flights-driver-1", 76)
    o.reconciles(2)
    o.cluster.now += 10_000
    o.reconciles(2)
    assert (o.state(), o.names) == ("Failed", ["flights-driver-1"])
    assert (o.condition("Stalled")["status"], o.condition("Stalled")["reason"]) == ("True", "BatchTooLarge")
    assert "batch.maxRecords" in o.condition("Stalled")["message"]


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_drained_node_costs_no_retry_whatever_the_exit_code(code: int) -> None:
    o = Operation()
    o.run(restart={"maxRetries": 0})
    o.cluster.evict(o.pod, grace_seconds=130)
    o.reconcile()
    assert (o.state(), o.condition("Ready")["reason"]) == ("Stopping", "Disrupted")
    o.cluster.pod_ends("flights-driver-1", code)
    o.reconcile()
    assert o.state() == "BackingOff"
    o.reconcile(seconds=20)
    assert o.names == ["flights-driver-2"]
    assert failures(o) == 0


def test_a_pod_evicted_by_the_kubelet_comes_back() -> None:
    o = Operation()
    o.run(restart={"maxRetries": 0})
    o.cluster.pod_ends("flights-driver-1", 137)
    word = {"reason": "Evicted", "message": "The node was low on memory."}
    o.cluster.edit(PODS, POD, lambda pod: pod["status"].update(word))
    o.reconcile()
    assert o.state() == "BackingOff"
    assert "The node was low on memory" in o.condition("Ready")["message"]
    o.reconcile(seconds=20)
    o.reconcile()
    assert o.names == ["flights-driver-2"]


@pytest.mark.parametrize(("code", "reason"), [(255, "Unknown"), (137, "ContainerStatusUnknown")])
def test_a_driver_whose_node_was_switched_off_and_on_costs_no_retry(code: int, reason: str) -> None:
    o = Operation()
    o.run(restart={"maxRetries": 0})
    o.cluster.pod_ends("flights-driver-1", code, reason=reason)
    o.reconcile()
    assert (o.state(), failures(o)) == ("BackingOff", 0)
    o.reconcile(seconds=10)
    o.reconciles(2)
    assert o.names == ["flights-driver-2"]


def test_disruptions_in_a_row_wait_longer_each_time_and_never_end_it() -> None:
    o = Operation()
    o.run(restart={"maxRetries": 1, "backoff": "10s"})
    pauses = []
    for attempt in range(1, 8):
        o.cluster.vanish(f"flights-driver-{attempt}")
        until = o.reconcile()
        assert until is not None
        pauses.append(until - o.cluster.now)
        o.cluster.now = until
        o.reconciles(2)
        assert o.names == [f"flights-driver-{attempt + 1}"]
        o.cluster.pod_runs(f"flights-driver-{attempt + 1}")
        o.reconcile()
    assert pauses == sorted(pauses)
    assert pauses[-1] > 10 * pauses[0]


def test_a_pod_that_the_kubelet_turned_away_is_taken_away_and_started_again() -> None:
    o = Operation()
    o.declare()
    o.reconciles(2)
    o.cluster.set_pod("flights-driver-1", phase="Failed", reason="OutOfcpu", message="not enough cpu")
    o.reconcile()
    assert "OutOfcpu" in o.condition("Ready")["message"]
    o.reconciles(2)
    o.reconcile(seconds=20)
    o.reconciles(2)
    assert o.names == ["flights-driver-2"]
    assert failures(o) == 0


def test_a_failed_pod_on_a_node_that_is_gone_is_not_replaced_before_it_is_gone() -> None:
    o = Operation()
    o.run()
    running = {"running": {"startedAt": "2023-11-14T22:13:20Z"}}
    o.cluster.set_pod(
        "flights-driver-1", phase="Failed", containerStatuses=[{"name": "driver", "state": running}]
    )
    for _ in range(10):
        o.reconcile(seconds=100)
    assert o.names == ["flights-driver-1"]
    assert o.condition("Ready")["reason"] == "NodeUnreachable"
    o.cluster.vanish("flights-driver-1")
    o.reconcile()
    o.reconcile(seconds=20)
    assert o.names == ["flights-driver-2"]


def test_a_driver_that_does_not_stop_is_killed_and_one_on_a_dead_node_is_waited_for() -> None:
    o = Operation()
    o.run()
    o.declare(suspend=True, stop={"gracePeriod": "30s"})
    o.reconciles(2)
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == 40
    o.reconcile(seconds=45)
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == 1, "not 0: the kubelet has to say that it ended"
    for _ in range(5):
        o.reconcile(seconds=100)
    assert o.names == ["flights-driver-1"]
    assert (o.condition("Stalled")["status"], o.condition("Stalled")["reason"]) == ("True", "NodeUnreachable")
    o.cluster.vanish("flights-driver-1")
    o.reconcile()
    assert o.state() == "Suspended"


def test_a_change_that_needs_a_restart_stops_the_driver_at_a_batch_boundary() -> None:
    o = Operation()
    o.run()
    o.declare(sparkConf={"spark.sql.shuffle.partitions": "8"})
    o.reconciles(2)
    assert (o.state(), o.condition("Ready")["reason"]) == ("Stopping", "RevisionChanged")
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    assert o.names == ["flights-driver-2"]
    assert "spark.sql.shuffle.partitions=8" in str(o.pod["spec"]["containers"][0]["env"])
    assert failures(o) == 0


def test_a_wrong_image_is_replaced_without_waiting_for_it() -> None:
    o = Operation()
    o.declare(image="wrong")
    o.reconciles(2)
    o.declare(image="right")
    o.reconciles(3)
    assert [o.pod["spec"]["containers"][0]["image"], o.names] == ["right", ["flights-driver-2"]]


def test_a_completed_application_goes_after_its_time() -> None:
    o = Operation()
    o.run(ttlAfterFinished="10m")
    o.cluster.pod_ends("flights-driver-1", 0)
    until = o.reconcile()
    assert o.state() == "Completed"
    assert until == o.cluster.now + 600
    o.reconcile(seconds=600)
    o.reconciles(2)
    assert ("sparkapplications", *KEY) not in o.cluster.objects


def test_an_application_is_deleted_once_its_driver_has_stopped() -> None:
    o = Operation()
    o.run()
    o.cluster.remove(KEY)
    o.reconciles(2)
    assert (o.state(), o.condition("Ready")["reason"]) == ("Stopping", "Deleted")
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    assert ("sparkapplications", *KEY) not in o.cluster.objects
    assert o.reconcile() is None
    assert o.measurements.watched == {}


def test_a_deletion_never_hangs() -> None:
    o = Operation()
    o.run()
    o.cluster.remove(KEY)
    o.reconciles(2)
    o.reconcile(seconds=170)
    assert ("sparkapplications", *KEY) in o.cluster.objects
    o.reconcile(seconds=10)
    assert ("sparkapplications", *KEY) not in o.cluster.objects


def test_a_deletion_that_no_operator_was_there_for_waits_for_the_driver_all_the_same() -> None:
    o = Operation()
    o.run()
    o.cluster.remove(KEY)
    o.cluster.now += 600
    o.restart()
    o.reconciles(2)
    assert (o.state(), o.condition("Ready")["reason"]) == ("Stopping", "Deleted")
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == 130
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    assert ("sparkapplications", *KEY) not in o.cluster.objects


def test_one_failure_after_a_long_absence_of_the_operator_lets_no_application_go() -> None:
    def is_down(call: str) -> None:
        if "status" in call:
            raise ApiUnavailable("503")

    o = Operation()
    o.run()
    o.cluster.remove(KEY)
    o.cluster.now += 600
    o.restart()
    o.cluster.before = is_down
    o.reconciles(1)
    assert ("sparkapplications", *KEY) in o.cluster.objects
    o.cluster.now += 200
    o.reconciles(1)
    assert ("sparkapplications", *KEY) not in o.cluster.objects


def test_an_application_that_never_started_is_deleted_at_once() -> None:
    o = Operation()
    o.declare(suspend=True)
    o.reconciles(2)
    o.cluster.remove(KEY)
    o.reconciles(2)
    assert ("sparkapplications", *KEY) not in o.cluster.objects


def test_a_new_application_waits_for_the_driver_of_a_deleted_one_of_its_name() -> None:
    o = Operation()
    o.run()
    o.cluster.remove(KEY)
    o.reconciles(2)
    o.reconcile(seconds=200)
    o.declare()
    o.reconciles(3)
    assert o.names == ["flights-driver-1"]
    assert (o.state(), o.condition("Ready")["reason"]) == ("Pending", "PredecessorRemains")
    first = o.pod["metadata"]["uid"]
    o.cluster.vanish("flights-driver-1")
    o.reconciles(2)
    assert o.pod["metadata"]["uid"] != first


def hides(o: Operation, label: str = ROLE) -> Any:
    """Somebody takes a label off the driver's pod: a watch says that it is gone, and its container runs."""
    (pod,) = o.cluster.pods()
    o.cluster.edit(PODS, key_of(pod), lambda known: known["metadata"]["labels"].pop(label))
    o.heard = len(o.cluster.events)
    version = o.pod["metadata"]["resourceVersion"]
    o.controller.pod_gone({**pod, "metadata": {**pod["metadata"], "resourceVersion": version}})
    return pod


@pytest.mark.parametrize("label", [ROLE, APPLICATION])
def test_a_driver_whose_labels_are_taken_off_gets_no_other_one_beside_it(label: str) -> None:
    o = Operation()
    o.run()
    hides(o, label)
    for _ in range(20):
        o.cluster.now += 30
        o.reconciles(1)
    assert o.names == ["flights-driver-1"]
    assert (o.state(), o.condition("Ready")["reason"]) == ("Pending", "PredecessorRemains")
    assert o.condition("Stalled")["status"] == "True"
    assert "kubectl delete pod flights-driver-1" in o.condition("Stalled")["message"]
    o.cluster.pod_ends("flights-driver-1", 0)
    o.heard = len(o.cluster.events)
    o.reconciles(3)
    assert "flights-driver-2" in o.names


def test_a_driver_that_gets_its_labels_back_is_known_again_and_runs_on() -> None:
    o = Operation()
    o.run()
    o.acknowledge()
    labels = hides(o)["metadata"]["labels"]
    o.reconciles(1)
    assert o.state() == "BackingOff"
    o.cluster.edit(PODS, POD, lambda known: known["metadata"].update(labels=labels))
    o.reconciles(2)
    assert (o.names, o.state()) == (["flights-driver-1"], "Running")


def test_a_driver_that_gets_its_labels_back_late_goes_before_the_next_one_comes() -> None:
    o = Operation()
    o.run()
    labels = hides(o)["metadata"]["labels"]
    for _ in range(10):
        o.cluster.now += 30
        o.reconciles(1)
    assert o.condition("Ready")["reason"] == "PredecessorRemains"
    o.cluster.edit(PODS, POD, lambda known: known["metadata"].update(labels=labels))
    o.reconciles(2)
    assert (o.names, o.state()) == (["flights-driver-1"], "Stopping")
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(3)
    assert o.names == ["flights-driver-2"]


def test_a_driver_whose_labels_are_taken_off_is_replaced_once_somebody_deletes_it() -> None:
    o = Operation()
    o.run()
    hides(o)
    for _ in range(5):
        o.cluster.now += 30
        o.reconciles(1)
    o.cluster.evict(o.pod)
    o.reconciles(2)
    assert o.names == ["flights-driver-1"]
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    assert o.names == ["flights-driver-2"]


def test_another_pod_that_has_the_name_of_the_driver_is_told_with_the_remedy() -> None:
    o = Operation()
    o.declare()
    stranger = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD.name, "namespace": POD.namespace}}
    asyncio.run(o.cluster.create(PODS, {**stranger, "spec": {}}))
    o.reconciles(2)
    for _ in range(3):
        o.cluster.now += 30
        o.reconciles(1)
    assert (o.state(), o.condition("Ready")["reason"]) == ("Pending", "PredecessorRemains")
    assert o.condition("Stalled")["status"] == "True"
    assert "kubectl delete pod flights-driver-1" in o.condition("Stalled")["message"]
    o.cluster.vanish(POD.name)
    o.reconciles(2)
    assert o.pod["metadata"]["labels"][ROLE] == "driver"


def test_the_driver_that_runs_is_found_again_when_the_status_is_lost() -> None:
    o = Operation()
    o.run()
    o.cluster.objects["sparkapplications", *KEY].pop("status")
    o.restart()
    o.reconciles(2)
    assert (o.state(), o.names) == ("Running", ["flights-driver-1"])


def test_a_document_that_somebody_edited_is_put_right() -> None:
    o = Operation()
    o.run()
    before = o.document
    o.cluster.edit(PODS, POD, lambda pod: pod["metadata"]["annotations"].update({CONTROL: "{}"}))
    o.reconcile()
    assert o.document.queries == before.queries
    assert o.document.generation > before.generation


def test_a_driver_that_fails_every_time_ends_as_failed_with_its_count() -> None:
    o = Operation()
    o.run(restart={"maxRetries": 2, "backoff": "1s"})
    for attempt in (1, 2, 3):
        o.cluster.pod_ends(f"flights-driver-{attempt}", 1)
        o.reconcile()
        o.cluster.now += 30
        o.reconciles(3)
        if attempt < 3:
            o.cluster.pod_runs(f"flights-driver-{attempt + 1}")
    assert (o.state(), o.condition("Stalled")["reason"]) == ("Failed", "RetriesExhausted")
    o.declare(restart={"maxRetries": 2, "backoff": "1s"}, suspend=True)
    o.reconciles(2)
    o.declare(restart={"maxRetries": 2, "backoff": "1s"})
    o.reconciles(3)
    assert o.names == ["flights-driver-4"]


def test_a_driver_whose_container_cannot_be_started_uses_its_retries_up() -> None:
    """An image without `headgate-run`, say: the kubelet dates the start of what never ran to 1970."""
    o = Operation()
    o.declare(restart={"maxRetries": 1, "backoff": "10s"})
    for attempt in (1, 2):
        o.cluster.now += 60
        o.reconciles(4)
        o.cluster.pod_ends(
            f"flights-driver-{attempt}", 128, reason="StartError", startedAt="1970-01-01T00:00:00Z"
        )
        o.reconciles(1)
        assert failures(o) == attempt
    assert o.state() == "Failed"
    assert o.condition("Stalled")["reason"] == "RetriesExhausted"


def test_an_answer_that_is_lost_starts_no_second_driver() -> None:
    o = Operation()
    lost = {"apply sparkapplications/status", "create pods", "patch sparkapplications"}

    def after(call: str) -> None:
        if call in lost:
            lost.discard(call)
            raise TransientError(f"{call}: the answer was lost")

    o.cluster.after = after
    o.declare()
    o.reconciles(10)
    assert not lost
    assert (o.state(), o.names) == ("Starting", ["flights-driver-1"])
