"""An operator whose drivers end again and again holds no more than before, and operators that end leave nothing."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from benchmarks.soak.scenarios.cluster import world_in
from support.cluster import Cluster
from support.served import Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster
RESTARTS, LEFT_OUT = 8, 2
"""The first looks are left out: connections are made."""
QUICK = {"backoff": "100ms", "maxBackoff": "100ms", "maxRetries": 1000}


def test_restarts_of_a_driver_leave_nothing_in_the_operator(start, served: Served) -> None:
    operator = start().begin_leading()
    process = psutil.Process(operator.process.pid)
    series = operator.series()
    served.declare(restart=QUICK)
    looks = []
    for attempt in range(1, RESTARTS + 1):
        pod = f"flights-driver-{attempt}"
        served.driver(attempt=attempt)
        served.runs(pod)
        wait_until(
            lambda number=attempt: (
                (served.status()["attempt"], served.status()["state"]) == (number, "Running")
            ),
            f"attempt {attempt} to run",
        )
        looks.append(
            {
                "threads": process.num_threads(),
                "descriptors": process.num_fds(),
                "sockets": len(process.net_connections("inet")),
            }
        )
        served.ends(pod, 1)
    for kind in looks[0]:
        of_kind = [look[kind] for look in looks[LEFT_OUT:]]
        assert of_kind[-1] - of_kind[0] < len(of_kind) - 1, f"one for each restart: {kind} {of_kind}"
    assert operator.series() == series


def test_operators_that_end_in_the_midst_of_their_work_leave_nothing(
    control_plane: Cluster, tmp_path: Path
) -> None:
    with world_in(control_plane, tmp_path, applications=4) as world:
        _, *looks = world.restarted(4)
    for kind in ("threads", "descriptors", "sockets", "files", "stored"):
        of_kind = [look[kind] for look in looks]
        assert of_kind[-1] - of_kind[0] < len(of_kind) - 1, f"one for each restart: {kind} {of_kind}"
