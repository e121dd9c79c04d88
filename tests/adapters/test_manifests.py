"""The objects that make a driver, against files that a person can read. `GOLDEN=write pytest …` writes them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.manifests import DriverStart, Owner, driver_pod
from headgate.adapters.kubernetes.properties import (
    DriverDefaults,
    driver_memory_mib,
    memory_mib,
    properties_text,
    spark_properties,
)
from headgate.factory.cluster import driver_defaults
from headgate.key import Key
from headgate.reconcile.launch import launch_of
from headgate.settings import Settings
from headgate_contract import ControlDocument, QueryControl
from support.looping import application

GOLDEN = Path(__file__).parents[1] / "data" / "drivers"
JOB = {"file": "local:///opt/app/flights.py", "arguments": ["--out", "s3a://lake/$(HOME)"]}

MARKS = {"labels": {"team": "air"}, "annotations": {"example.com/scrape": "yes"}}
PLACED: dict[str, Any] = {
    "tolerations": [{"key": "pool", "operator": "Equal", "value": "spark", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["spark"]}]}
                ]
            }
        }
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"headgate.dev/application": "flights"}},
        }
    ],
    "priorityClassName": "streams",
    "nodeSelector": {"disk": "ssd"},
    "securityContext": {"supplementalGroups": [2000]},
}
PROXY = {
    "name": "proxy",
    "image": "example/proxy:1",
    "restartPolicy": "Always",
    "resources": {"limits": {"cpu": 1, "memory": "64Mi"}},
    "securityContext": {"allowPrivilegeEscalation": False},
    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
}
DRIVER_PARTS: dict[str, Any] = {
    "initContainers": [PROXY],
    "containers": [
        {
            "name": "driver",
            "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "kafka", "key": "token"}}}],
            "envFrom": [{"secretRef": {"name": "kafka"}}],
            "volumeMounts": [{"name": "tables", "mountPath": "/etc/tables", "readOnly": True}],
            "securityContext": {"runAsGroup": 2000},
        }
    ],
    "volumes": [
        {
            "name": "tables",
            "projected": {
                "sources": [{"configMap": {"name": "tables"}}, {"secret": {"name": "kafka"}}],
            },
        }
    ],
}
EXECUTOR_PARTS: dict[str, Any] = {
    "containers": [
        {
            "name": "executor",
            "volumeMounts": [{"name": "spark-local-dir-1", "mountPath": "/var/data/spark"}],
        }
    ],
    "volumes": [
        {
            "name": "spark-local-dir-1",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "100Gi"}},
                    }
                }
            },
        }
    ],
}

CASES: dict[str, dict[str, Any]] = {
    "plain": {"main": JOB},
    "sized": {
        "main": JOB,
        "driver": {"cores": 2, "memory": "4g"},
        "executor": {"instances": 3, "cores": 4, "memory": "8g"},
        "stop": {"gracePeriod": "5m"},
        "sparkConf": {
            "spark.driver.memoryOverhead": "2g",
            "spark.kubernetes.driver.limit.cores": "3",
            "spark.sql.streaming.checkpointLocation": "s3a://lake/checkpoints",
        },
    },
    "customized": {
        "main": JOB,
        "sparkConf": {
            "spark.kubernetes.container.image.pullPolicy": "Always",
            "spark.kubernetes.container.image.pullSecrets": "registry, other",
            "spark.kubernetes.driver.annotation.team": "air",
            "spark.kubernetes.driver.annotation.headgate.dev/control": "not theirs",
            "spark.kubernetes.driver.label.cost-centre": "17",
            "spark.kubernetes.driver.secretKeyRef.KAFKA_PASSWORD": "kafka:password",
            "spark.kubernetes.driver.secrets.certificates": "/etc/certificates",
            "spark.kubernetes.driver.volumes.persistentVolumeClaim.state.mount.path": "/state",
            "spark.kubernetes.driver.volumes.persistentVolumeClaim.state.mount.readOnly": "false",
            "spark.kubernetes.driver.volumes.persistentVolumeClaim.state.options.claimName": "flights",
            "spark.kubernetes.driverEnv.STAGE": "production",
            "spark.kubernetes.node.selector.disk": "ssd",
            "spark.kubernetes.scheduler.name": "volcano",
        },
    },
    "templated": {
        "main": JOB,
        "driver": {"podTemplate": {"metadata": MARKS, "spec": PLACED | DRIVER_PARTS}},
        "executor": {"podTemplate": {"metadata": MARKS, "spec": PLACED | EXECUTOR_PARTS}},
    },
    "local": {"main": JOB, "sparkConf": {"spark.master": "local[2]"}},
}


def start(**spec: Any) -> DriverStart:
    return DriverStart(
        owner=Owner(key=Key("team", "flights"), uid="1234"),
        launch=launch_of(application(**spec), in_backlog=False),
        attempt=7,
        document=ControlDocument(
            generation=3,
            application="flights",
            grace_period_seconds=300.0 if "stop" in spec else 120.0,
            queries={"delays": QueryControl(interval_seconds=5.0)},
        ),
        defaults=DriverDefaults(image="example/spark:4.3.0", service_account="headgate-driver"),
    )


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Readable.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


@pytest.mark.parametrize("case", CASES)
def test_the_objects_of_a_driver_are_as_they_were(case: str) -> None:
    text = yaml.dump(driver_pod(start(**CASES[case])), Dumper=_Readable, sort_keys=False, width=120)
    golden = GOLDEN / f"{case}.yaml"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()


def properties_of(**spec: Any) -> dict[str, str]:
    launch = start(main=JOB, **spec).launch
    return spark_properties(launch, 7, "team", DriverDefaults(), grace_seconds=130)


def container(pod: Manifest) -> Manifest:
    found: Manifest = pod["spec"]["containers"][0]
    return found


def environment(pod: Manifest) -> dict[str, str]:
    """Return what is written into the environment of the driver, as the kubelet passes it on."""
    return {one["name"]: one["value"].replace("$$", "$") for one in container(pod)["env"] if "value" in one}


def test_what_is_handed_over_is_in_the_environment_alone_and_as_it_was_set() -> None:
    pod = driver_pod(start(main=JOB, sparkConf={"spark.hadoop.fs.s3a.secret.key": "a$(HOME)$$b"}))
    assert "\nspark.hadoop.fs.s3a.secret.key=a$(HOME)$$b\n" in environment(pod)["HEADGATE_SPARK_PROPERTIES"]
    assert "s3a" not in json.dumps(pod["metadata"]), "log collectors copy annotations and labels"


def test_what_a_job_sets_in_its_environment_is_not_handed_over_in_place_of_ours() -> None:
    pod = driver_pod(
        start(main=JOB, sparkConf={"spark.kubernetes.driverEnv.HEADGATE_SPARK_PROPERTIES": "theirs"})
    )
    assert environment(pod)["HEADGATE_SPARK_PROPERTIES"].startswith("spark.app.name=flights\n")


@pytest.mark.parametrize("case", CASES)
def test_a_driver_is_as_the_restricted_standard_asks_for(case: str) -> None:
    """Pod Security Standards, profile "restricted"."""
    built = driver_pod(start(**CASES[case]))
    pods = [built["spec"]]
    if (template := environment(built).get("HEADGATE_EXECUTOR_TEMPLATE")) is not None:
        pods.append(json.loads(template)["spec"])
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for one in pod["containers"]:
            assert one["securityContext"]["allowPrivilegeEscalation"] is False
            assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert one["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_namespace_that_gives_its_own_users_can_have_its_way() -> None:
    any_user = replace(start(main=JOB), defaults=DriverDefaults(image="x", run_as_user=None))
    assert not {"runAsUser", "fsGroup"} & driver_pod(any_user)["spec"]["securityContext"].keys()


def test_arguments_reach_the_job_as_they_are() -> None:
    """The kubelet turns `$$` into `$`, and would fill in `$(HOME)`."""
    words = container(driver_pod(start(main=JOB)))["args"]
    assert words[-3:] == ["/opt/app/flights.py", "--out", "s3a://lake/$$(HOME)"]
    assert "spark.driver.host=$(POD_IP)" in words


def test_what_the_resource_says_twice_in_properties_is_what_the_pod_gets() -> None:
    launch = start(main=JOB, sparkConf={"spark.driver.memory": "3g", "spark.driver.cores": "4"}).launch
    pod = driver_pod(start(main=JOB, sparkConf={"spark.driver.memory": "3g", "spark.driver.cores": "4"}))
    assert container(pod)["resources"]["requests"]["cpu"] == "4"
    assert driver_memory_mib(launch) == 3072 + 1228


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("1g", 1024),
        ("512m", 512),
        ("2T", 2 * 1024 * 1024),
        ("2048k", 2),
        ("300", 300),
        ("1gb", 1024),
        ("?", 0),
    ],
)
def test_memory_is_read_in_sparks_own_form(text: str, mib: int) -> None:
    assert memory_mib(text) == mib


@pytest.mark.parametrize(
    ("conf", "mib"),
    [
        ({}, 1024 + 409),
        ({"spark.driver.memoryOverhead": "100m"}, 1124),
        ({"spark.driver.memoryOverheadFactor": "0.1"}, 1024 + 384),
        ({"spark.driver.memoryOverheadFactor": "1"}, 2048),
        ({"spark.driver.memoryOverheadFactor": "much"}, 1024 + 409),
        ({"spark.driver.memoryOverheadFactor": "0.1", "spark.driver.minMemoryOverhead": "1m"}, 1024 + 102),
    ],
)
def test_a_driver_gets_its_heap_and_the_overhead_of_spark(conf: dict[str, str], mib: int) -> None:
    assert driver_memory_mib(start(main=JOB, sparkConf=conf).launch) == mib


def test_properties_are_written_as_java_reads_them() -> None:
    given = {"b": " x\\y", "a b": "1=2#3", "c:d": "line\nnext\t"}
    assert properties_text(given) == "a\\ b=1=2#3\nb=\\ x\\\\y\nc\\:d=line\\nnext\\t\n"


def test_a_name_of_a_property_is_escaped_once() -> None:
    assert properties_text({" a\\b\n": ""}) == "\\ a\\\\b\\n=\n"


@pytest.mark.parametrize(
    ("claim", "owns"),
    [
        ({"options.claimName": "delays"}, "false"),
        ({"options.claimName": "OnDemand", "options.sizeLimit": "1Gi"}, None),
        ({"options.claimName": "scratch-SPARK_EXECUTOR_ID", "options.sizeLimit": "1Gi"}, None),
    ],
    ids=["there already", "on demand", "of a size"],
)
def test_a_driver_looks_after_volume_claims_only_where_it_makes_them(
    claim: dict[str, str], owns: str | None
) -> None:
    conf = {f"spark.kubernetes.executor.volumes.persistentVolumeClaim.a.{key}": claim[key] for key in claim}
    properties = properties_of(sparkConf=conf)
    assert properties.get("spark.kubernetes.driver.ownPersistentVolumeClaim") == owns


def test_a_volume_that_belongs_to_root_is_given_to_the_drivers_group() -> None:
    security = driver_pod(start(main=JOB))["spec"]["securityContext"]
    assert security["fsGroup"] == security["runAsUser"]


def test_the_properties_of_the_resource_win_over_defaults_and_lose_to_what_must_be() -> None:
    conf = {"spark.app.name": "mine", "spark.executor.memoryOverheadFactor": "0.2"}
    properties = properties_of(sparkConf=conf)
    assert properties["spark.app.name"] == "mine"
    assert properties["spark.executor.memoryOverheadFactor"] == "0.2"
    assert properties["spark.kubernetes.driver.pod.name"] == "flights-driver-7"
    assert properties["spark.executor.instances"] == "2"


def test_executors_of_a_node_that_is_drained_finish_their_tasks_in_the_time_that_a_driver_gets() -> None:
    """From Spark 4.1 on the property says for how long, before that the template."""
    pod = driver_pod(start(main=JOB, stop={"gracePeriod": "5m"}))
    template = json.loads(environment(pod)["HEADGATE_EXECUTOR_TEMPLATE"])
    for made in (pod, template):
        assert made["spec"]["terminationGracePeriodSeconds"] == 310
    properties = environment(pod)["HEADGATE_SPARK_PROPERTIES"]
    assert "spark.kubernetes.executor.terminationGracePeriodSeconds=310s\n" in properties
    assert "spark.decommission.enabled=true\n" in properties


def test_executors_may_be_stopped_at_once_where_the_resource_says_so() -> None:
    assert (
        properties_of(sparkConf={"spark.decommission.enabled": "false"})["spark.decommission.enabled"]
        == "false"
    )
    assert "spark.decommission.enabled" not in properties_of(sparkConf={"spark.master": "local[2]"})


def test_nobody_without_the_secret_of_an_application_speaks_with_its_driver_or_reads_along() -> None:
    properties = properties_of()
    assert properties["spark.authenticate"] == properties["spark.network.crypto.enabled"] == "true"
    assert properties["spark.ui.killEnabled"] == "false"


@pytest.mark.parametrize("no", ["false", "False "])
def test_a_resource_may_open_what_is_closed_and_gets_no_encryption_that_spark_refuses_then(no: str) -> None:
    conf = {"spark.authenticate": no, "spark.ui.killEnabled": "true"}
    properties = properties_of(sparkConf=conf)
    assert (properties["spark.authenticate"], properties["spark.ui.killEnabled"]) == (no, "true")
    assert "spark.network.crypto.enabled" not in properties


def test_a_resource_may_do_without_encryption_alone() -> None:
    properties = properties_of(sparkConf={"spark.network.crypto.enabled": "false"})
    assert (properties["spark.authenticate"], properties["spark.network.crypto.enabled"]) == ("true", "false")


def test_a_driver_that_works_alone_has_nobody_to_authenticate() -> None:
    assert "spark.authenticate" not in properties_of(sparkConf={"spark.master": "local[2]"})


def scratch_of(**spec: Any) -> dict[str, str]:
    """The properties of the volumes for shuffles."""
    found = properties_of(**spec).items()
    prefix = "spark.kubernetes.executor.volumes."
    return {name.removeprefix(prefix): text for name, text in found if name.startswith(prefix)}


def test_nobody_fills_the_disk_of_a_node() -> None:
    pod = driver_pod(start(main=JOB, driver={"scratch": "5Gi"}, executor={"scratch": "200Gi"}))
    template = json.loads(environment(pod)["HEADGATE_EXECUTOR_TEMPLATE"])
    for made, most in ((pod, "5Gi"), (template, "200Gi")):
        folders = [volume["emptyDir"] for volume in made["spec"]["volumes"] if "emptyDir" in volume]
        assert folders == [{"sizeLimit": most}] * 2
    assert scratch_of(executor={"scratch": "200Gi"}) == {
        "emptyDir.spark-local-dir-1.mount.path": "/var/data/spark",
        "emptyDir.spark-local-dir-1.options.sizeLimit": "200Gi",
    }


def test_folders_for_shuffles_are_where_the_resource_wants_them() -> None:
    found = scratch_of(sparkConf={"spark.local.dir": "/a, /b"})
    assert [found[f"emptyDir.spark-local-dir-{n}.mount.path"] for n in (1, 2)] == ["/a", "/b"]
    assert found["emptyDir.spark-local-dir-2.options.sizeLimit"] == "50Gi"


@pytest.mark.parametrize(
    "conf",
    [
        {
            "spark.kubernetes.executor.volumes.hostPath.spark-local-dir-1.mount.path": "/nvme",
            "spark.kubernetes.executor.volumes.hostPath.spark-local-dir-1.options.path": "/nvme",
        },
        {"spark.kubernetes.local.dirs.tmpfs": "true"},
        {"spark.master": "local[2]"},
    ],
    ids=["its own volume", "in memory", "no executors"],
)
def test_where_there_are_others_there_is_no_folder_of_ours(conf: dict[str, str]) -> None:
    assert [name for name in scratch_of(sparkConf=conf) if name.startswith("emptyDir")] == []


def test_a_limit_restarts_a_driver_where_it_is_set_and_not_where_it_is_new() -> None:
    """A driver that was started before there was the field goes on."""
    revision = start(main=JOB).launch.revision
    assert start(main=JOB, executor={"scratch": "50Gi"}).launch.revision == revision == "7eddfc238060"
    assert start(main=JOB, executor={"scratch": "60Gi"}).launch.revision != revision


def executors(**spec: Any) -> Manifest:
    """Return the pod that Spark makes executors after."""
    template: Manifest = json.loads(
        environment(driver_pod(start(main=JOB, **spec)))["HEADGATE_EXECUTOR_TEMPLATE"]
    )
    return template


def test_a_template_adds_to_the_pods_and_leaves_what_is_ours() -> None:
    shaped = {"podTemplate": {"metadata": MARKS, "spec": PLACED | DRIVER_PARTS}}
    plain, pod = driver_pod(start(main=JOB)), driver_pod(start(main=JOB, driver=shaped))

    assert plain["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
    assert pod["spec"]["tolerations"] == PLACED["tolerations"]
    assert pod["spec"]["securityContext"] == {
        **plain["spec"]["securityContext"],
        "supplementalGroups": [2000],
    }
    ours, merged = container(plain), container(pod)
    assert [one["name"] for one in pod["spec"]["containers"]] == ["driver"]
    assert [one for one in ours["volumeMounts"] if one not in merged["volumeMounts"]] == []
    assert [one["name"] for one in merged["env"]] == [*(one["name"] for one in ours["env"]), "TOKEN"]
    assert {name: merged[name] for name in ("image", "args", "ports", "resources", "readinessProbe")} == {
        name: ours[name] for name in ("image", "args", "ports", "resources", "readinessProbe")
    }


def test_what_a_template_says_holds_over_what_properties_say_of_the_driver() -> None:
    pod = driver_pod(
        start(
            main=JOB,
            sparkConf={
                "spark.kubernetes.driverEnv.STAGE": "test",
                "spark.kubernetes.node.selector.disk": "hdd",
            },
            driver={
                "podTemplate": {
                    "spec": {
                        "nodeSelector": {"disk": "ssd"},
                        "containers": [{"name": "driver", "env": [{"name": "STAGE", "value": "production"}]}],
                    }
                }
            },
        )
    )
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert environment(pod)["STAGE"] == "production"


def test_each_template_is_that_of_its_own_pods() -> None:
    shaped = {"podTemplate": {"spec": PLACED}}
    assert executors(executor=shaped)["spec"]["tolerations"] == PLACED["tolerations"]
    assert "tolerations" not in executors(driver=shaped)["spec"]
    assert "tolerations" not in driver_pod(start(main=JOB, executor=shaped))["spec"]


def test_a_volume_of_a_template_for_shuffles_takes_the_place_of_scratch_space() -> None:
    shaped = {"podTemplate": {"spec": EXECUTOR_PARTS}}
    scratch = "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.mount.path"
    assert scratch in properties_of()
    assert scratch not in properties_of(executor=shaped)


def test_a_template_is_part_of_what_a_driver_is_started_with_and_an_empty_one_is_none() -> None:
    plain = start(main=JOB).launch.revision
    assert start(main=JOB, driver={"podTemplate": {}}).launch.revision == plain
    for role in ("driver", "executor"):
        assert start(main=JOB, **{role: {"podTemplate": {"spec": PLACED}}}).launch.revision != plain


@pytest.mark.parametrize(("setting", "user"), [(185, 185), (1000, 1000), (0, None)])
def test_the_user_of_pods_is_a_setting_and_zero_leaves_it_to_the_namespace(
    setting: int, user: int | None
) -> None:
    defaults = replace(driver_defaults(Settings(driver_run_as_user=setting)), image="x")
    pod = driver_pod(replace(start(main=JOB), defaults=defaults))
    template = json.loads(environment(pod)["HEADGATE_EXECUTOR_TEMPLATE"])
    for security in (pod["spec"]["securityContext"], template["spec"]["securityContext"]):
        assert (security.get("runAsUser"), security.get("fsGroup")) == (user, user)
        assert security["runAsNonRoot"]
