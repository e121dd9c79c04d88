"""What a person sees of what is wrong, word for word, on a real API server; a test plays the kubelet."""

from __future__ import annotations

import json
import shlex

import pytest

from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.controller.reconciliation import ReconcileOptions
from headgate.decision.situation import PATIENCE_SECONDS
from headgate.errors import ApiConflict, ApiUnavailable
from headgate.key import Key
from headgate_contract import metrics as names
from support.looping import query, source
from support.on_server import OnServer

pytestmark = pytest.mark.cluster

LOCATION = {"spark.sql.streaming.checkpointLocation": "s3a://lake/checkpoints/"}
CYCLE = [query(sources=[source(name="a", after="b"), source(name="b", after="a")])]


def patience_is_over(o: OnServer, name: str = "flights") -> None:
    """A minute passes in which nothing gets better."""
    o.skew += PATIENCE_SECONDS + 1
    o.reconciles(1, name)


# The resource --------------------------------------------------------------------------------------


def test_a_cycle_that_the_api_server_cannot_see_stalls_the_application_and_leaves_the_driver_alone(
    o: OnServer,
) -> None:
    o.run()
    (before,) = o.pods()
    o.apply(queries=CYCLE)
    o.reconciles(2)
    stalled = o.said("Stalled")
    assert stalled == (
        "True",
        "InvalidSpec",
        "spec.queries[delays].sources[a].after: a after b after a: none of them would ever start; let one start by "
        "itself",
    )
    assert o.said("Ready") == ("False", *stalled[1:])
    assert o.said("Reconciling") == ("False", *stalled[1:])
    (after,) = o.pods()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["annotations"][CONTROL] == before["metadata"]["annotations"][CONTROL]
    o.apply()
    o.reconciles(2)
    assert o.said("Stalled")[0] == "False"


def test_a_script_that_is_not_in_the_image_is_refused_with_the_way_to_name_it(o: OnServer) -> None:
    o.apply(main={"file": "job.py"})
    o.reconciles(1)
    assert o.said("Stalled") == (
        "True",
        "InvalidSpec",
        "spec.main.file: job.py is not a file of the image; name it as local:///opt/app/job.py",
    )
    assert o.names() == []


def test_an_application_without_an_image_says_who_could_name_one(o: OnServer) -> None:
    o.begin(ReconcileOptions(drivers=DriverDefaults(image=None, service_account="default")))
    o.apply()
    o.reconciles(2)
    assert o.said("Stalled") == (
        "True",
        "InvalidSpec",
        "spec.image: is not set, and the operator has no default image; name the image of the job",
    )
    assert o.names() == []


def test_a_pause_that_names_no_source_is_an_event_that_says_so(o: OnServer) -> None:
    o.run()
    o.kubectl("annotate", "sparkapplication", "flights", "headgate.dev/paused=delays/flihgts")
    o.reconciles(2)
    events = json.loads(o.kubectl("get", "events", "-o", "json"))["items"]
    (told,) = [event["message"] for event in events if event["reason"] == "UnknownName"]
    assert told.startswith("annotation headgate.dev/paused: delays/flihgts pauses nothing")


# Drivers that cannot start -------------------------------------------------------------------------


def test_an_image_that_cannot_be_pulled_is_named_with_the_remedy(o: OnServer) -> None:
    o.apply(image="example/none:1")
    o.reconciles(2)
    o.waits("flights-driver-1", "ImagePullBackOff", 'Back-off pulling image "example/none:1"')
    o.reconciles(1)
    ready = o.said("Ready")
    assert ready == (
        "False",
        "ImagePullFailed",
        'the driver\'s container does not start (ImagePullBackOff: Back-off pulling image "example/none:1"); correct '
        "spec.image, or give the driver's service account a pull secret",
    )
    assert (o.state(), o.said("Reconciling")[0], o.said("Stalled")[0]) == ("Starting", "True", "False")
    patience_is_over(o)
    assert o.said("Stalled") == ("True", *ready[1:])
    o.apply(image="example/some:1")
    o.reconciles(3)
    assert o.names() == ["flights-driver-1"], "its deletion waits for the kubelet"
    o.ends("flights-driver-1", 137)
    o.reconciles(3)
    assert (o.names(), o.said("Stalled")[0]) == (["flights-driver-2"], "False")


