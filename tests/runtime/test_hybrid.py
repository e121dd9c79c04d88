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


def test_the_live_source_waits_for_the_end_of_the_history_also_after_restarts_and_refusals(
    tmp_path, arguments
):
    slow = history_first(rate_limit_during_backlog=RateControl(records_per_second=20, max_burst_seconds=1))
    with driver(tmp_path / "before", *arguments, control=slow) as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, source="history")
        assert running.metric("headgate_source_phase", source="live") == 1
        assert running.metric("headgate_query_backlog") == 1
        assert running.metric("headgate_source_planned_records_total", source="live") == 0
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    is_refused_with_a_damaged_memory(tmp_path, arguments)
    with driver(tmp_path / "across", *arguments, control=history_first()) as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, source="live")
        assert running.metric("headgate_source_phase", source="live") == 0
        assert running.metric("headgate_source_pending_records", source="history") == 0
        running.kill()
    kept = sorted((tmp_path / "ck.headgate").glob("hybrid.*.json"), key=lambda p: int(p.name.split(".")[1]))
    assert json.loads(kept[-1].read_text()) == {"ends": {"history": {"row": ROWS}}, "finished": ["history"]}
    with driver(tmp_path / "after", *arguments, control=history_first()) as running:
        running.wait_for_metric("headgate_source_pending_records", lambda v: v == 0, source="live")
        assert running.metric("headgate_source_phase", source="live") == 0
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    assert sorted(ids_in(tmp_path / "out")) == sorted([*range(ROWS), *range(ROWS)])


def is_refused_with_a_damaged_memory(tmp_path, arguments):
    (kept,) = (tmp_path / "ck.headgate").glob("hybrid.*.json")
    whole = kept.read_text()
    kept.write_text(whole[:-5])
    with driver(tmp_path / "refused", *arguments, control=history_first()) as refused:
        assert refused.wait() == 1
        assert "query hybrid: source live: it is not known whether its history has been read" in refused.log
        assert f"{kept} is damaged (" in refused.log
        assert "or delete it: nothing is lost then, or read twice" in refused.log
    kept.write_text(whole)


def test_a_watermark_on_each_branch_is_refused_with_the_remedy(tmp_path, arguments):
    with driver(tmp_path / "run", *arguments, "--watermark-per-branch", control=history_first()) as refused:
        assert refused.wait() == 1
        assert "call withWatermark once, after the union" in refused.log
