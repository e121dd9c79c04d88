"""What is known of the cluster, whatever order it is heard in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.adapters.kubernetes.cache import Cache
from headgate.adapters.kubernetes.claims import Claims, located
from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.key import Key
from headgate.decision.driver import StepReason

KEY, OTHER = Key("team", "flights"), Key("team", "other")


def application(version: int, *, uid: str = "a", key: Key = KEY, location: str | None = None) -> Manifest:
    conf = {} if location is None else {"spark.sql.streaming.checkpointLocation": location}
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": f"2026-03-01T08:00:0{len(uid)}Z",
        "managedFields": [{}],
    }
    return {"metadata": metadata, "spec": {"sparkConf": conf}}


def pod(version: int, *, uid: str = "p", key: Key = KEY, location: str = "", ended: bool = False) -> Manifest:
    labels = {"headgate.dev/application": key.name, "headgate.dev/role": "driver"}
    state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    return {
        "metadata": {
            "name": f"{key.name}-driver-1",
            "namespace": key.namespace,
            "uid": uid,
            "resourceVersion": str(version),
            "labels": labels,
            "annotations": {"headgate.dev/checkpoint-location": location} if location else {},
            "managedFields": [{}],
        },
        "spec": {"nodeName": "node0", "containers": [{"name": "driver"}]},
        "status": {"containerStatuses": [{"name": "driver", "state": state}]},
    }


@given(st.permutations([1, 2, 3, 4]))
def test_the_newest_version_wins_in_any_order(order: Sequence[int]) -> None:
    cache = Cache()
    for version in order:
        cache.put_application(application(version))
        cache.put_pod(pod(version))
    found = cache.application(KEY)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "4"
    assert [p["metadata"]["resourceVersion"] for p in cache.pods(KEY)] == ["4"]


def test_what_is_gone_stays_gone_whatever_is_heard_late() -> None:
    cache = Cache()
    cache.put_application(application(1))
    cache.put_pod(pod(2))
    cache.drop_pod(pod(3))
    cache.drop_application(application(4))
    cache.put_pod(pod(2))
    cache.put_application(application(1))
    assert (cache.application(KEY), cache.pods(KEY), list(cache.keys())) == (None, (), [])


def test_a_new_object_of_the_same_name_is_another_one() -> None:
    cache = Cache()
    cache.put_application(application(1, uid="a"))
    cache.put_application(application(5, uid="bb"))
    cache.drop_application(application(4, uid="a"))
    found = cache.application(KEY)
    assert found is not None
    assert found["metadata"]["uid"] == "bb"


def test_pods_of_another_kind_are_nobodys() -> None:
    cache = Cache()
    executor = pod(1)
    executor["metadata"]["labels"]["headgate.dev/role"] = "executor"
    stranger = pod(1)
    del stranger["metadata"]["labels"]
    assert [cache.put_pod(executor), cache.put_pod(stranger), cache.drop_pod(stranger)] == [None] * 3
    assert list(cache.keys()) == []


def test_only_what_is_read_is_kept() -> None:
    cache = Cache()
    cache.put_application(application(1))
    cache.put_pod(pod(1))
    (kept,) = cache.pods(KEY)
    assert kept["spec"] == {"nodeName": "node0"}
    assert "managedFields" not in kept["metadata"]
    found = cache.application(KEY)
    assert found is not None
    assert "managedFields" not in found["metadata"]


# Claims -------------------------------------------------------------------------------------------------

LOCATION = "s3a://lake/checkpoints"


def claims(*manifests: Manifest) -> Claims:
    claims = Claims()
    for manifest in manifests:
        claims.observe(manifest) if "status" in manifest else claims.declare(manifest)
    return claims


def words(claims: Claims, key: Key) -> str | None:
    obstacle = claims.against(key, 0.0)
    if obstacle is None:
        return None
    assert (obstacle.reason, obstacle.forbids_start) == (StepReason.CHECKPOINT_IN_USE, True)
    return obstacle.message


FIRST = application(1, uid="a", location=LOCATION)
SECOND = application(2, uid="bb", key=OTHER, location=LOCATION + "/")


def test_the_application_that_was_created_first_has_the_location() -> None:
    found = claims(SECOND, FIRST)
    assert words(found, KEY) is None
    assert "application team/flights was created earlier" in (words(found, OTHER) or "")


def test_of_two_created_in_the_same_second_the_uid_decides() -> None:
    twin = application(2, uid="b", key=OTHER, location=LOCATION)
    found = claims(twin, FIRST)
    assert [words(found, key) is None for key in (KEY, OTHER)] == [True, False]


@pytest.mark.parametrize("ended", [False, True])
def test_a_driver_has_the_location_until_it_has_ended(ended: bool) -> None:
    found = claims(
        FIRST, pod(3, key=OTHER, location=LOCATION), pod(4, key=OTHER, location=LOCATION, ended=ended)
    )
    assert (words(found, KEY) is None) is ended


def test_a_driver_that_is_being_created_has_the_location_already() -> None:
    found = claims(FIRST)
    with found.creating(pod(1, key=OTHER, location=LOCATION)):
        assert words(found, KEY) is not None
    assert words(found, KEY) is None


def test_the_own_driver_is_in_nobodys_way() -> None:
    assert words(claims(FIRST, pod(3, location=LOCATION)), KEY) is None


def test_what_is_withdrawn_or_gone_is_free_again() -> None:
    found = claims(FIRST, SECOND, pod(3, location=LOCATION))
    found.withdraw(KEY)
    found.forget(pod(3, location=LOCATION))
    assert words(found, OTHER) is None
    found.declare(application(9, uid="a"))
    assert words(found, OTHER) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("s3a://b/x", "n"), ("s3://b/x/", "m"), True),
        (("hdfs://h/x", "n"), ("hdfs://h/y", "n"), False),
        (("/data/x", "n"), ("file:///data/x", "n"), True),
        (("/data/x", "n"), ("/data/x", "m"), False),
        (("file:/data/x", "n"), ("/data/x/", "n"), True),
    ],
)
def test_locations_are_compared_by_where_they_lead(
    one: tuple[str, str], other: tuple[str, str], same: bool
) -> None:
    assert (located(*one) == located(*other)) is same


@pytest.mark.parametrize("nothing", [None, ""])
def test_no_location_is_no_claim(nothing: Any) -> None:
    assert located(nothing, "n") is None
