"""Resources that cannot be acted on, and those that would harm another one."""

from __future__ import annotations

import asyncio
import copy

import pytest

from headgate.adapters.kubernetes.client import Kind, Manifest
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.api.crd import custom_resource_definition
from headgate.api.status import MOST_CHARACTERS
from headgate.controller.cluster import PUBLISHED_SECONDS
from headgate.controller.reconciliation import ReconcileOptions
from headgate.errors import ApiUnavailable
from headgate.key import Key
from support.looping import query, source
from support.operating import KEY, Operation

OTHER = Key("team", "other")
LOCATION = {"spark.sql.streaming.checkpointLocation": "s3a://lake/checkpoints/"}
CYCLE = {
    "queries": [query(sources=[source(name="a", after="b"), source(name="b", after="a")])],
}


def test_a_spec_that_only_the_models_refuse_is_stalled_and_leaves_the_driver_alone() -> None:
    o = Operation()
    o.run()
    uid, document = o.pod["metadata"]["uid"], o.document
    o.declare(**CYCLE, sparkConf={"spark.x": "1"})
    o.reconciles(3)
    assert (o.pod["metadata"]["uid"], o.document) == (uid, document)
    assert (o.condition("Stalled")["status"], o.condition("Stalled")["reason"]) == ("True", "InvalidSpec")
    assert set(o.refused) == {KEY}
    assert "after" in o.condition("Stalled")["message"]
    assert o.status()["observedGeneration"] == 2
    assert o.status()["memory"]["history"]["attempt"] == 1
    assert [told for told in o.cluster.told() if told[0] == "InvalidSpec"] == [("InvalidSpec", 1)]
    o.declare()
    o.reconciles(2)
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")
    assert o.pod["metadata"]["uid"] == uid


def of_a_later_version() -> Manifest:
    """What an API server says of a CRD with two settings more, both of which it fills in."""
    (version,) = custom_resource_definition()["spec"]["versions"]
    schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    spec = schema["properties"]["spec"]["properties"]
    spec["driver"]["properties"]["later"] = {"type": "string", "default": "1Gi"}
    of_queries = spec["queries"]["items"]["properties"]
    of_queries["newer"] = {"type": "object", "default": {}, "properties": {"mode": {"default": "Old"}}}
    kind = {"group": "headgate.dev", "version": "v1alpha1", "kind": "SparkApplication"}
    return {"components": {"schemas": {"app": {**schema, "x-kubernetes-group-version-kind": [kind]}}}}


def test_what_a_newer_crd_fills_in_refuses_no_resource_and_what_somebody_sets_does() -> None:
    """The CRD goes first in an upgrade, and may stay when the operator is rolled back."""
    o = Operation()
    o.run()
    uid = o.pod["metadata"]["uid"]
    o.cluster.description = of_a_later_version()
    filled_in = {"driver": {"memory": "1g", "later": "1Gi"}, "queries": [query(newer={"mode": "Old"})]}
    o.declare(**filled_in, ttlAfterFinished="1h")
    o.reconciles(2)
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")
    o.restart()
    o.reconciles(2)
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")
    o.declare(**{**filled_in, "queries": [query(newer={"mode": "New"})]})
    o.reconciles(2)
    stalled = o.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "InvalidSpec")
    assert "spec.queries[delays].newer" in stalled["message"]
    assert "later" not in stalled["message"]
    assert o.pod["metadata"]["uid"] == uid


def test_nobody_is_refused_while_it_is_not_known_what_a_newer_crd_fills_in() -> None:
    async def fails(_kind: Kind) -> Manifest:
        raise ApiUnavailable("the API server does not answer")

    o = Operation()
    o.run()
    o.cluster.description = of_a_later_version()
    told = o.cluster.describe
    o.cluster.describe = fails  # type: ignore[method-assign]
    o.declare(driver={"memory": "1g", "later": "1Gi"}, ttlAfterFinished="1h")
    o.reconciles(1)
    assert isinstance(o.failed, ApiUnavailable)
    assert o.condition("Stalled")["status"] == "False"
    o.cluster.describe = told  # type: ignore[method-assign]
    o.cluster.now += PUBLISHED_SECONDS
    o.reconciles(2)
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")


