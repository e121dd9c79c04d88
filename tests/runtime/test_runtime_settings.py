"""What the planner's process is told when it starts, and what it says of settings that make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate_spark.runtime.settings import ProcessSettings


def line(properties: dict[str, str] | None = None, **more: object) -> str:
    told = {"token": "secret", "pid": 4711, "application": "flights", "properties": properties or {}}
    return json.dumps(told | more) + "\n"


def test_without_properties_everything_is_usual() -> None:
    assert ProcessSettings.parse(line()) == ProcessSettings(token="secret", pid=4711, application="flights")


def test_properties_say_how_it_is_to_run_and_a_variable_whose_driver_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADGATE_LINEAGE", "a1/1")
    given = {
        "spark.headgate.control": "/run/control.json",
        "spark.headgate.application": "departures",
        "spark.headgate.metrics.port": "0",
        "spark.headgate.metrics.address": "::1",
        "spark.headgate.ofALaterVersion": "x",
    }
    assert ProcessSettings.parse(line(given)) == ProcessSettings(
        token="secret",
        pid=4711,
        application="departures",
        lineage="a1/1",
        control=Path("/run/control.json"),
        metrics_port=0,
        metrics_address="::1",
    )


@pytest.mark.parametrize("said", ["/run/a%20b.json", "file:/run/a%20b.json", "file:///run/a%20b.json"])
def test_a_control_document_may_be_named_by_a_url_as_hadoop_writes_it(said: str) -> None:
    parsed = ProcessSettings.parse(line({"spark.headgate.control": said}))
    assert parsed.control == Path("/run/a%20b.json")


@pytest.mark.parametrize("said", ["s3a://bucket/c.json", "file://host/c.json", "file:c.json"])
def test_a_control_document_elsewhere_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match=r"^spark\.headgate\.control: .* is no file of this machine: give"):
        ProcessSettings.parse(line({"spark.headgate.control": said}))


def test_empty_properties_are_none() -> None:
    given = {"spark.headgate.application": "", "spark.headgate.metrics.address": ""}
    assert ProcessSettings.parse(line(given)) == ProcessSettings.parse(line())


@pytest.mark.parametrize("port", ["", "http", "-1", "65536", "8090.5", "٨٠", " 80", "1_000"])
def test_a_port_that_is_none_is_named_with_its_property_and_what_to_give(port: str) -> None:
    with pytest.raises(ValueError, match=r"spark\.headgate\.metrics\.port is ") as refused:
        ProcessSettings.parse(line({"spark.headgate.metrics.port": port}))
    assert str(refused.value).endswith(f"is {port!r}, which is no port: give a number from 0 to 65535")


@pytest.mark.parametrize("port", [0, 8090, 65535])
def test_a_port_that_is_one_is_taken(port: int) -> None:
    assert ProcessSettings.parse(line({"spark.headgate.metrics.port": str(port)})).metrics_port == port


def test_it_follows_the_jvm_unless_it_was_handed_a_socket() -> None:
    assert ProcessSettings.parse(line()).follows_jvm
    assert not ProcessSettings.parse(line(listening=7)).follows_jvm
