"""Commands run in this process, as a shell would see them, and a cluster for those that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Headgate
from support.http_cluster import HttpCluster, http_cluster


@pytest.fixture
def headgate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Headgate:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    return Headgate(monkeypatch, capsys)


@pytest.fixture
def cluster(headgate: Headgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpCluster]:
    """An API server that `headgate` finds by KUBECONFIG."""
    with http_cluster(tmp_path) as served:
        monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
        yield served
