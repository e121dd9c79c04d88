"""Which cluster and which programs the tests use, and what they say where something is missing.

Nothing is started here: whoever sets `HEADGATE_TEST_CLUSTER` or `KUBEBUILDER_ASSETS` must not wait for a build.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from support import control_plane, go_tools, node_images, requirements
from support.cluster import CRDS, Cluster
from support.control_plane import control_plane_in, program
from support.go_tools import PROGRAMS, go_tool

Stopped = (pytest.skip.Exception, pytest.fail.Exception)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's machine: none of the variables is set, and nothing is built."""
    for name in ("CI", "HEADGATE_TEST_CLUSTER", "HEADGATE_TEST_QUICK", "KUBEBUILDER_ASSETS", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(go_tools, "build", built_nothing)


def built_nothing(name: str) -> None:
    pytest.fail(f"{name} was built")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is built."""
    names: list[str] = []
    monkeypatch.setattr(go_tools, "build", names.append)
    return names


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def stops(work: Callable[[], object]) -> tuple[type[BaseException], str]:
    """Return how the test that does this ends, and the sentence with it."""
    with pytest.raises(Stopped) as told:
        work()
    return told.type, str(told.value)


# A cluster of one's own ------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's cluster, its kubectl on the path; returns what was asked of it, call by call."""
    asked = tmp_path / "asked"
    served = '{"status": {"conditions": [{"type": "Established", "status": "True"}]}}'
    script(tmp_path / "bin" / "kubectl", f"echo \"$@\" >> {asked}; echo '{served}'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HEADGATE_TEST_CLUSTER", "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    return asked


def test_a_cluster_of_ones_own_is_used_as_it_is_and_nothing_is_built(own: Path, tmp_path: Path) -> None:
    with control_plane_in(tmp_path / "plane") as cluster:
        assert type(cluster) is Cluster
        assert cluster.kubeconfig == tmp_path / "mine"
    asked = own.read_text(encoding="utf-8").splitlines()
    assert asked == [
        f"--kubeconfig {tmp_path}/mine apply --server-side -f {CRDS}",
        f"--kubeconfig {tmp_path}/mine get -f {CRDS} -o json",
    ]


def test_a_cluster_of_ones_own_is_never_stopped(own: Path, tmp_path: Path) -> None:
    with control_plane_in(tmp_path / "plane", controllers=True) as cluster:
        assert stops(cluster.restart_api_server) == (
            pytest.skip.Exception,
            "the API server of your own cluster is not stopped; unset HEADGATE_TEST_CLUSTER",
        )
        assert stops(lambda: cluster.user("somebody")) == (
            pytest.skip.Exception,
            "somebody cannot be made a user of your own cluster; unset HEADGATE_TEST_CLUSTER",
        )


@pytest.mark.usefixtures("own")
def test_without_a_kubectl_of_ones_own_that_alone_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[str]
) -> None:
    (tmp_path / "bin" / "kubectl").unlink()
    script(tmp_path / "bin" / "go", "true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    cluster = control_plane._users_cluster(tmp_path)
    assert cluster is not None
    assert built == ["kubectl"]


@pytest.mark.parametrize("said", ["yes", "kind", "kubeconfig"])
def test_a_choice_that_leads_nowhere_is_no_reason_to_use_another_cluster(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_TEST_CLUSTER", said)
    assert stops(lambda: control_plane_in(tmp_path).__enter__()) == (
        pytest.fail.Exception,
        f"HEADGATE_TEST_CLUSTER is {said!r}; set it to 'kubeconfig', and KUBECONFIG with it",
    )


def test_kubeconfig_alone_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever works on a cluster has it set, and does not want tests there."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "production"))
    assert control_plane._users_cluster(tmp_path) is None


# Programs --------------------------------------------------------------------------------------------


def test_prebuilt_programs_are_used_and_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for name in ("etcd", "kube-apiserver", "kubectl"):
        prebuilt = script(tmp_path / name, "true")
        assert program(name) == prebuilt


def test_a_program_that_the_prebuilt_ones_lack_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[str]
) -> None:
    script(tmp_path / "bin" / "go", "true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    script(tmp_path / "etcd", "true")
    assert program("kube-scheduler") == PROGRAMS / "kube-scheduler"
    assert built == ["kube"]


# What is missing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ci", "ends"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_go_a_test_is_skipped_with_a_sentence_and_fails_in_ci(
    ci: str, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stops(lambda: go_tool("promtool")) == (
        ends,
        "Go is missing, so promtool cannot be built; install Go 1.26 or later",
    )


@pytest.mark.parametrize(("ci", "ends"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_root_a_test_is_skipped_with_a_sentence_and_fails_in_ci(
    ci: str, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 1000)
    assert stops(requirements.need_namespaces) == (
        ends,
        "only root can make the namespaces of a node; run the tests as root",
    )


def test_root_needs_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 0)
    requirements.need_root("make the namespaces of a node")


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_without_go_building_ahead_is_no_failure_but_in_ci(
    ci: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        go_tools.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == "Go is missing, so nothing is built; install Go 1.26 or later\n"


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_without_root_making_images_ahead_is_no_failure_but_in_ci(
    ci: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        node_images.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == "only root can make the namespaces of a node; run the tests as root\n"


# Tests that do without ---------------------------------------------------------------------------------


def test_a_quick_test_that_asks_for_a_program_fails_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, built: list[str]
) -> None:
    monkeypatch.setenv("HEADGATE_TEST_QUICK", "1")

    assert stops(lambda: go_tool("etcd")) == (
        pytest.fail.Exception,
        "etcd is built with Go, and `make test-quick` does without; mark the test as `programs`",
    )
    assert built == []


def test_every_marker_is_in_the_choice_of_quick_tests() -> None:
    settings = tomllib.loads((go_tools.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    markers = {marker.partition(":")[0] for marker in settings["tool"]["pytest"]["ini_options"]["markers"]}
    makefile = (go_tools.ROOT / "Makefile").read_text(encoding="utf-8")
    chosen = re.search(r"^test-quick:.*?-m \"not \((.*?)\)\"", makefile, re.MULTILINE | re.DOTALL)

    assert chosen is not None
    assert set(chosen[1].split(" or ")) == markers
