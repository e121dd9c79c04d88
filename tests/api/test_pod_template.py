"""Pod templates: what no Pod has is found before the API server drops it, and changes tell no value of them."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.api.application import SparkApplication
from headgate.api.changes import changes
from headgate.api.explanation import explain
from headgate.api.pod_shape import LARGEST_TEMPLATE, MOST_TOLD
from headgate.api.update_modes import UpdateMode
from headgate.api.validation import validate
from support.api_server import ApiServer
from support.manifests import Manifest, application

FULL: dict[str, Any] = {
    "metadata": {"labels": {"team": "air"}, "annotations": {"example.com/scrape": "yes"}},
    "spec": {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"headgate.dev/role": "executor"}},
                        },
                    }
                ]
            }
        },
        "containers": [
            {
                "name": "driver",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {
                        "name": "C",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": 1}},
                    },
                ],
                "envFrom": [{"secretRef": {"name": "s"}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
                "securityContext": {"readOnlyRootFilesystem": False},
            }
        ],
        "initContainers": [
            {
                "name": "proxy",
                "image": "proxy:1",
                "restartPolicy": "Always",
                "resources": {"limits": {"cpu": 1, "memory": "64Mi"}},
                "startupProbe": {"httpGet": {"port": "http", "path": "/"}},
                "ports": [{"name": "http", "containerPort": 80}],
            }
        ],
        "nodeSelector": {"disk": "ssd"},
        "priorityClassName": "high",
        "securityContext": {"runAsUser": 1000, "supplementalGroups": [1]},
        "tolerations": [{"key": "pool", "operator": "Exists", "tolerationSeconds": 5}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "volumes": [
            {"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "b", "mode": 420}]}},
            {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
            {
                "name": "e",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                },
            },
        ],
    },
}


def templated(**spec: Any) -> Manifest:
    return application(driver={"podTemplate": {"spec": spec}})


def test_a_template_of_all_that_clusters_ask_for_is_taken_and_kept_as_it_is(kubernetes: ApiServer) -> None:
    manifest = application(driver={"podTemplate": FULL})
    found, findings = validate(manifest)
    assert found is not None, findings
    assert kubernetes.create(manifest).stored["spec"]["driver"]["podTemplate"] == FULL


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (
            {"tolerations": [{"key": "a", "efect": "NoSchedule"}]},
            "tolerations[0].efect",
            "no Pod has this field; did you mean effect?",
        ),
        (
            {"affinity": {"nodeAffinty": {}}},
            "affinity.nodeAffinty",
            "no Pod has this field; did you mean nodeAffinity?",
        ),
        ({"affinity": {"nodeAffinity": []}}, "affinity.nodeAffinity", "must be an object"),
        ({"securityContext": {"runAsUser": "1000"}}, "securityContext.runAsUser", "must be a whole number"),
        ({"securityContext": {"runAsUser": True}}, "securityContext.runAsUser", "must be a whole number"),
        ({"tolerations": [{"key": 5}]}, "tolerations[0].key", "must be text"),
        (
            {"volumes": [{"name": "x", "configmap": {"name": "a"}}]},
            "volumes[x].configmap",
            "no Pod has this field; did you mean configMap?",
        ),
        (
            {"initContainers": [{"name": "x", "command": "sleep"}]},
            "initContainers[x].command",
            "must be a list",
        ),
    ],
)
def test_what_no_pod_has_is_refused_by_name(spec: dict[str, Any], path: str, message: str) -> None:
    found, findings = validate(templated(**spec))
    assert found is None
    assert [(finding.path, finding.message) for finding in findings] == [
        (f"spec.driver.podTemplate.spec.{path}", message)
    ]


def test_a_template_that_no_environment_can_hold_is_refused() -> None:
    aliases = [{"ip": "10.0.0.1", "hostnames": ["x" * LARGEST_TEMPLATE]}]
    found, (finding,) = validate(templated(hostAliases=aliases))
    assert found is None
    assert finding.path == "spec.driver.podTemplate"
    assert finding.message.endswith("put what is long into ConfigMaps")


def test_what_is_larger_than_any_pod_is_refused_as_a_whole_and_nobody_looks_into_it() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    for large, said in (
        (deep, "has more than 64 levels in one another, as no Pod has; take out what is not of a Pod"),
        ({f"a{number}": [[]] for number in range(30_000)}, "has at least 120,"),
        ({f"a{number}": 0 for number in range(5_000)}, "has 48,"),
    ):
        found, (finding,) = validate(templated(affinity=large))
        assert found is None
        assert (finding.path, finding.message[: len(said)]) == ("spec.driver.podTemplate", said)


def test_of_many_fields_that_no_pod_has_some_are_told_of() -> None:
    found, findings = validate(templated(affinity={f"nodeAffinity{number}": {} for number in range(1_000)}))
    assert (found, len(findings)) == (None, MOST_TOLD)


def test_a_field_of_a_pod_that_is_elsewhere_leads_to_the_template() -> None:
    _, (finding,) = validate(application(tolerations=[]))
    assert finding.message == (
        "unknown field here; did you mean spec.driver.podTemplate.spec.tolerations or "
        "spec.executor.podTemplate.spec.tolerations?"
    )


def test_a_field_that_is_refused_is_proposed_to_nobody() -> None:
    _, (finding,) = validate(application(hostNetwork=True))
    assert "podTemplate" not in finding.message


def test_a_change_of_a_template_is_told_by_its_field_without_what_may_be_secret() -> None:
    def of(value: str) -> SparkApplication:
        env = [{"name": "A", "value": value}]
        found, _ = validate(templated(containers=[{"name": "driver", "env": env}]))
        assert found is not None
        return found

    (change,) = changes(of("hunter1"), of("hunter2"))
    assert change.path == "spec.driver.podTemplate.spec.containers"
    assert change.update_mode is UpdateMode.RESTART
    assert "hunter" not in change.text
    assert change.before != change.after


def test_an_explanation_says_what_a_template_is_about_and_none_of_its_values() -> None:
    found, _ = validate(application(driver={"podTemplate": FULL}))
    assert found is not None
    (told,) = [one for one in explain(found)[0].sentences if "of its own" in one.text]
    assert told.update_mode is UpdateMode.RESTART
    assert told.text.startswith("the pod of the driver also has labels, annotations, affinity, containers, ")
    assert "proxy" not in told.text
