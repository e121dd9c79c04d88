"""An operator for a test: a process of its own on a real API server, serving the test's namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.operator_process import OperatorProcess, operator_process
from support.served import IMAGE, LEASE, Served

Start = Callable[..., OperatorProcess]


@pytest.fixture
def served(control_plane: Cluster, namespace: str) -> Served:
    return Served(control_plane, namespace)


@pytest.fixture
def start(served: Served, tmp_path: Path) -> Iterator[Start]:
    """Start an operator for the namespace; flags are added. Called again, start another replica.

    It may do what the chart lets it do, and nothing else, unless another kubeconfig is given.
    """
    with ExitStack() as running:
        count = 0

        @cache
        def ours() -> Path:
            account = served.account()
            served.grant()
            return account

        def started(*flags: str, kubeconfig: Path | None = None) -> OperatorProcess:
            nonlocal count
            count += 1
            own = (
                "--namespaces",
                served.namespace,
                "--lease-namespace",
                served.namespace,
                "--lease-name",
                LEASE,
                "--default-image",
                IMAGE,
            )
            process = operator_process(kubeconfig or ours(), tmp_path / f"operator-{count}.log", *own, *flags)
            return running.enter_context(process)

        yield started
