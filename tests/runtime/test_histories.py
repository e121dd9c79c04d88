"""Histories of several kinds before live sources of several kinds, on real Spark: each row is read once."""

import signal

import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support.driver import driver, ids_in, recording

pytestmark = pytest.mark.spark

ROWS = 2000
UNHURRIED = 0
"""The commit interval: batches may take their ten seconds, so that a first one on a cold JVM makes none small."""
SLOW = RateControl(records_per_second=10, max_burst_seconds=1)
"""Nothing comes to its end within three minutes: a test looks in time, however slow the machine."""


def history_first(history="history", live="live", **of_history):
    sources = {history: SourceControl(**of_history), live: SourceControl(after=history)}
    sizes = BatchControl(initial_records=500, max_records=500)
    return QueryControl(interval_seconds=UNHURRIED, batch=sizes, sources=sources)


def test_an_empty_history_lets_the_live_branch_go_when_all_that_is_there_is_read(tmp_path):
    live = recording(tmp_path / "live", ROWS)
    recorded = recording(tmp_path / "recorded", 0)
    folder = tmp_path / "folder"
    folder.mkdir()
    unions = (f"recorded=replay:{live}+replay:{recorded}", f"folder=replay:{live}+parquet:{folder}")
    control = {"recorded": history_first("recorded"), "folder": history_first("folder")}
    with driver(tmp_path / "run", "unions.py", tmp_path, "now", *unions, control=control) as running:
        assert running.wait() == 0, running.log
    for name in control:
        assert sorted(ids_in(tmp_path / name)) == list(range(ROWS)), name


def test_a_source_that_has_been_read_may_wait_from_now_on_and_files_wait_as_well(tmp_path):
    history, live = recording(tmp_path / "history", ROWS), recording(tmp_path / "live", ROWS)
    of_files = f"files=parquet:{live}+replay:{history}"
    arguments = ("unions.py", tmp_path, "100 milliseconds", f"copy=replay:{history}+replay:{live}")
    both = dict.fromkeys(("history", "live"), SourceControl(rate_limit=SLOW))
    together = {"copy": QueryControl(interval_seconds=UNHURRIED, sources=both)}
    with driver(tmp_path / "together", *arguments, control=together) as running:
        for source in ("history", "live"):
            running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, source=source)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    waiting = history_first(rate_limit=SLOW, rate_limit_during_backlog=SLOW)
    names = ("copy", "files")
    with driver(tmp_path / "waiting", *arguments, of_files, control=dict.fromkeys(names, waiting)) as running:
        for query in names:
            running.wait_for_metric(
                "headgate_source_processed_records_total", lambda v: v > 0, query=query, source="history"
            )
            assert running.metric("headgate_source_phase", query=query, source="live") == 1
            assert running.metric("headgate_source_planned_records_total", query=query, source="live") in (
                0,
                None,
            )
            assert running.metric("headgate_source_processed_records_total", query=query, source="live") == 0
        running.control(**dict.fromkeys(names, history_first()))
        running.wait_for_metric(
            "headgate_source_processed_records_total", lambda v: v == ROWS, query="files", source="live"
        )
        running.wait_for_metric(
            "headgate_source_pending_records", lambda v: v == 0, query="copy", source="live"
        )
        assert running.metric("headgate_source_phase", query="files", source="live") == 0
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    for query in names:
        assert sorted(ids_in(tmp_path / query)) == sorted([*range(ROWS), *range(ROWS)])
