"""What is remembered survives being written down, and nothing else is taken for a memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.decision.memory import Memory
from headgate_contract.codec import decode, encode
from headgate_contract.lag_votes import Dwell, Latch

MEMORY = Memory(
    attempt=3,
    latches={
        "flights": {
            "WatermarkLag": Latch(answer=False, dwell=Dwell(since=1.5, known_at=9.0, frozen_at=10.0)),
            "PendingRecords": Latch(answer=False, dwell=Dwell(since=2.0, known_at=9.0)),
            "Phase": Latch(answer=True),
        }
    },
)


@pytest.mark.parametrize("memory", [MEMORY, Memory(), Memory(attempt=1)], ids=["full", "empty", "no latches"])
def test_memory_survives_json(memory: Memory) -> None:
    assert decode(Memory, json.loads(json.dumps(encode(memory)))) == memory


DAMAGED = (
    [],
    {"attempt": "3"},
    {"attempt": True},
    {"latches": []},
    {"latches": {"flights": {"Phase": True}}},
    {"latches": {"flights": {"Phase": {"answer": 1}}}},
    {"latches": {"flights": {"Phase": {"answer": False, "dwell": {"since": 1.0}}}}},
    {"latches": {"flights": {"Phase": {"answer": False, "dwell": {"since": "now", "knownAt": 1.0}}}}},
)


@pytest.mark.parametrize("document", DAMAGED, ids=str)
def test_a_damaged_memory_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(Memory, document)


def test_a_memory_holds_latches_and_dwell_clocks_and_only_they() -> None:
    assert encode(MEMORY) == {
        "attempt": 3,
        "latches": {
            "flights": {
                "WatermarkLag": {"answer": False, "dwell": {"since": 1.5, "knownAt": 9.0, "frozenAt": 10.0}},
                "PendingRecords": {"answer": False, "dwell": {"since": 2.0, "knownAt": 9.0}},
                "Phase": {"answer": True},
            }
        },
    }