def test_a_quota_without_room_is_named_and_goes_on_by_itself_when_there_is_some(o: OnServer) -> None:
    none = {"hard": {"pods": "0"}, "used": {"pods": "0"}}
    o.kubectl("create", "quota", "small", "--hard=pods=0")
    o.kubectl(
        "patch", "quota", "small", "--subresource=status", "--type=merge", "-p", json.dumps({"status": none})
    )
    o.apply()
    refusals = o.reconciles(2)
    assert "exceeded quota: small" in refusals[-1]
    o.reconciles(1)
    assert o.said("Ready") == (
        "False",
        "QuotaExceeded",
        'the driver cannot be created (pods "flights-driver-1" is forbidden: exceeded quota: small, requested: '
        "pods=1, used: pods=0, limited: pods=0); raise the quota, or suspend another application",
    )
    assert (o.state(), o.said("Stalled")[0]) == ("Pending", "False")
    patience_is_over(o)
    assert o.said("Stalled")[:2] == ("True", "QuotaExceeded")
    o.kubectl("delete", "quota", "small")
    o.reconciles(3)
    assert (o.state(), o.names(), o.said("Stalled")[0]) == ("Starting", ["flights-driver-1"], "False")


def test_a_service_account_that_is_missing_is_named_with_who_creates_it(o: OnServer) -> None:
    o.begin(
        ReconcileOptions(
            drivers=DriverDefaults(image="example/spark:4.3.0", service_account="headgate-driver")
        )
    )
    o.apply()
    o.reconciles(3)
    assert o.said("Ready") == (
        "False",
        "ServiceAccountMissing",
        'the driver cannot be created (pods "flights-driver-1" is forbidden: error looking up service account '
        f'{o.namespace}/headgate-driver: serviceaccount "headgate-driver" not found); create it in this namespace; '
        "the chart does so in those listed in drivers.namespaces",
    )
    patience_is_over(o)
    assert o.said("Stalled")[:2] == ("True", "ServiceAccountMissing")
    o.kubectl("create", "serviceaccount", "headgate-driver")
    o.reconciles(3)
    assert (o.state(), o.said("Stalled")[0]) == ("Starting", "False")


def test_what_the_namespace_forbids_is_said_in_the_words_of_the_api_server(o: OnServer) -> None:
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    o.plane.kubectl("label", "namespace", o.namespace, restricted)
    defaults = DriverDefaults(image="example/spark:4.3.0", service_account="default", run_as_user=0)
    o.begin(ReconcileOptions(drivers=defaults))
    o.apply()
    o.reconciles(3)
    status, reason, message = o.said("Ready")
    assert (status, reason) == ("False", "StartRefused")
    assert 'is forbidden: violates PodSecurity "restricted:latest": runAsUser=0' in message
    assert message.endswith("leave out what the namespace's Pod Security Standard forbids")


def test_what_the_image_lacks_is_said_in_the_words_of_the_driver_and_not_tried_again(o: OnServer) -> None:
    o.run()
    words = "no Java is found: install a JRE 17 or newer, or set JAVA_HOME"
    o.ends("flights-driver-1", 78, f"headgate-run: error: {words}")
    o.reconciles(1)
    assert o.said("Stalled") == (
        "True",
        "InvalidSetup",
        f"attempt 1 ended with exit code 78 ({words}): it cannot be governed with what is installed or set there. "
        "Its log says what to mend; then suspend and resume to try again",
    )
    o.skew += 10_000
    o.reconciles(2)
    assert (o.state(), o.names()) == ("Failed", ["flights-driver-1"])


# Queries that fail while their driver runs ---------------------------------------------------------


def test_a_query_that_fails_beside_its_siblings_is_told_with_its_cause(o: OnServer) -> None:
    o.run()
    cause = "query delays: source flights: topic flights does not exist at broker:9092; create it"
    metrics = o.fake.metrics(Key(o.namespace, "flights"))
    metrics.reports("delays", active=0.0)
    labels = {"application": "flights", "query": "delays", "cause": cause}
    metrics.values.append((names.QUERY_FAILED.name, labels, 1.0))
    o.reconciles(1)
    assert o.said("Stalled") == ("True", "StreamingQueryFailed", cause)
    assert o.said("Ready") == ("False", "StreamingQueryFailed", cause)
    assert (o.state(), o.names()) == ("Running", ["flights-driver-1"])


