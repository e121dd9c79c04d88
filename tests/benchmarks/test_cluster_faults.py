"""What a run of faults over a cluster makes of what it finds; the run itself is `make chaos ONLY=cluster`."""

from __future__ import annotations

from collections import Counter

from benchmarks.chaos.cluster.faults import FAULTS
from benchmarks.chaos.drawing import drawn


def test_each_kind_of_fault_comes_once_before_any_comes_again() -> None:
    blows = drawn(1, 2 * len(FAULTS), FAULTS)
    assert blows == drawn(1, 2 * len(FAULTS), FAULTS)
    assert min(Counter(blow.fault.name for blow in blows).values()) == 1
    assert {blow.fault.name for blow in drawn(2, len(FAULTS), FAULTS)} == {fault.name for fault in FAULTS}
