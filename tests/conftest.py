"""What holds for every test, and the servers that tests of several folders share.

`make test` runs two workers side by side, one on each core: tests that start Spark or Kafka, and all others. What one
of them shares for a session (a driver, a broker, a control plane) is therefore started once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from support.cluster import Cluster
from support.control_plane import control_plane_in
from support.kafka import Broker, kafka_in

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headgate")


@pytest.hookimpl(tryfirst=True)  # before the plugin that reads the mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which worker runs a test; without workers that means nothing."""
    for item in items:
        driven = item.get_closest_marker("spark") is not None or "kafka" in item.path.parts
        here = driven and item.get_closest_marker("cluster") is None
        item.add_marker(pytest.mark.xdist_group("drivers" if here else "clusters"))


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
