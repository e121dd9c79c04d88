"""Values: what is mistyped is refused with its place, and what is described is what there is."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from charts.generate import __main__ as generate
from charts.generate.crd import template
from charts.generate.schema import alerts
from charts.generate.values import UndescribedValueError, Value, described, row
from headgate.settings import LogLevel, Settings
from headgate.settings_sources import load_settings
from headgate_contract.metrics import ONLY_SET
from support.chart import CHART, HelmError, Manifest, of_kind, render
from support.go_tools import ROOT

pytestmark = pytest.mark.programs

SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def test_generated_files_are_up_to_date() -> None:
    generate.main(check=True)  # which exits where one is not


def test_the_schema_is_one_and_the_defaults_keep_to_it() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)

    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA)


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    def names(schema: dict[str, Any], value: Any) -> None:
        properties = schema.get("properties")
        if properties is not None and isinstance(value, dict) and value:
            assert properties.keys() - {"global", "claims"} == value.keys()
            for name, child in value.items():
                names(properties[name], child)

    names(SCHEMA, yaml.safe_load((CHART / "values.yaml").read_text()) | {"resources": {}})


def test_the_operator_understands_the_settings_that_are_rendered(tmp_path: Path) -> None:
    given = {"tick": "2s", "workers": 4, "prometheusUrl": "http://prometheus:9090", "logLevel": "debug"}
    manifests = render(values={"settings": given, "namespaces": ["a", "b"]})
    (deployment,) = of_kind(manifests, "Deployment").values()
    (config_map,) = of_kind(manifests, "ConfigMap").values()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environ = {variable["name"]: variable.get("value", "pod-1") for variable in container["env"]}
    file = tmp_path / Path(environ.pop("HEADGATE_CONFIG")).name
    file.write_text(config_map["data"][file.name])

    settings = load_settings({}, environ, file).settings

    assert settings == Settings(
        namespaces=("a", "b"),
        lease_name="headgate",
        lease_namespace="headgate-system",
        driver_service_account="headgate-driver",
        identity="pod-1",
        tick=timedelta(seconds=2),
        workers=4,
        prometheus_url="http://prometheus:9090",
        log_level=LogLevel.DEBUG,
        metrics_bind_address=":8080",
        probe_bind_address=":8081",
    )


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"replicas": "2"}, "at '/replicas': got string, want integer"),
        (
            {"replicas": 2, "settings": {"leaderElection": False}},
            "at '/settings/leaderElection': value must be true",
        ),
        ({"namespaces": "team-a"}, "at '/namespaces': got string, want array"),
        ({"namespaces": ["Team"]}, "at '/namespaces/0': 'Team' does not match pattern"),
        ({"settings": {"tick": 5}}, "at '/settings/tick': got number, want string"),
        ({"settings": {"tick": "5"}}, "at '/settings/tick': '5' does not match pattern"),
        ({"settings": {"leaseName": "x"}}, "additional properties 'leaseName' not allowed"),
        ({"settings": {"prometheusUrl": "prometheus:9090"}}, "at '/settings/prometheusUrl'"),
        ({"image": {"digest": "sha256:12"}}, "at '/image/digest'"),
        ({"monitoring": {"prometheusRule": {"disabled": ["HeadgateFlaping"]}}}, "value must be one of"),
        (
            {"monitoring": {"prometheusRule": {"overrides": {"HeadgateFlapping": {"four": "5m"}}}}},
            "additional properties 'four' not allowed",
        ),
        ({"crds": {"keep": "yes"}}, "at '/crds/keep': got string, want boolean"),
        ({"finalizerPolicy": {"enable": True}}, "additional properties 'enable' not allowed"),
        ({"networkPolicy": {"egress": {"apiServerPorts": [0]}}}, "minimum: got 0, want 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_value_is_refused_with_its_place(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(values=values)

    assert complaint in str(refused.value)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert chart["version"] == chart["appVersion"] == package


def test_what_artifact_hub_is_told_is_so() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    told = {name.removeprefix("artifacthub.io/"): text for name, text in chart["annotations"].items()}
    images = yaml.safe_load(told["images"])
    (deployment,) = of_kind(render(), "Deployment").values()
    (crd,) = yaml.safe_load(told["crds"])
    (definition,) = of_kind(render(), "CustomResourceDefinition").values()

    assert [i["image"] for i in images] == [
        container["image"] for container in deployment["spec"]["template"]["spec"]["containers"]
    ]
    assert (crd["name"], crd["kind"]) == (definition["metadata"]["name"], definition["spec"]["names"]["kind"])


@pytest.mark.parametrize("page", ["docs/install.md", "charts/headgate/README.md"])
def test_every_command_of_a_page_has_values_that_there_are(page: str) -> None:
    text = (ROOT / page).read_text().replace("\\\n", " ")
    commands = [line for line in text.splitlines() if "--set" in line]
    given = [shlex.split(flag) for line in commands for flag in re.findall(r"--set ('[^']+'|[^\s`]+)", line)]

    assert given
    for (flag,) in given:
        render("--set", flag)


@pytest.mark.parametrize("version", [3, 4])
def test_a_label_of_the_charts_can_be_replaced_but_none_that_pods_are_selected_by(version: int) -> None:
    own = {"app.kubernetes.io/part-of": "data-platform", "app.kubernetes.io/name": "ours", "team": "data"}
    values = {
        "commonLabels": own,
        "podLabels": {"team": "streams", "app.kubernetes.io/instance": "ours"},
        "monitoring": {"podMonitor": {"enabled": True, "labels": {"team": "metrics"}}},
    }

    manifests = render(values=values, version=version)

    (deployment,) = of_kind(manifests, "Deployment").values()
    (monitor,) = of_kind(manifests, "PodMonitor").values()
    pods = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pods.items()
    assert {labels["app.kubernetes.io/part-of"] for labels in (pods, monitor["metadata"]["labels"])} == {
        "data-platform"
    }
    assert [found["metadata"]["labels"]["team"] for found in (deployment, monitor)] == ["data", "metrics"]
    assert pods["team"] == "streams"


def of_drivers(version: int = 4, **values: Any) -> tuple[Manifest, dict[str, Any]]:
    """The PodMonitor of drivers, and the operator's settings beside it."""
    manifests = render(values=values, version=version)
    (monitor,) = of_kind(manifests, "PodMonitor").values()
    (config,) = of_kind(manifests, "ConfigMap").values()
    return monitor, yaml.safe_load(config["data"]["operator.yaml"])


