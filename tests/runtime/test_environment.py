"""What a driver of either family of addresses is told, and where it listens."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from headgate_contract.listening import every_address
from headgate_spark.launch.environment import (
    UnsupportedSessionError,
    in_brackets,
    on_executors,
    prepare,
    require_java,
    written_down,
)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("spark.driver.host=10.0.0.7", "spark.driver.host=10.0.0.7"),
        ("spark.driver.host=fd00::7", "spark.driver.host=[fd00::7]"),
        ("spark.driver.host=[fd00::7]", "spark.driver.host=[fd00::7]"),
        ("spark.driver.host=driver.team.svc", "spark.driver.host=driver.team.svc"),
        ("spark.driver.host=", "spark.driver.host="),
        ("spark.driver.bindAddress=fd00::7", "spark.driver.bindAddress=fd00::7"),
        ("spark.x=a=b::c", "spark.x=a=b::c"),
    ],
)
def test_the_address_of_a_pod_gets_the_brackets_that_spark_wants(pair: str, expected: str) -> None:
    assert in_brackets(pair) == expected


def test_spark_is_told_an_address_of_ipv6_in_brackets() -> None:
    environment: dict[str, str] = {}
    prepare(environment, jar=Path("shim.jar"), conf=["spark.driver.host=fd00::7"])
    assert shlex.split(environment["PYSPARK_SUBMIT_ARGS"])[:2] == ["--conf", "spark.driver.host=[fd00::7]"]


def test_metrics_that_are_served_on_every_address_are_served_on_that_of_ipv4() -> None:
    server, thread = start_http_server(0, every_address(), CollectorRegistry())
    try:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60):
            pass
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def test_what_is_handed_over_is_in_a_file_of_our_own_and_in_no_environment_any_more() -> None:
    environment = {"HANDED_OVER": "spark.x=ü\\n\n", "OTHER": ""}
    file = written_down(environment, "HANDED_OVER")
    assert file is not None
    assert file.read_bytes() == "spark.x=ü\\n\n".encode()
    assert file.stat().st_mode & 0o777 == 0o600
    assert environment == {"OTHER": ""}
    assert written_down(environment, "HANDED_OVER") is None


def test_executors_in_pods_have_the_jar_behind_what_the_job_gives_them() -> None:
    jar, theirs = Path("/opt/headgate.jar"), "spark.executor.extraClassPath="
    assert on_executors("", jar).splitlines() == ["", f"{theirs}/opt/headgate.jar"]
    given = f"{theirs}/a\\tb.jar:/c.jar\nspark.x=1\n"
    assert on_executors(given, jar) == f"{given}{theirs}/a\\tb.jar:/c.jar:/opt/headgate.jar\n"


@pytest.mark.parametrize(
    ("release", "refused"),
    [
        ('IMPLEMENTOR="x"\nJAVA_VERSION="11.0.2"\n', "11"),
        ('JAVA_VERSION="1.8.0_402"\n', "8"),
        ('JAVA_VERSION="17"\n', None),
        ('JAVA_VERSION="21.0.1"\n', None),
        ("nothing of the kind\n", None),
    ],
)
def test_a_java_that_is_too_old_is_told_with_the_remedy(
    tmp_path: Path, release: str, refused: str | None
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    (tmp_path / "release").write_text(release)
    if refused is None:
        require_java({"JAVA_HOME": str(tmp_path)})
        return
    with pytest.raises(
        UnsupportedSessionError, match=f"bin/java is of Java {refused}; install a JDK 17 or newer"
    ):
        require_java({"JAVA_HOME": str(tmp_path)})
