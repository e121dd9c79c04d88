"""Programs of others that tests run against, built from pinned Go modules into `build/tools`.

Each folder of `tests/support/tools` is a Go module whose go.mod and go.sum pin every version; `TOOLS` says what is
built from it and how. A cold build downloads and compiles the libraries, which takes minutes. After that a program is
built again only when its module or Go itself has changed.

`make tools` builds them all before the tests; a test asks with `go_tool`, which builds what is not there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.requirements import missing

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "tests" / "support" / "tools"
PROGRAMS = ROOT / "build" / "tools"
BUILD_SECONDS = 2400


@dataclass(frozen=True)
class Tool:
    """How one program is built."""

    module: str
    """Folder of `tests/support/tools`."""
    package: str = "."
    tags: str = ""
    versioned: tuple[str, ...] = ()
    """Packages that tell the version of Kubernetes which the program reports."""
    links: tuple[str, ...] = ()
    """Further names; the program does what it is called."""


KUBERNETES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
)
DISCOVERY = "remove_all_sd,enable_kubernetes_sd"  # the rest of service discovery is the SDKs of every cloud
STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
TOOLS: Mapping[str, Tool] = {
    "kube": Tool("kube", versioned=STAMPED, links=KUBERNETES),
    "kubectl": Tool("kube", "./kubectl", versioned=STAMPED),
    "crdcheck": Tool("kube", "./crdcheck"),
    "promtool": Tool("prometheus", "github.com/prometheus/prometheus/cmd/promtool", tags=DISCOVERY),
    "prometheus": Tool("prometheus", "github.com/prometheus/prometheus/cmd/prometheus", tags=DISCOVERY),
    "helm": Tool("kube", "helm.sh/helm/v4/cmd/helm"),
    "helm3": Tool("helm3", "helm.sh/helm/v3/cmd/helm"),
    "kstatus": Tool("kube", "./kstatus"),
    "fluxhealth": Tool("fluxhealth"),
    "kubeconform": Tool("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform"),
    "containerd": Tool("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
    "containerd-shim-runc-v2": Tool(
        "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
    ),
    "ctr": Tool("containerd", "github.com/containerd/containerd/v2/cmd/ctr"),
    "coredns": Tool("coredns"),
    "pause": Tool("pause"),
    "actionlint": Tool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
    "gofakes3": Tool("objectstore", "github.com/johannesboyne/gofakes3/cmd/gofakes3"),
}


def go_tool(name: str) -> Path:
    """Return the program `name` of `TOOLS` or of its links, built if it is not there.

    Without Go the test is skipped with what is missing; in CI, which skips nothing, it fails.
    """
    if os.environ.get("HEADGATE_TEST_QUICK"):
        pytest.fail(
            f"{name} is built with Go, and `make test-quick` does without; mark the test as `programs`"
        )
    if shutil.which("go") is None:
        missing(f"Go is missing, so {name} cannot be built; install Go 1.26 or later")
    source = next(known for known, tool in TOOLS.items() if name in {known, *tool.links})
    build(source)
    return PROGRAMS / name


def build(name: str) -> None:
    """Build one of `TOOLS`, unless it is there and what it is made from has not changed."""
    tool = TOOLS[name]
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with _alone(tool.module):
        made_from = PROGRAMS / f".{name}.made-from"
        recipe = _recipe(tool)
        if made_from.exists() and made_from.read_text() == recipe and (PROGRAMS / name).exists():
            return
        _compile(name, tool)
        for link in tool.links:
            (PROGRAMS / link).unlink(missing_ok=True)
            (PROGRAMS / link).symlink_to(name)
        made_from.write_text(recipe)


def _compile(name: str, tool: Tool) -> None:
    unfinished = PROGRAMS / f"{name}.new"
    built = subprocess.run(
        [*_command(tool), "-o", str(unfinished), tool.package],
        cwd=MODULES / tool.module,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert built.returncode == 0, f"{name} does not build:\n{built.stderr}"
    unfinished.replace(PROGRAMS / name)


def _command(tool: Tool) -> list[str]:
    stamps = [
        f"-X {package}.{stamp}" for package in tool.versioned for stamp in _kubernetes_version(tool.module)
    ]
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", " ".join(["-s", "-w", *stamps])]
    return command + (["-tags", tool.tags] if tool.tags else [])


def _kubernetes_version(module: str) -> list[str]:
    pinned = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", (MODULES / module / "go.mod").read_text())
    assert pinned is not None
    version, major, minor = pinned.groups()
    return [f"gitVersion={version}", f"gitMajor={major}", f"gitMinor={minor}", "gitTreeState=clean"]


def _recipe(tool: Tool) -> str:
    """Return what tells one build from another: Go, the command, and every file of the module."""
    go = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(repr((go, tool, _command(tool))).encode())
    for file in sorted((MODULES / tool.module).rglob("*")):
        if file.name in {"go.mod", "go.sum"} or file.suffix == ".go":
            digest.update(file.read_bytes())
    return digest.hexdigest()


@contextmanager
def _alone(module: str) -> Iterator[None]:
    """Hold other test runs off while a module's programs are built."""
    with (PROGRAMS / f".{module}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build every tool, or those that are named; say how long each took.

    Without Go there is nothing to do: the tests that need a tool will be skipped, except in CI.
    """
    if shutil.which("go") is None:
        print("Go is missing, so nothing is built; install Go 1.26 or later", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 0)
    for name in sys.argv[1:] or TOOLS:
        started = time.monotonic()
        build(name)
        print(f"{name:12} {time.monotonic() - started:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