def test_whoever_comes_while_it_is_read_waits_for_the_same_answer() -> None:
    looks: list[Kind] = []

    async def describe(kind: Kind) -> Manifest:
        looks.append(kind)
        await asyncio.sleep(0)
        return of_a_later_version()

    async def both() -> None:
        await asyncio.gather(
            *(o.controller.reconcile(Key(KEY.namespace, name)) for name in ("flights", "others"))
        )

    o = Operation()
    o.cluster.describe = describe  # type: ignore[method-assign]
    for name in ("flights", "others"):
        o.declare(name, driver={"memory": "1g", "later": "1Gi"})
    o.deliver()
    asyncio.run(both())
    assert (len(looks), o.refused) == (1, [])


def test_a_spec_that_is_refused_is_said_once() -> None:
    o = Operation()
    o.declare(**CYCLE)
    o.reconciles(2)
    o.cluster.calls.clear()
    o.reconciles(3)
    assert o.cluster.calls == []
    assert o.names == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"main": {"file": "job.py"}}, "local:///opt/app/job.py"),
        ({"main": {"file": "s3a://lake/job.py"}}, "is not a file of the image"),
    ],
)
def test_a_script_that_is_not_in_the_image_is_refused_with_the_remedy(
    spec: dict[str, object], words: str
) -> None:
    o = Operation()
    o.declare(**spec)
    o.reconciles(2)
    assert words in o.condition("Stalled")["message"]


def test_an_application_without_an_image_says_where_to_name_it() -> None:
    o = Operation(options=ReconcileOptions(drivers=DriverDefaults(image=None)))
    o.declare()
    o.reconciles(2)
    assert "spec.image" in o.condition("Stalled")["message"]


def test_a_driver_that_ends_under_a_spec_that_is_refused_is_told_once() -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE)
    o.reconciles(2)
    o.cluster.pod_ends("flights-driver-1", 1)
    o.reconciles(5)
    assert (o.state(), o.condition("Ready")["reason"]) == ("Failed", "InvalidSpec")
    for kind in ("Ready", "Stalled"):
        assert "its driver has ended (attempt 1 ended with exit code 1)" in o.condition(kind)["message"]
        assert "after" in o.condition(kind)["message"]
    assert o.cluster.told()[-1] == ("InvalidSpec", 1)
    assert len([reason for reason, _ in o.cluster.told() if reason == "InvalidSpec"]) == 2
    o.restart()
    o.cluster.calls.clear()
    o.reconciles(3)
    assert o.cluster.calls == []
    o.declare()
    o.reconciles(2)
    assert o.state() == "BackingOff"
    assert o.status()["memory"]["history"]["failures"] == 1


def test_a_driver_that_disappears_under_a_spec_that_is_refused_is_told() -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE)
    o.reconciles(2)
    o.cluster.vanish("flights-driver-1")
    o.reconciles(2)
    assert o.state() == "Failed"
    assert "its driver has ended (attempt 1 disappeared)" in o.condition("Ready")["message"]


def test_a_driver_that_starts_under_a_spec_that_is_refused_is_running_in_the_end() -> None:
    o = Operation()
    o.declare()
    o.reconciles(2)
    o.declare(**CYCLE)
    o.reconciles(2)
    assert o.state() == "Starting"
    o.cluster.pod_runs("flights-driver-1")
    o.reconciles(2)
    assert o.state() == "Running"
    assert [reason for reason, _ in o.cluster.told()].count("InvalidSpec") == 1


def test_a_spec_that_is_refused_is_not_told_again_when_it_is_deleted() -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE)
    o.reconciles(2)
    o.cluster.remove(KEY)
    o.reconciles(2)
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(4)
    assert o.names == []
    assert [told for told in o.cluster.told() if told[0] == "InvalidSpec"] == [("InvalidSpec", 1)]


def test_a_refusal_that_is_longer_than_a_condition_is_told_once_whatever_operator_looks() -> None:
    o = Operation()
    o.run()
    names = [f"{letter * 200}-{n}" for n, letter in enumerate("abcdefgh")]
    o.declare(queries=[query(sources=[source(name=name, after=name) for name in names])])
    o.reconciles(2)
    assert len(o.condition("Stalled")["message"]) == MOST_CHARACTERS
    o.restart()
    o.cluster.remove(KEY)
    o.reconciles(2)
    assert [told for told in o.cluster.told() if told[0] == "InvalidSpec"] == [("InvalidSpec", 1)]


