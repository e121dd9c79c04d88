"""A history, then live data, in one running query: nothing lost or doubled, and a restart does not go back."""

import json
import signal

import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support.driver import driver, ids_in, recording

pytestmark = pytest.mark.spark

ROWS = 4000


def history_first(**history):
    sources = {"history": SourceControl(**history), "live": SourceControl(after="history")}
    batch = BatchControl(initial_records=500, max_records=500)
    return {"hybrid": QueryControl(interval_seconds=0.2, sources=sources, batch=batch)}


@pytest.fixture
def arguments(tmp_path):
    history = recording(tmp_path / "history", ROWS)
    live = recording(tmp_path / "live", ROWS)
    return ("hybrid.py", history, live, tmp_path / "out", tmp_path / "ck")


def test_the_live_source_waits_for_the_end_of_the_history_also_after_a_restart(tmp_path, arguments):
    slow = history_first(rate_limit_during_backlog=RateControl(records_per_second=20, max_burst_seconds=1))
    with driver(tmp_path / "before", *arguments, control=slow) as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, source="history")
        assert running.metric("headgate_source_phase", source="live") == 1
        assert running.metric("headgate_query_backlog") == 1
        assert running.metric("headgate_source_planned_records_total", source="live") == 0
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    assert not kept(tmp_path)["finished"]
    with driver(tmp_path / "across", *arguments, control=history_first()) as running:
        running.wait_for_metric("headgate_source_pending_records", lambda v: v == 0, source="live")
        assert running.metric("headgate_source_phase", source="live") == 0
        assert running.metric("headgate_source_pending_records", source="history") == 0
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    assert kept(tmp_path) == {"ends": {"history": {"row": ROWS}}, "finished": ["history"]}
    assert sorted(ids_in(tmp_path / "out")) == sorted([*range(ROWS), *range(ROWS)])


def kept(tmp_path):
    """Return what is known of histories beside the checkpoint."""
    files = (tmp_path / "ck.headgate").glob("hybrid.*.json")
    return json.loads(max(files, key=lambda path: int(path.name.split(".")[1])).read_text())
