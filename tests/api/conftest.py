from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.api_server import ApiServer, api_server

CRD = Path(__file__).parents[2] / "crds" / "headgate.dev_sparkapplications.yaml"


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[ApiServer]:
    """Kubernetes' own admission of our objects under the committed CRD."""
    with api_server(CRD) as server:
        yield server
