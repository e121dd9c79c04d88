"""Settings: which source wins, what is refused and where it says it was written, and that they can be read back."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from headgate.cli.operator import operator
from headgate.errors import UsageError
from headgate.settings import Settings, address_parts
from headgate.settings_sources import DEFAULT, flag_of, load_settings, variable_of


def load(
    flags: dict[str, Any] | None = None, environ: dict[str, str] | None = None, file: Path | None = None
) -> Settings:
    return load_settings(flags or {}, environ or {}, file).settings


def faults(
    flags: dict[str, Any] | None = None, environ: dict[str, str] | None = None, file: Path | None = None
) -> list[str]:
    with pytest.raises(UsageError) as refused:
        load_settings(flags or {}, environ or {}, file)
    return str(refused.value).split("\n  ")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "operator.yaml"


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(file: Path) -> None:
    file.write_text("tick: 7s\nworkers: 7\nresync: 7m\n")
    loaded = load_settings({"tick": "1s"}, {"HEADGATE_TICK": "2s", "HEADGATE_WORKERS": "2"}, file)

    assert loaded.settings.tick == timedelta(seconds=1)
    assert loaded.settings.workers == 2
    assert loaded.settings.resync == timedelta(minutes=7)
    assert loaded.settings.api_timeout == timedelta(seconds=15)
    names = ("tick", "workers", "resync", "api_timeout")
    assert [loaded.sources[name] for name in names] == [
        "--tick",
        "HEADGATE_WORKERS",
        f"{file}:3: resync",
        DEFAULT,
    ]


def test_the_file_may_be_named_by_the_environment(file: Path) -> None:
    file.write_text("workers: 7\n")

    assert load(environ={"HEADGATE_CONFIG": str(file)}).workers == 7


def test_every_fault_is_said_at_once_with_the_place_where_it_was_written(file: Path) -> None:
    file.write_text("prometheusURL: http://p\nworkers: 0\nlogLevel: loud\n")

    said = faults(
        {"namespaces": "team-a,Team-B"},
        {"HEADGATE_TICK": "5", "HEADGATE_PROMETHEUS_CA_FILE": "/no/such"},
        file,
    )

    assert said == [
        "the settings are refused:",
        f"{file}:1: prometheusURL: unknown setting; did you mean prometheusUrl?",
        "--namespaces: 'Team-B' is not a namespace: lower-case letters, digits and dashes, at most 63",
        f"{file}:2: workers: must be greater than or equal to 1, not 0",
        "HEADGATE_TICK: 5 has no unit; write for example 250ms, 5s, 2m or 1h30m",
        "HEADGATE_PROMETHEUS_CA_FILE: there is no file /no/such; mount it, or correct the path",
        f"{file}:3: logLevel: must be 'debug', 'info', 'warning' or 'error', not 'loud'",
    ]


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (
            {"lease_duration": "8s"},
            "--lease-renew-deadline: must be shorter than the lease's duration of 8s",
        ),
        (
            {"lease_retry_period": "6s"},
            "--lease-retry-period: must fit twice into the renew deadline of 10s, "
            "or one lost request ends the leader",
        ),
        ({"tick": "0s"}, "--tick: must be at least 100ms, not 0s"),
        (
            {"prometheus_url": "prometheus:9090"},
            "--prometheus-url: must be a URL that starts with http:// or https://",
        ),
        (
            {"metrics_bind_address": "8080"},
            "--metrics-bind-address: must be an address and a port, as 127.0.0.1:8080 or [::1]:8080, "
            "or :8080 for every address",
        ),
        ({"probe_bind_address": ":70000"}, "--probe-bind-address: must be an address and a port"),
        (
            {"prometheus_password_file": __file__},
            "--prometheus-password-file: is for basic authentication; give",
        ),
        (
            {"prometheus_username": "u", "prometheus_bearer_token_file": __file__},
            "--prometheus-username: cannot be given with a bearer token",
        ),
        (
            {"prometheus_matchers": "cluster=a"},
            """--prometheus-matchers: must be label matchers without braces, as cluster="a", separated by commas, """
            "not 'cluster=a'",
        ),
        (
            {"prometheus_matchers": '{cluster="a"}'},
            "--prometheus-matchers: must be label matchers without braces",
        ),
        ({"identity": ""}, "--identity: string should have at least 1 character"),
    ],
)
def test_a_setting_is_refused_with_its_name(flags: dict[str, str], fault: str) -> None:
    assert faults(flags)[1].startswith(fault)


@pytest.mark.parametrize(
    "matchers",
    [
        "",
        'cluster="a"',
        " a != \"b\" , c=~'d|e',",
        r'a="\"}",b!~`\`',
        '"a.b"="c"',
        'cluster="a",replica="x y"',
    ],
)
def test_label_matchers_are_taken_as_prometheus_reads_them(matchers: str) -> None:
    assert load({"prometheus_matchers": matchers}).prometheus_matchers == matchers


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("- workers\n", "must be one object of settings"),
        ("workers: [1\n", ":2: malformed YAML"),
        ("workers: 1\nworkers: 2\n", "malformed YAML"),
    ],
)
def test_a_file_that_is_no_object_is_refused(file: Path, content: str, fault: str) -> None:
    file.write_text(content)

    assert fault in "".join(faults(file=file))


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    assert faults(file=file) == [f"{file}: No such file or directory; give the path of a settings file"]


def test_an_empty_file_and_empty_variables_set_nothing(file: Path) -> None:
    file.write_text("# nothing\n")

    assert load(environ={"HEADGATE_TICK": ""}, file=file).tick == timedelta(seconds=5)


def test_variables_that_kubernetes_sets_for_services_do_no_harm() -> None:
    environ = {"HEADGATE_METRICS_PORT": "tcp://10.0.0.1:8080", "HEADGATE_SERVICE_HOST": "10.0.0.1"}

    assert load(environ=environ).metrics_bind_address == ":8080"


def test_namespaces_are_a_list_in_the_file_and_text_elsewhere(file: Path) -> None:
    file.write_text("namespaces: [a, b]\n")

    assert load(file=file).namespaces == load({"namespaces": "a, b,"}).namespaces == ("a", "b")
    assert load({"namespaces": ""}).namespaces == ()


def test_printed_settings_can_be_read_back(file: Path) -> None:
    loaded = load_settings({"namespaces": "a,b", "tick": "250ms", "leader_election": False}, {}, None)
    file.write_text(loaded.render())

    assert load(file=file) == loaded.settings
    assert "tick: 250ms  # --tick\n" in loaded.render()


def test_every_setting_has_a_flag_of_the_same_name_and_says_its_default() -> None:
    flags = set(inspect.signature(operator).parameters) - {"config", "print_settings"}

    assert flags == set(Settings.model_fields)
    for field in Settings.model_fields.values():
        assert "Default" in (field.description or "")


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:8081", ("::1", 8081)),
    ],
)
def test_an_address_has_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert address_parts(address) == parts


def test_every_setting_is_described_in_the_operations_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(--[a-z-]+)` \| (.*) \|$", page, re.MULTILINE))

    for name, field in Settings.model_fields.items():
        spellings = f"`{variable_of(name)}` | `{to_camel(name)}`"
        assert rows.get(flag_of(name), "").startswith(spellings), name
        assert " ".join((field.description or "").split()) in rows[flag_of(name)], name
