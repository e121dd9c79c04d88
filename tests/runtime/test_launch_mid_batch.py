"""What happens while a batch runs, on real Spark: documents come into force, and a kill is counted."""

import json
import signal
from datetime import UTC, datetime

import psutil
import pyarrow.parquet as pq
import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.exit_codes import OOM_KILLED, PREVIOUS_END, ExitCode
from headgate_spark.engine.batch_memory import BatchMemory
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.store import NumberedStore
from support.driver import driver, recording, standby, wait_for
from support.spark import planned_offsets

pytestmark = pytest.mark.spark

ROWS = 1000


def governed(**source):
    batch = BatchControl(initial_records=ROWS, max_records=ROWS)
    return QueryControl(interval_seconds=0.1, batch=batch, sources={"source": SourceControl(**source)})


@pytest.fixture
def arguments(tmp_path):
    signs = tmp_path / "signs"
    signs.mkdir()
    source = recording(tmp_path / "source", ROWS)
    return ("waiting.py", source, tmp_path / "out", tmp_path / "ck", signs)


def in_a_batch(running, tmp_path):
    wait_for((tmp_path / "signs" / "begun-0").exists, "the first batch", running)


def test_in_a_batch_a_document_comes_into_force_and_a_stop_outlives_the_planner_that_was_asked_for_it(
    tmp_path, arguments
):
    with driver(tmp_path / "run", *arguments, control={"copy": governed()}) as running:
        in_a_batch(running, tmp_path)
        limit = RateControl(records_per_second=7)
        generation = running.control(copy=governed(rate_limit=limit))
        running.wait_for_metric("headgate_control_generation", lambda v: v == generation)
        running.wait_for_metric("headgate_source_rate_limit_records_per_second", lambda v: v == 7)
        assert not running.metric("headgate_query_batches_total", kind="data")
        assert running.metric("headgate_query_batches_repeated_total") == 0
        running.signal(signal.SIGTERM)
        running.wait_for_log("stopping at the next batch boundary")
        (planner,) = [
            child
            for child in psutil.Process(running.process.pid).children()
            if "headgate_spark.runtime" in child.cmdline()
        ]
        planner.kill()
        running.wait_for_log("has failed in a stop; it is asked again")
        wait_for(lambda: running.log.count("stopping at the next") == 2, "the next planner", running)
        (tmp_path / "signs" / "go").touch()
        assert running.wait() == 0, running.log[-3000:]
        assert "Traceback" not in running.log
        assert "mid-batch" not in running.log
    assert (tmp_path / "ck" / "commits" / "0").exists()
    assert not (tmp_path / "ck" / "offsets" / "1").exists()


def test_a_jvm_that_was_killed_by_hand_again_and_again_makes_no_batch_smaller(tmp_path, arguments):
    for number in range(2):
        (tmp_path / "signs" / "begun-0").unlink(missing_ok=True)
        with driver(tmp_path / f"killed-{number}", *arguments, control={"copy": governed()}) as running:
            in_a_batch(running, tmp_path)
            running.kill_jvm()
            assert running.wait() == 1, running.log[-3000:]
            assert "was killed, and not for want of memory" in running.log
    (tmp_path / "signs" / "go").touch()
    with driver(tmp_path / "again", *arguments, control={"copy": governed()}) as running:
        running.wait_for_metric("headgate_query_batches_total", lambda v: v > 0, kind="data")
        assert running.metric("headgate_query_memory_bound_records") is None
        assert running.metric("headgate_query_batches_repeated_total") == 2


def test_a_batch_that_spans_a_backlog_and_was_killed_repeats_its_offsets_and_the_query_goes_on_live(
    tmp_path, arguments
):
    backlog = 600
    live = tmp_path / "signs" / "live"
    cut = datetime.fromtimestamp(1.7e9 + backlog / 1000, UTC).isoformat()
    arguments += ("eventTime=ts", f"cut={cut}", f"startedBy={live}")
    spanning = QueryControl(interval_seconds=0.1, interval_during_backlog_seconds=0, backlog=True)
    with (
        driver(tmp_path / "killed", *arguments, control={"copy": spanning}) as killed,
        standby(tmp_path / "again", *arguments, control={"copy": spanning}) as again,
    ):
        in_a_batch(killed, tmp_path)
        planned = planned_offsets(tmp_path / "ck", 0)
        assert [json.loads(end) for end in planned] == [{"row": backlog}]
        live.touch()  # from now on there is more than when the batch was planned
        killed.kill_all()
        killed.wait_for_all()
        (tmp_path / "signs" / "begun-0").unlink()
        again.go()
        in_a_batch(again, tmp_path)
        assert planned_offsets(tmp_path / "ck", 0) == planned
        generation = again.control(copy=governed())
        again.wait_for_metric("headgate_control_generation", lambda v: v == generation)
        (tmp_path / "signs" / "go").touch()
        again.wait_for_metric("headgate_source_processed_records_total", lambda v: v == ROWS)
        assert again.metric("headgate_query_batches_repeated_total") == 1
        assert again.metric("headgate_query_backlog") == 0
        again.signal(signal.SIGTERM)
        assert again.wait() == 0
    written = pq.read_table(tmp_path / "out")
    assert sorted(written["id"].to_pylist()) == list(range(ROWS))
    assert written["batch"].to_pylist().count(0) == backlog


def test_a_driver_that_was_killed_whole_for_want_of_memory_is_not_tried_without_end(tmp_path, arguments):
    beside = tmp_path / "ck.headgate"
    with driver(tmp_path / "killed", *arguments, control={"copy": governed()}) as running:
        in_a_batch(running, tmp_path)
        running.kill_all()
    once = BatchMemory().failed(0, None, None)
    NumberedStore(LocalDirectory(beside), "batches").save(once)
    killed = {PREVIOUS_END: OOM_KILLED}
    with driver(tmp_path / "again", *arguments, control={"copy": governed()}, environment=killed) as refusing:
        assert refusing.wait() == ExitCode.BATCH_TOO_LARGE
        assert "query copy: batch 0 has failed 2 times for want of memory" in refusing.log
