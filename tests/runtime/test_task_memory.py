"""What the tasks of a real query spill, and what that does to its next batches and to those of the next run."""

import signal

import pytest

from headgate_contract import BatchControl, QueryControl
from support.driver import driver, recording

pytestmark = pytest.mark.spark

SPILLS_FROM = 1_000
"""Records in one sort: as if the memory of a task ended there."""


def test_growth_ends_at_the_first_batch_that_spills_and_so_it_does_after_a_restart(tmp_path):
    source = recording(tmp_path / "source", 1_000_000)
    arguments = ("sorting.py", source, tmp_path / "ck")
    conf = {"spark.shuffle.spill.numElementsForceSpillThreshold": str(SPILLS_FROM)}
    growing = BatchControl(initial_records=200, max_growth=4)
    control = {
        "sorting": QueryControl(
            interval_seconds=0.2, interval_during_backlog_seconds=60, backlog=True, batch=growing
        )
    }
    with driver(tmp_path / "one", *arguments, conf=conf, control=control) as running:
        running.wait_for_metric("headgate_query_spilled_bytes_total", lambda v: v > 0)
        running.wait_for_metric("headgate_query_memory_bound_records", lambda v: v >= 1)
        batches = running.metric("headgate_query_batches_total", kind="data")
        running.wait_for_metric("headgate_query_batches_total", lambda v: v > batches + 2, kind="data")
        bound = running.metric("headgate_query_memory_bound_records")
        assert bound <= 3_200 * 4
        running.wait_for_metric("headgate_query_grant_records", lambda v: v <= bound)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    with driver(tmp_path / "two", *arguments, conf=conf, control=control) as running:
        assert running.wait_for_metric("headgate_query_memory_bound_records", lambda v: v >= 1) <= bound
