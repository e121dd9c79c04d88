"""On a real API server: an edit of a field leads to what it leads to on a cluster in memory, or is refused by both.

All values of all fields are tried in memory (`tests/laws/test_every_field.py`), and five hundred of them here by
`make chaos`; in this test it is some of them, in one life.
"""

from __future__ import annotations

from zlib import crc32

import pytest

from headgate.adapters.kubernetes.client import Manifest
from support import edits_on_server
from support.edits_on_server import begin, edited
from support.every_field import Field, fields, whole, with_value
from support.on_server import OnServer
from support.transitions import fresh, is_taken

pytestmark = pytest.mark.cluster

EVERY = 10
"""One field of so many."""


def one_of(of: Field) -> str:
    kinds = sorted(set(of.values()) - {"null"})
    return kinds[crc32(str(of).encode()) % len(kinds)]


EDITS = [(of, one_of(of)) for of in fields()[::EVERY]]


def test_edits_lead_to_where_they_lead_in_memory(o: OnServer) -> None:
    begin(o)
    found = list(edited(o, EDITS))
    assert len(found) == len(EDITS)
    assert [different for different in found if different] == []


def test_an_edit_that_leads_elsewhere_is_told(o: OnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(o)
    elsewhere = fresh({**whole(), "spec": {**whole()["spec"], "suspend": True}})

    def in_memory(_: Manifest) -> object:
        return elsewhere

    monkeypatch.setattr(edits_on_server, "fresh", in_memory)
    (of,) = (of for of in fields() if str(of) == "spec.queries[].checkpoint.interval")
    kind = next(kind for kind, value in of.values().items() if is_taken(with_value(whole(), of.path, value)))
    (different,) = edited(o, [(of, kind)])
    assert different is not None
    assert different.startswith(f"spec.queries[].checkpoint.interval: {kind}: ")
    assert different.endswith("it is Running, and Suspended in memory")
