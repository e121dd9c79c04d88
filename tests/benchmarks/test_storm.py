"""One governed job with state under faults, from a generator to its sink; `make chaos` has hundreds of them.

Which faults there are is told here and not drawn, so that the minute of processor time that it takes stays one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chaos.end_to_end.faults import FAULTS
from benchmarks.chaos.end_to_end.run import storm
from support.kafka_connector import connector_jars

pytestmark = pytest.mark.spark

NAMES = {
    "clock_steps",
    "disk_slow",
    "document_cut",
    "network_cut",
    "network_reset",
    "planner_killed",
    "verdict_flaps",
}
RECORDS, SEED = 100_000, 1


def test_faults_from_end_to_end_cost_no_record_and_double_none(tmp_path: Path) -> None:
    connector_jars()
    of = [fault for fault in FAULTS if fault.name in NAMES]
    found = storm(tmp_path / "run", seed=SEED, faults=len(of), records=RECORDS, tell=print, of=of)
    assert found.audit.broken == []
    assert (found.audit.lost, found.audit.doubled, found.audit.past_limit) == (0, 0, 0)
    assert found.audit.at_limit > 0
    assert found.records >= RECORDS
    assert set(found.faults) == NAMES