@pytest.mark.parametrize("version", [3, 4])
def test_a_driver_says_neither_who_it_is_nor_when_nor_too_much(version: int) -> None:
    monitor, settings = of_drivers(version, monitoring={"podMonitor": {"enabled": True}})
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert [endpoint[name] for name in ("honorLabels", "honorTimestamps", "followRedirects")] == [False] * 3
    assert [f"{name}={value}" for name, (value,) in endpoint["params"].items()] == [ONLY_SET]
    (dropped,) = endpoint["metricRelabelings"]
    assert (dropped["sourceLabels"], dropped["action"]) == (["__name__"], "drop")
    assert re.fullmatch(dropped["regex"], "headgate_operator_build_info"), "what its alerts go by"
    assert not re.fullmatch(dropped["regex"], "headgate_driver_stopping")
    limits = ("bodySizeLimit", "sampleLimit", "labelLimit", "labelNameLengthLimit", "labelValueLengthLimit")
    assert all(monitor["spec"][limit] for limit in limits)
    job = f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}"
    assert settings["prometheusMatchers"] == f'job="{job}"'


def test_limits_and_matchers_can_be_others() -> None:
    podmonitor = {"enabled": True, "limits": {"sampleLimit": 7, "bodySizeLimit": None}}
    monitor, settings = of_drivers(
        monitoring={"podMonitor": podmonitor}, settings={"prometheusMatchers": 'cluster="a"'}
    )
    assert (monitor["spec"]["sampleLimit"], "bodySizeLimit" in monitor["spec"]) == (7, False)
    assert settings["prometheusMatchers"] == 'cluster="a"'


def test_without_the_charts_podmonitor_the_operator_reads_series_of_any_job() -> None:
    (config,) = of_kind(render(), "ConfigMap").values()
    assert "prometheusMatchers" not in yaml.safe_load(config["data"]["operator.yaml"])


def test_an_alert_that_may_be_named_is_one_that_there_is() -> None:
    assert SCHEMA["definitions"]["alert"]["enum"] == sorted(alerts(ROOT))


def test_a_value_without_a_comment_is_told() -> None:
    with pytest.raises(UndescribedValueError, match=r"values\.yaml: image\.tag has no comment"):
        list(described("image:\n  # -- Where.\n  name: x\n  tag: y\n"))


def test_values_are_found_with_their_paths_defaults_and_comments() -> None:
    one, rest = (
        "# -- One,\n# over two lines.\na: 1\n",
        "b:\n  # -- Below.\n  c: [x]\n# -- Whole.\nd:\n  e: {f: 2}\n",
    )
    text = f"# A heading.\n\n{one}{rest}"

    assert list(described(text)) == [
        Value("a", 1, "One, over two lines."),
        Value("b.c", ["x"], "Below."),
        Value("d", {"e": {"f": 2}}, "Whole."),
    ]


def test_a_link_to_our_pages_leads_to_the_file_where_the_readme_is_read() -> None:
    value = Value("a", "b|c", "See [alerts](https://headgate.dev/docs/alerts).")

    assert row(value) == '| `a` | `"b\\|c"` | See [alerts](../../docs/alerts.md). |'


def test_braces_in_a_definition_are_not_taken_for_a_template() -> None:
    definition = "# Generated.\nkind: X\nmetadata:\n  name: x\nspec:\n  description: '{{ here }}'\n"

    assert "'{{ \"{{\" }} here }}'" in template(definition)