def test_a_source_whose_broker_does_not_answer_is_told_with_its_cause_and_waits(o: OnServer) -> None:
    o.run()
    cause = "query delays: source flights: broker:9092 has not answered yet; see that it runs"
    metrics = o.fake.metrics(Key(o.namespace, "flights"))
    labels = {"application": "flights", "query": "delays", "source": "flights", "cause": cause}
    metrics.values.append((names.SOURCE_OUT_OF_REACH.name, labels, 1.0))
    o.reconciles(1)
    events = json.loads(o.kubectl("get", "events", "-o", "json"))["items"]
    assert [event["message"] for event in events if event["reason"] == "SourceOutOfReach"] == [cause]
    assert o.status()["queries"][0]["sources"][0]["outOfReach"] == cause
    assert (o.state(), o.names()) == ("Running", ["flights-driver-1"])


# Checkpoints ---------------------------------------------------------------------------------------


def test_of_two_applications_on_one_checkpoint_the_later_one_is_stalled_with_the_name_of_the_other(
    o: OnServer,
) -> None:
    o.apply(sparkConf=LOCATION)
    o.reconciles(2)
    o.apply("other", sparkConf=LOCATION)
    o.reconciles(2, "other")
    assert o.said("Stalled", "other") == (
        "True",
        "CheckpointInUse",
        f"checkpoint location s3://lake/checkpoints/delays: driver flights-driver-1 of application {o.namespace}"
        "/flights writes there; suspend or delete that one, or name another location in sparkConf; leave it out "
        "there if the job names its own",
    )
    assert (o.said("Stalled")[0], o.names()) == ("False", ["flights-driver-1"])


def test_applications_that_share_the_folder_and_no_query_do_not_share_a_checkpoint(o: OnServer) -> None:
    o.run(sparkConf=LOCATION)
    o.apply("other", sparkConf=LOCATION, queries=[query(name="totals")])
    o.reconciles(2, "other")
    assert (o.names(), o.said("Stalled", "other")[0]) == (["flights-driver-1", "other-driver-1"], "False")


def test_an_application_under_another_name_waits_for_the_driver_of_the_old_one(o: OnServer) -> None:
    o.run(sparkConf=LOCATION)
    o.kubectl("delete", "sparkapplication", "flights", "--wait=false")
    o.apply("trips", sparkConf=LOCATION)
    o.reconciles(1)
    o.reconciles(2, "trips")
    assert o.said("Stalled", "trips")[1:] == (
        "CheckpointInUse",
        f"checkpoint location s3://lake/checkpoints/delays: driver flights-driver-1 of application {o.namespace}"
        "/flights writes there; suspend or delete that one, or name another location in sparkConf; leave it out "
        "there if the job names its own",
    )
    o.ends("flights-driver-1", 0)
    o.reconciles(2)
    o.reconciles(2, "trips")
    assert (o.names(), o.said("Stalled", "trips")[0]) == (["trips-driver-1"], "False")


# What people do by hand ----------------------------------------------------------------------------


def test_a_pod_that_is_deleted_by_hand_comes_back_and_counts_as_no_failure(o: OnServer) -> None:
    o.run(restart={"maxRetries": 0})
    o.kubectl("delete", "pod", "flights-driver-1", "--wait=false")
    o.reconciles(1)
    assert (o.state(), o.said("Ready")) == (
        "Stopping",
        ("False", "Disrupted", "attempt 1 is being ended by somebody else; it comes back elsewhere"),
    )
    o.ends("flights-driver-1", 143)
    o.reconciles(1)
    assert o.said("Ready")[1:] == (
        "BackingOff",
        "attempt 1 disappeared; the next one starts after a pause",
    )
    o.skew += 30
    o.reconciles(2)
    assert (o.names(), o.said("Stalled")[0]) == (["flights-driver-2"], "False")


