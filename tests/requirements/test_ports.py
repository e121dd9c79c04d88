"""Servers of two workers, and of one, are never given the same port."""

from __future__ import annotations

import pytest

from support.servers import free_port


@pytest.mark.parametrize("worker", [0, 1])
def test_a_port_is_given_once_and_to_one_worker(worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == len(ports)
    assert {port % 2 for port in ports} == {worker}
