"""Where a driver pod serves its metrics, whatever the family of its address."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.adapters.address import Address, Located
from headgate.factory.cluster import located


def pod(attempt: int, address: str | None, state: str = "running") -> dict[str, Any]:
    status: dict[str, Any] = {"containerStatuses": [{"name": "driver", "state": {state: {}}}]}
    return {
        "metadata": {"labels": {"headgate.dev/attempt": str(attempt)}},
        "status": status if address is None else {**status, "podIP": address},
    }


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("10.0.0.7", "http://10.0.0.7:8090/metrics"),
        ("fd00:10:244::7", "http://[fd00:10:244::7]:8090/metrics"),
    ],
)
def test_an_address_of_either_family_becomes_a_url(address: str, url: str) -> None:
    found = located([pod(1, address)])
    assert found == Located(1, Address(address, 8090))
    assert str(found.address) == url


def test_the_newest_driver_that_lives_and_has_an_address_is_asked() -> None:
    pods = [pod(1, "10.0.0.1"), pod(2, "10.0.0.2"), pod(3, "10.0.0.3", "terminated"), pod(4, None)]
    assert located(pods) == Located(2, Address("10.0.0.2", 8090))
    assert located(pods[2:]) is None


def test_a_driver_is_known_by_the_uid_of_its_application_and_its_attempt() -> None:
    owned = pod(7, "10.0.0.1")
    owned["metadata"]["ownerReferences"] = [{"uid": "x"}, {"uid": "a1", "controller": True}]
    found = located([owned])
    assert found is not None
    assert found.lineage == "a1/7"