def test_a_pod_that_is_deleted_by_force_comes_back_too(o: OnServer) -> None:
    o.run()
    o.kubectl("delete", "pod", "flights-driver-1", "--force", "--grace-period=0", "--wait=false")
    o.reconciles(1)
    assert o.said("Ready")[1:] == (
        "BackingOff",
        "attempt 1 disappeared; the next one starts after a pause",
    )
    o.skew += 30
    o.reconciles(2)
    assert o.names() == ["flights-driver-2"]


def test_one_that_was_deleted_by_force_and_runs_on_is_waited_for(o: OnServer) -> None:
    o.run()
    o.kubectl("delete", "pod", "flights-driver-1", "--force", "--grace-period=0", "--wait=false")
    o.reconciles(1)
    locked = "checkpoint /checkpoints/delays is in use by the run with pid 17; stop that one"
    for attempt in (2, 3):
        o.skew += PATIENCE_SECONDS
        o.reconciles(2)
        o.runs(f"flights-driver-{attempt}")
        o.ends(f"flights-driver-{attempt}", 75, f"headgate-run: error: {locked}")
        o.reconciles(1)
        assert (o.state(), o.said("Ready")[1:]) == (
            "BackingOff",
            (
                "CheckpointInUse",
                f"attempt {attempt} ended with exit code 75 ({locked}): another driver holds the checkpoint; stop "
                "that one, or use a checkpoint of its own. It is tried again after a pause",
            ),
        )
        assert o.said("Stalled")[0] == ("False" if attempt == 2 else "True")
    o.skew += 300
    o.reconciles(2)
    o.runs("flights-driver-4")
    o.reconciles(2)
    assert (o.state(), o.said("Stalled")[0]) == ("Running", "False")


def test_a_batch_that_does_not_fit_in_memory_is_told_with_its_name_and_the_remedies(o: OnServer) -> None:
    o.run()
    words = "query delays: batch 7 has failed twice for want of memory"
    o.ends("flights-driver-1", 76, f"headgate-run: error: {words}")
    o.reconciles(1)
    assert o.said("Stalled") == (
        "True",
        "BatchTooLarge",
        f"attempt 1 ended with exit code 76 ({words}): a batch does not fit in memory, and what is planned cannot be "
        "made smaller. Raise executor.memory, or spark.sql.shuffle.partitions in sparkConf (shuffles of state do not "
        "follow it: their number is the checkpoint's), to get it through; lower batch.maxRecords, so that the next "
        "one is smaller",
    )
    shown = o.kubectl("get", "sparkapplication", "flights", "-o", "wide").splitlines()[-1].split()
    assert {"Failed", "BatchTooLarge"} <= set(shown)
    o.skew += 10_000
    o.reconciles(2)
    assert o.names() == ["flights-driver-1"], "nothing starts it but a person"
    o.apply(executor={"memory": "4g"})
    o.reconciles(3)
    assert o.names() == ["flights-driver-2"]


@pytest.mark.parametrize("text", ["{}", "not JSON", '{"schemaVersion": "99.0", "generation": 1}', None])
def test_a_control_document_that_is_edited_by_hand_is_put_right_at_the_next_reconcile(
    o: OnServer, text: str | None
) -> None:
    o.run()
    before = json.loads(o.pods()[0]["metadata"]["annotations"][CONTROL])
    value = f"{CONTROL}-" if text is None else f"{CONTROL}={text}"
    o.kubectl("annotate", "--overwrite", "pod", "flights-driver-1", value)
    o.reconciles(1)
    after = json.loads(o.pods()[0]["metadata"]["annotations"][CONTROL])
    assert after == {**before, "generation": before["generation"] + 1}
    assert (o.state(), o.names()) == ("Running", ["flights-driver-1"])


def test_a_status_that_is_edited_by_hand_is_put_right(o: OnServer) -> None:
    o.run()
    wrong = {"status": {"state": "Failed", "conditions": []}}
    o.kubectl(
        "patch",
        "sparkapplication",
        "flights",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps(wrong),
    )
    o.reconciles(3)
    assert (o.state(), o.said("Ready")[0], o.names()) == ("Running", "True", ["flights-driver-1"])