def test_another_refusal_is_told_although_the_spec_is_suspended_meanwhile() -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE)
    o.reconciles(2)
    o.declare(main={"file": "job.py"}, suspend=True)
    o.reconciles(2)
    o.restart()
    o.declare(main={"file": "job.py"}, suspend=True, sparkConf={"spark.x": "1"})
    o.reconciles(2)
    assert [told for told in o.cluster.told() if told[0] == "InvalidSpec"] == [("InvalidSpec", 1)] * 2


def test_a_suspended_spec_that_nobody_has_edited_is_not_told_to_be_refused() -> None:
    o = Operation()
    o.run()
    o.declare(suspend=True)
    o.reconciles(2)
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(4)
    assert o.state() == "Suspended"
    o.options = ReconcileOptions(drivers=DriverDefaults(image=None))
    o.restart()
    o.reconciles(2)
    assert "InvalidSpec" not in [reason for reason, _ in o.cluster.told()]
    o.declare(suspend=True, sparkConf={"spark.x": "1"})
    o.reconciles(2)
    assert [told for told in o.cluster.told() if told[0] == "InvalidSpec"] == [("InvalidSpec", 1)]


def test_a_spec_that_is_refused_can_be_suspended() -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE, suspend=True)
    o.reconciles(2)
    assert "deletionTimestamp" in o.pod["metadata"]
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(4)
    assert o.state() == "Suspended"
    assert [told for told in o.cluster.told() if told[0] == "InvalidSpec"] == [("InvalidSpec", 1)]
    o.declare(suspend=False)
    o.reconciles(3)
    assert o.names == ["flights-driver-2"]


@pytest.mark.parametrize(
    ("stop", "grace_seconds"),
    [({"gracePeriod": "5m"}, 310), ({"gracePeriod": "soon"}, 130), ({"gracePeriod": 5}, 130), ([], 130)],
)
def test_a_spec_that_is_refused_keeps_its_grace_period_where_that_can_be_read(
    stop: object, grace_seconds: int
) -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE, stop=stop)
    o.reconciles(2)
    o.cluster.remove(KEY)
    o.reconciles(2)
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == grace_seconds


def test_a_refused_application_is_deleted_all_the_same() -> None:
    o = Operation()
    o.run()
    o.declare(**CYCLE)
    o.reconciles(2)
    o.cluster.remove(KEY)
    o.reconciles(2)
    assert o.state() == "Stopping"
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    assert ("sparkapplications", *KEY) not in o.cluster.objects


def test_of_two_applications_on_one_checkpoint_the_later_one_does_not_start() -> None:
    o = Operation()
    o.declare(sparkConf=LOCATION)
    o.cluster.now += 5
    o.declare("other", sparkConf=LOCATION)
    o.reconcile(OTHER)
    o.reconciles(2)
    o.cluster.pod_runs("flights-driver-1")
    assert o.names == ["flights-driver-1"]
    assert (o.state(OTHER), o.condition("Stalled", OTHER)["reason"]) == ("Pending", "CheckpointInUse")
    assert "team/flights" in o.condition("Stalled", OTHER)["message"]
    assert o.condition("Stalled")["status"] == "False"
    o.cluster.remove(KEY)
    o.reconciles(2)
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    o.reconciles(2, OTHER)
    assert o.names == ["other-driver-1"]


def test_a_driver_that_lives_has_its_checkpoint_whoever_was_first() -> None:
    o = Operation()
    o.declare()
    o.cluster.now += 5
    o.declare("other", sparkConf=LOCATION)
    o.reconciles(2, OTHER)
    o.cluster.pod_runs("other-driver-1")
    o.reconcile(OTHER)
    o.declare(sparkConf=LOCATION)
    o.reconciles(3)
    assert o.names == ["other-driver-1"]
    assert "other-driver-1" in o.condition("Stalled")["message"]
    o.cluster.pod_ends("other-driver-1", 1)
    o.reconciles(2)
    assert o.names == ["other-driver-1", "flights-driver-1"]


def test_properties_that_are_too_long_for_the_environment_of_a_driver_are_refused_with_the_remedy() -> None:
    o = Operation()
    o.declare(sparkConf={f"spark.x{number}": "y" * 8000 for number in range(13)})
    o.reconciles(2)
    assert o.names == []
    assert (o.condition("Stalled")["reason"], o.condition("Stalled")["message"]) == (
        "InvalidSpec",
        "spec.sparkConf: has 104186 bytes with duringBacklog.sparkConf, and a driver takes 100000 at most; put what "
        "is long into files of the image",
    )
    o.declare(sparkConf={"spark.x": "y"})
    o.reconciles(2)
    assert o.names == ["flights-driver-1"]
