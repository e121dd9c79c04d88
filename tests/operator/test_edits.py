"""On a real API server: an edit of a field leads to what it leads to on a cluster in memory, or is refused by both.

All values of all fields are tried in memory (`tests/laws/test_every_field.py`); here it is some of them, in one life.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from zlib import crc32

import pytest

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.kubernetes.pods import is_ended
from headgate.key import Key
from headgate_contract import ControlDocument
from headgate_contract.receiving import read
from support.cluster import KubectlError
from support.every_field import Field, fields, whole, with_value
from support.on_server import OnServer
from support.transitions import fresh, is_taken, told

pytestmark = pytest.mark.cluster

EVERY = 10
"""One field of so many."""
TURNS = 40
CALM = 3
"""Turns in which nothing changes any more."""
SECONDS = 15.0
NAME = "flights"


def one_of(of: Field) -> str:
    kinds = sorted(set(of.values()) - {"null"})
    return kinds[crc32(str(of).encode()) % len(kinds)]


EDITS = [(of, one_of(of)) for of in fields()[::EVERY]]


def declared(o: OnServer, resource: Manifest) -> bool:
    """A person replaces the resource; returns whether the API server takes it."""
    wanted = {**resource, "metadata": {"name": NAME, "namespace": o.namespace}}
    try:
        o.kubectl("replace", "-f", "-", input=json.dumps(wanted))
    except KubectlError:
        return False
    return True


def settle(o: OnServer) -> None:
    """Let kubelet, driver and operator act until nobody does any more."""
    calm, before = 0, None
    for _ in range(TURNS):
        o.skew += SECONDS
        o.turns(1)
        for pod in o.pods():
            name, metadata = pod["metadata"]["name"], pod["metadata"]
            if "deletionTimestamp" in metadata:
                o.ends(name, 0)
            elif not is_ended(pod) and pod["status"].get("phase") != "Running":
                o.runs(name)
        reports(o)
        seen = [one["metadata"]["resourceVersion"] for one in (o.application(NAME), *o.pods())]
        calm, before = (calm + 1 if seen == before else 0), seen
        if calm == CALM:
            return
    raise AssertionError(f"it does not come to rest: {o.said('Ready')}")


def reports(o: OnServer) -> None:
    """The driver has what it was told in force, and no backlog."""
    metrics = o.fake.metrics(Key(o.namespace, NAME))
    metrics.acknowledges(max((document.generation for document in documents(o)), default=0))
    found = {"watermark_lag_seconds": 1.0, "pending_records": 0.0}
    metrics.reports("delays", sources={"flights": found, "history": found})


def documents(o: OnServer) -> list[ControlDocument]:
    """Return what drivers are told."""
    alive = [pod for pod in o.pods() if not is_ended(pod)]
    found = [read(pod["metadata"]["annotations"][CONTROL]) for pod in alive]
    assert all(isinstance(one, ControlDocument) for one in found), found
    return [one for one in found if isinstance(one, ControlDocument)]


def test_edits_lead_to_where_they_lead_in_memory(o: OnServer) -> None:
    o.kubectl("create", "-f", "-", input=json.dumps({**whole(), "metadata": {"name": NAME}}))
    settle(o)
    assert o.said("Ready")[1] == fresh(whole()).ready[0]
    different: dict[str, Mapping[str, object]] = {}
    for of, kind in EDITS:
        changed = with_value(whole(), of.path, of.values()[kind])
        taken = declared(o, changed)
        if not taken:
            assert not is_taken(changed), f"{of}: {kind} is refused by the API server alone"
            continue
        settle(o)
        ideal = fresh(changed)
        found = {"ready": o.said("Ready")[1], "documents": tuple(map(told, documents(o)))}
        wanted = {"ready": ideal.ready[0], "documents": ideal.documents}
        if ideal.ready[0] == "InvalidSpec":
            del found["documents"], wanted["documents"]
        if found != wanted:
            different[f"{of}: {kind}"] = {"found": found, "in memory": wanted}
        assert declared(o, whole())
        settle(o)
    assert different == {}