# The cluster ---------------------------------------------------------------------------------------


def test_a_write_of_somebody_else_in_between_makes_the_reconcile_again_and_nothing_else(o: OnServer) -> None:
    o.run()
    o.apply(queries=[query(checkpoint={"interval": "7s"})])
    o.hear()
    o.kubectl("annotate", "sparkapplication", "flights", "example.com/by=somebody")
    with pytest.raises(ApiConflict, match="the object has been modified"):
        o.reconcile_only()
    assert json.loads(o.pods()[0]["metadata"]["annotations"][CONTROL])["generation"] == 1
    o.reconciles(1)
    assert json.loads(o.pods()[0]["metadata"]["annotations"][CONTROL])["generation"] == 2
    assert o.said("Reconciling")[:2] == ("True", "ControlPending")


def test_an_api_server_that_is_gone_for_a_minute_costs_nothing(o: OnServer) -> None:
    o.run()
    (before,) = o.pods()
    o.apply(suspend=False, stop={"gracePeriod": "30s"})
    o.hear()
    o.plane.stop_api_server()
    try:
        with pytest.raises(ApiUnavailable, match=r"API server: PATCH .*flights/status: "):
            o.reconcile_only()
        o.skew += 60
        with pytest.raises(ApiUnavailable):
            o.reconcile_only()
    finally:
        o.plane.start_api_server()
    o.reconciles(3)
    (after,) = o.pods()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]
    assert o.state() == "Running"
    assert json.loads(after["metadata"]["annotations"][CONTROL])["gracePeriodSeconds"] == 30


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_a_clock_that_is_an_hour_off_starts_stops_and_restarts_drivers_as_ever(
    o: OnServer, skew: float
) -> None:
    o.skew = skew
    o.run(restart={"backoff": "1s", "maxBackoff": "1s"})
    assert (o.state(), o.said("Ready")[0]) == ("Running", "True")
    o.ends("flights-driver-1", 1)
    o.reconciles(1)
    assert o.state() == "BackingOff"
    o.skew += 2
    o.reconciles(3)
    assert o.names() == ["flights-driver-2"]
    o.runs("flights-driver-2")
    o.apply(restart={"backoff": "1s", "maxBackoff": "1s"}, suspend=True)
    o.reconciles(2)
    (leaving,) = o.pods()
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 130, "asked to stop in order, and not killed"
    o.ends("flights-driver-2", 0)
    o.reconciles(2)
    assert (o.state(), o.names()) == ("Suspended", [])


def test_an_image_that_cannot_be_pulled_stalls_whatever_the_clock_of_the_cluster_says(o: OnServer) -> None:
    o.skew = -3600.0
    o.apply()
    o.reconciles(2)
    o.waits("flights-driver-1", "ErrImagePull", "not found")
    o.reconciles(1)
    assert o.said("Stalled")[0] == "False"
    patience_is_over(o)
    assert o.said("Stalled")[:2] == ("True", "ImagePullFailed")


def test_a_pod_that_somebody_elses_finalizer_holds_is_named_with_it_and_goes_on_when_it_is_taken_off(
    o: OnServer,
) -> None:
    o.run(restart={"backoff": "1s", "maxBackoff": "1s"})
    hold = {"metadata": {"finalizers": ["example.com/audit"]}}
    o.kubectl("patch", "pod", "flights-driver-1", "--type=merge", "-p", json.dumps(hold))
    o.ends("flights-driver-1", 1)
    o.reconciles(1)
    o.skew += 10
    o.reconciles(4)
    assert o.names() == ["flights-driver-1"], "it is being deleted"
    status, reason, message = o.said("Ready")
    assert (status, reason) == ("False", "PodHeld")
    assert message.startswith(
        "pod flights-driver-1 has ended, and somebody's finalizer holds it (example.com/audit)"
    )
    assert o.said("Stalled")[0] == "False"
    patience_is_over(o)
    assert o.said("Stalled") == ("True", "PodHeld", message)
    command = message.partition("take it off yourself: kubectl ")[2]
    o.plane.kubectl(*shlex.split(command))
    o.reconciles(2)
    assert (o.names(), o.said("Stalled")[0]) == (["flights-driver-2"], "False")
