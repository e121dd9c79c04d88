"""How a real API server is listed."""

from __future__ import annotations

import pytest

from headgate.adapters.kubernetes import client
from headgate.adapters.kubernetes.client import APPLICATIONS
from support.on_server import OnServer


@pytest.mark.parametrize(("rest", "rests"), [(0.0, 0), (4.0, 2)])
def test_between_the_pages_of_a_listing_others_have_their_time(
    rest: float, rests: int, o: OnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("flights", "orders", "weather"):
        o.apply(name)
    slept: list[float] = []

    class NoPause:
        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)

    monkeypatch.setattr(client, "PAGE", 1)
    monkeypatch.setattr(client, "asyncio", NoPause())
    found = o._run(o.cluster.list(APPLICATIONS, o.namespace, metadata_only=True, rest=rest))

    versions = {
        name: o.application(name)["metadata"]["resourceVersion"] for name in ("flights", "orders", "weather")
    }
    assert [item["metadata"]["resourceVersion"] for item in found] == list(versions.values())
    assert len(slept) == rests
    assert all(seconds > 0 for seconds in slept)
