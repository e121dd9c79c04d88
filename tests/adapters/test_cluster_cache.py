"""What is known of the cluster, whatever order it is heard in."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headgate.adapters.kubernetes.cache import Cache
from headgate.adapters.kubernetes.client import Manifest
from headgate.key import Key

KEY = Key("team", "flights")


def application(version: int, *, uid: str = "a") -> Manifest:
    metadata = {
        "name": KEY.name,
        "namespace": KEY.namespace,
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-03-01T08:00:00Z",
        "managedFields": [{}],
    }
    return {"metadata": metadata, "spec": {}}


def pod(version: int) -> Manifest:
    return {
        "metadata": {
            "name": f"{KEY.name}-driver-1",
            "namespace": KEY.namespace,
            "uid": "p",
            "resourceVersion": str(version),
            "labels": {"headgate.dev/application": KEY.name, "headgate.dev/role": "driver"},
            "managedFields": [{}],
        },
        "spec": {"nodeName": "node0", "containers": [{"name": "driver"}]},
        "status": {"containerStatuses": [{"name": "driver", "state": {"running": {}}}]},
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


def test_another_content_of_the_same_version_is_news_and_the_same_one_is_none() -> None:
    """A store that was put back gives a version again."""
    cache = Cache()
    assert (cache.put_application(application(3)), cache.put_pod(pod(3))) == (KEY, KEY)
    assert (cache.put_application(application(3)), cache.put_pod(pod(3))) == (None, None)
    other, ended = {**application(3), "spec": {"suspend": True}}, {**pod(3), "status": {"phase": "Failed"}}
    assert (cache.put_application(other), cache.put_pod(ended)) == (KEY, KEY)
    found = cache.application(KEY)
    assert found is not None
    assert (found["spec"], cache.pods(KEY)[0]["status"]) == ({"suspend": True}, {"phase": "Failed"})


def test_what_is_gone_stays_gone_whatever_is_heard_late() -> None:
    cache = Cache()
    cache.put_application(application(1))
    cache.put_pod(pod(2))
    cache.drop_pod(pod(3))
    cache.drop_application(application(4))
    cache.put_pod(pod(2))
    cache.put_application(application(1))
    assert (cache.application(KEY), cache.pods(KEY), list(cache.keys())) == (None, (), [])


def test_a_pod_that_has_its_labels_again_is_there_again() -> None:
    """A watch by labels tells of a pod that lost them as of one that is gone."""
    cache = Cache()
    cache.put_pod(pod(2))
    cache.drop_pod(pod(3))
    assert cache.put_pod(pod(3)) is None
    assert cache.put_pod(pod(4)) == KEY
    assert [one["metadata"]["resourceVersion"] for one in cache.pods(KEY)] == ["4"]
    cache.drop_pod(pod(5))
    assert cache.put_pod(pod(4)) is None


def test_what_a_listing_or_an_answer_has_told_to_be_gone_is_gone_for_good() -> None:
    cache, gone = Cache(), pod(3)
    del gone["metadata"]["resourceVersion"]
    cache.put_pod(pod(2))
    cache.drop_pod(gone)
    cache.put_application(application(4))
    cache.drop_application(application(5))
    assert (cache.put_pod(pod(9)), cache.put_application(application(9))) == (None, None)


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


def test_of_annotations_only_our_own_are_kept() -> None:
    others = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 1000, "headgate.devious/x": "y"}
    ours = {"headgate.dev/paused": "delays/flights"}
    cache, shown, driver = Cache(), application(1), pod(2)
    for manifest in (shown, driver):
        manifest["metadata"]["annotations"] = {**others, **ours}
    cache.put_application(shown)
    cache.put_pod(driver)
    found = cache.application(KEY)
    assert found is not None
    assert [one["metadata"]["annotations"] for one in (found, *cache.pods(KEY))] == [ours, ours]
