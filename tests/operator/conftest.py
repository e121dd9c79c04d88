from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster import Cluster
from support.on_server import OnServer, on_server


@pytest.fixture
def o(control_plane: Cluster, namespace: str) -> Iterator[OnServer]:
    """An operator, driven by hand, that serves a namespace of a real API server."""
    with on_server(control_plane, namespace) as served:
        yield served
