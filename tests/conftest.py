"""What holds for every test, and the servers that tests of several folders share.

`make test` runs two workers side by side, one on each core: tests that start Spark or Kafka, and all others. What one
of them shares for a session (a driver, a broker, a control plane) is therefore started once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from support.cluster import Cluster
from support.control_plane import control_plane_in
from support.kafka import Broker, kafka_in

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headgate")


DRIVERS = ("demo", "e2e", "kafka", "runtime", "spark")
"""Folders whose tests start Spark or Kafka."""


class TwoLanes(LoadScopeScheduling):
    """Hands each of the two groups of folders to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return "drivers" if nodeid.split("/")[1] in DRIVERS else "all others"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TwoLanes:
    """Say which worker runs a test, where there are workers."""
    return TwoLanes(config, log)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server with our CRD; without controllers, so that only tests change objects."""
    with control_plane_in(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def with_controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server with our CRD, kube-controller-manager and kube-scheduler, but no node."""
    with control_plane_in(tmp_path_factory.mktemp("with-controllers"), controllers=True) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: Cluster) -> str:
    """A namespace of `control_plane` for one test."""
    return control_plane.namespace()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; each test makes topics of its own. Who stops a broker starts another with `kafka_in`."""
    with kafka_in(tmp_path_factory.mktemp("kafka") / "broker") as broker:
        yield broker
