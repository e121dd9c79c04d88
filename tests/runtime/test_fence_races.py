"""Two real drivers on one checkpoint of a store that nobody can lock."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from headgate_contract import QueryControl, RateControl, SourceControl
from headgate_spark.engine.fence import Owner
from support import faulty_files
from support.driver import driver, ids_in, recording, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.processes]
ROWS = 20_000
SLOW = QueryControl(
    interval_seconds=0.5, sources={"source": SourceControl(rate_limit=RateControl(records_per_second=100))}
)
HELD = replace(SLOW, sources={"source": SourceControl(paused=True)})


def on_store(take_over_after: str) -> dict[str, str]:
    return {
        "spark.jars": str(faulty_files.jar()),
        "spark.headgate.fence.takeOverAfter": take_over_after,
        **faulty_files.conf(),
    }


def jvm_of_holder(checkpoint: Path) -> int:
    """Return the process of the driver that has a checkpoint."""
    [epoch] = checkpoint.with_name(f"{checkpoint.name}.headgate").glob("epoch.*")
    pid = Owner.parse(epoch.read_text()).pid
    assert pid is not None
    return pid


def test_a_second_driver_is_refused_while_the_first_is_idle_and_shuts_it_out_when_it_stands_still(
    tmp_path: Path,
) -> None:
    job = ("copy.py", recording(tmp_path / "source", ROWS), tmp_path / "out", f"faulty:{tmp_path}/ck")
    with driver(tmp_path / "one", *job, conf=on_store("1h"), control={"copy": SLOW}) as first:
        first.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0)
        first.control(copy=HELD)
        wait_for(lambda: first.metric("headgate_source_paused", query="copy") == 1, "a pause", first)
        with driver(tmp_path / "two", *job, conf=on_store("1h"), control={"copy": SLOW}) as second:
            assert second.wait() == 75
            assert re.search(r"is in use by the driver of application \S+ on host \S+, pid \d+", second.log)
            assert "which has answered that it runs" in second.log
        stopped = jvm_of_holder(tmp_path / "ck")
        os.kill(stopped, signal.SIGSTOP)
        first.control(
            copy=SLOW
        )  # once it stands: a batch that it had begun would end by the sink's own refusal
        with driver(tmp_path / "three", *job, conf=on_store("2s")) as third:
            third.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0)
            os.kill(stopped, signal.SIGCONT)
            assert first.wait() == 75
            assert "has taken it over; stop one of the two" in first.log
            wait_for(lambda: len(ids_in(tmp_path / "out")) == ROWS, "all rows", third)
            third.signal(signal.SIGTERM)
            assert third.wait() == 0
    assert sorted(ids_in(tmp_path / "out")) == list(range(ROWS))
    assert not [
        each for each in (tmp_path / "ck.headgate").iterdir() if each.name.startswith(("epoch", "sign"))
    ]
