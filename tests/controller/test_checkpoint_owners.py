"""Who may start on which checkpoint location, and which locations are one."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.adapters.kubernetes.checkpoint_locations import checkpoint_locations
from headgate.adapters.kubernetes.client import Manifest
from headgate.controller.checkpoint_owners import CheckpointOwners
from headgate.decision.driver import StepReason
from headgate.key import Key

KEY, OTHER, FOREIGN = Key("team", "flights"), Key("team", "other"), Key("mallory", "other")
PROPERTY = "spark.sql.streaming.checkpointLocation"
VOLUMES = "spark.kubernetes.driver.volumes"
FOLDER = "s3a://lake/checkpoints"
LOCATION = "s3://lake/checkpoints/delays"


def application(
    key: Key = KEY,
    *,
    uid: str = "a",
    folder: str | None = FOLDER,
    queries: tuple[str, ...] = ("delays",),
    **conf: str,
) -> Manifest:
    """One that is the older, the shorter its uid is."""
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "uid": uid,
        "creationTimestamp": f"2026-03-01T08:00:0{len(uid)}Z",
    }
    set_there = conf if folder is None else {PROPERTY: folder, **conf}
    return {
        "metadata": metadata,
        "spec": {"sparkConf": set_there, "queries": [{"name": name} for name in queries]},
    }


def pod(key: Key = KEY, location: str = LOCATION, *, ended: bool = False, **metadata: Any) -> Manifest:
    owner = {"apiVersion": "headgate.dev/v1alpha1", "kind": "SparkApplication", "name": key.name, "uid": "u"}
    return {
        "metadata": {
            "name": f"{key.name}-driver-1",
            "namespace": key.namespace,
            "uid": f"pod of {key}",
            "labels": {"headgate.dev/application": key.name, "headgate.dev/role": "driver"},
            "annotations": {"headgate.dev/checkpoint-locations": location},
            "ownerReferences": [{**owner, "controller": True}],
            **metadata,
        },
        "status": {
            "containerStatuses": [{"name": "driver", "state": {"terminated" if ended else "running": {}}}]
        },
    }


def taken_in(*manifests: Manifest) -> CheckpointOwners:
    owners = CheckpointOwners()
    for manifest in manifests:
        owners.observe(manifest) if "status" in manifest else owners.declare(manifest)
    return owners


def words(owners: CheckpointOwners, key: Key) -> str | None:
    obstacle = owners.against(key, 0.0)
    if obstacle is None:
        return None
    assert (obstacle.reason, obstacle.forbids_start) == (StepReason.CHECKPOINT_IN_USE, True)
    return obstacle.message


FIRST = application()
SECOND = application(OTHER, uid="bb", folder=FOLDER + "/")


def test_the_application_that_was_created_first_has_the_location() -> None:
    found = taken_in(SECOND, FIRST)
    assert words(found, KEY) is None
    assert words(found, OTHER) == (
        "checkpoint location s3://lake/checkpoints/delays: application team/flights was created earlier and names it "
        "too; delete that one, or name another location in sparkConf; leave it out there if the job names its own"
    )


def test_of_two_created_in_the_same_second_the_uid_decides() -> None:
    twin = application(OTHER, uid="b")
    found = taken_in(twin, FIRST)
    assert [words(found, key) is None for key in (KEY, OTHER)] == [True, False]


@pytest.mark.parametrize("ended", [False, True])
def test_a_driver_has_the_location_until_it_has_ended(ended: bool) -> None:
    found = taken_in(FIRST, pod(OTHER), pod(OTHER, ended=ended))
    assert (words(found, KEY) is None) is ended


def test_a_pod_has_as_many_locations_as_a_resource_has_queries() -> None:
    """Whoever may make pods writes 256 KiB into this annotation."""
    others = "\n".join(f"s3://lake/{number}" for number in range(100_000))
    assert words(taken_in(FIRST, pod(OTHER, f"{LOCATION}\n{others}")), KEY) is not None
    assert words(taken_in(FIRST, pod(OTHER, f"{others}\n{LOCATION}")), KEY) is None


def test_a_driver_that_is_being_created_has_the_location_already() -> None:
    found = taken_in(FIRST)
    with found.creating(pod(OTHER)):
        assert words(found, KEY) is not None
    assert words(found, KEY) is None


def test_the_own_driver_is_in_nobodys_way() -> None:
    assert words(taken_in(FIRST, pod()), KEY) is None


def test_what_is_withdrawn_or_gone_is_free_again() -> None:
    found = taken_in(FIRST, SECOND, pod())
    found.withdraw(KEY)
    found.forget(pod())
    assert words(found, OTHER) is None
    found.declare(application(folder=None))
    assert words(found, OTHER) is None


def test_a_shared_folder_is_no_shared_checkpoint() -> None:
    totals = application(OTHER, uid="bb", queries=("totals", "counts"))
    assert words(taken_in(FIRST, totals, pod()), OTHER) is None


def test_one_query_of_several_that_has_the_same_checkpoint_is_enough() -> None:
    both = application(OTHER, uid="bb", queries=("totals", "delays"))
    assert LOCATION in (words(taken_in(FIRST, both), OTHER) or "")
    several = pod(OTHER, f"s3://lake/checkpoints/totals\n{LOCATION}")
    assert "driver other-driver-1" in (words(taken_in(FIRST, several), KEY) or "")


def test_who_declares_no_query_is_not_known_to_write_anywhere() -> None:
    nobody = application(OTHER, uid="bb", queries=())
    found = taken_in(FIRST, nobody)
    assert (words(found, KEY), words(found, OTHER)) == (None, None)


@pytest.mark.parametrize(
    "intruder", [application(FOREIGN, uid=""), pod(FOREIGN)], ids=["application", "driver"]
)
def test_nobody_is_kept_from_starting_by_another_namespace_nor_told_of_it(intruder: Manifest) -> None:
    found = taken_in(FIRST, intruder)
    assert (words(found, KEY), words(found, FOREIGN)) == (None, None)


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u", "controller": True}],
        [
            {
                "apiVersion": "elsewhere/v1",
                "kind": "SparkApplication",
                "name": "other",
                "uid": "u",
                "controller": True,
            }
        ],
        [{"apiVersion": "headgate.dev/v1alpha1", "kind": "SparkApplication", "name": "other", "uid": "u"}],
    ],
    ids=["none", "a ConfigMap", "another group", "no controller"],
)
def test_a_pod_that_no_application_controls_keeps_nobody_from_starting(owners: list[Manifest]) -> None:
    assert words(taken_in(FIRST, pod(OTHER, ownerReferences=owners)), KEY) is None


def test_a_pod_is_that_of_its_owner_whatever_its_labels_say() -> None:
    labels = {"headgate.dev/application": "flights", "headgate.dev/role": "driver"}
    assert "application team/other" in (words(taken_in(FIRST, pod(OTHER, labels=labels)), KEY) or "")


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {"sparkConf": []},
        {"sparkConf": {PROPERTY: 7}},
        {"sparkConf": {PROPERTY: FOLDER}, "queries": [1, {}]},
    ],
)
def test_what_is_malformed_claims_nothing(spec: Any) -> None:
    assert words(taken_in(FIRST, {**SECOND, "spec": spec}), OTHER) is None


def at(folder: str, **conf: str) -> tuple[str, ...]:
    return checkpoint_locations({PROPERTY: folder, **conf}, ["delays"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3a://b/x", "s3://b/x/"),
        ("s3a://b/x", "s3a://b//x"),
        ("s3a://b/x", "s3a://b/./y/../x"),
        ("s3a://b/x", "S3A://b/x"),
        ("s3a://b/x", " s3a://b/x/ "),
        ("hdfs://nn/x", "hdfs://NN:8020/x"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfs://c@a.dfs.core.windows.net/x"),
        ("gs://b", "gs://b/"),
        ("s3a://AKID:word@b/x", "s3a://b/x"),
        ("hdfs://[::1]:9000/x", "hdfs://[::1]:9000//x"),
    ],
)
def test_two_names_of_one_place_are_one(one: str, other: str) -> None:
    assert at(one) == at(other) != ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3a://b/x", "s3a://b/X"),
        ("s3a://b/x", "s3a://c/x"),
        ("s3a://b/x", "gs://b/x"),
        ("hdfs://nn/x", "hdfs://nn:9000/x"),
        ("hdfs://nn/x", "hdfs://nn/y"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://d@a.dfs.core.windows.net/x"),
    ],
)
def test_two_places_are_two(one: str, other: str) -> None:
    assert at(one) != at(other)


@pytest.mark.parametrize("login", ["AKID:word", "AKID:wo@rd", "AKID:wo/rd", "word"])
def test_a_login_in_a_location_is_in_nothing_that_is_written_down(login: str) -> None:
    assert all("rd" not in place and "AKID" not in place for place in at(f"s3a://{login}@bucket/x"))


def test_buckets_of_one_name_in_two_stores_are_two() -> None:
    endpoint = "spark.hadoop.fs.s3a.endpoint"
    of_bucket = "spark.hadoop.fs.s3a.bucket.b.endpoint"
    one = at("s3a://b/x", **{endpoint: "http://minio:9000"})
    assert one == at("s3a://b/x", **{of_bucket: "http://minio:9000/", endpoint: "http://other:9000"})
    assert one != at("s3a://b/x", **{endpoint: "http://other:9000"})


def test_a_path_without_a_scheme_is_in_the_default_file_system_if_that_is_known() -> None:
    assert at("/x", **{"spark.hadoop.fs.defaultFS": "hdfs://nn:8020"}) == at("hdfs://nn/x")


@pytest.mark.parametrize("folder", ["", "  ", "x", "/x", "file:///x", "local:///x", "hdfs:///x", "file:x"])
def test_what_is_on_the_pods_own_disk_or_is_not_known_is_no_claim(folder: str) -> None:
    assert at(folder) == ()
    assert checkpoint_locations({}, ["delays"]) == ()


def claim(name: str, path: str = "/state", **more: str) -> dict[str, str]:
    beginning = f"{VOLUMES}.persistentVolumeClaim.state"
    return {f"{beginning}.mount.path": path, f"{beginning}.options.claimName": name} | {
        f"{beginning}.{key}": value for key, value in more.items()
    }


def test_a_volume_is_the_place_and_not_the_path_at_which_it_is_mounted() -> None:
    assert at("/state/x", **claim("one")) != at("/state/x", **claim("two"))
    assert at("/state/x", **claim("one")) == at("file:///mnt/x/", **claim("one", "/mnt/")) != ()
    assert at("/state/x", **claim("one")) == at("/mnt", **claim("one", "/mnt", **{"mount.subPath": "x"}))
    assert at("/states/x", **claim("one")) == ()


def test_a_volume_that_spark_makes_for_the_pod_is_nobody_elses() -> None:
    assert at("/state/x", **claim("OnDemand")) == ()
    beginning = f"{VOLUMES}.emptyDir.scratch"
    assert (
        at("/state/x", **{f"{beginning}.mount.path": "/state", f"{beginning}.options.sizeLimit": "1Gi"}) == ()
    )


def test_the_innermost_volume_counts() -> None:
    inner = f"{VOLUMES}.nfs.share"
    nfs = {
        f"{inner}.mount.path": "/state/shared",
        f"{inner}.options.server": "NAS",
        f"{inner}.options.path": "/export",
    }
    assert at("/state/shared/x", **claim("one"), **nfs) == ("nfs nas:/export/x/delays",)
    assert at("/state/other", **claim("one"), **nfs) == ("volume claim one/other/delays",)
