"""Batches read off Spark's event log."""

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.event_log import PROGRESS, Batch, EventLog

START = 1_000_000.0


def progress(number: int, start: str | None, end: str, query: str = "totals", **durations: int) -> bytes:
    told = {
        "name": query,
        "batchId": number,
        "timestamp": "1970-01-12T13:46:40.000Z",
        "durationMs": {"latestOffset": 20, "triggerExecution": 1500} | (durations or {"addBatch": 1000}),
        "sources": [{"startOffset": start, "endOffset": end}],
        "stateOperators": [{"numRowsTotal": 3}, {"numRowsTotal": 4}],
    }
    return PROGRESS + b',"progress":' + json.dumps(told).encode() + b"}\n"


def test_an_event_log_is_followed_as_it_grows(tmp_path: Path) -> None:
    log, file = EventLog(tmp_path), tmp_path / "eventlog_v2_a" / "events_1_a"
    assert log.follow() == []
    file.parent.mkdir()
    whole, half = progress(0, None, '{"row": 5}'), progress(1, '{"row": 5}', '{"row": 9}')
    file.write_bytes(b'{"Event":"SparkListenerLogStart"}\n' + whole + half[:50])
    first = Batch("totals", 0, START, START + 0.02, START + 1.5, (0,), (5,), 7)
    assert log.follow() == [first]
    file.write_bytes(file.read_bytes() + half[50:])
    assert log.follow() == [first, replace(first, number=1, first_rows=(5,), end_rows=(9,))]


def test_each_query_has_its_own_batches(tmp_path: Path) -> None:
    written = progress(0, None, '{"row": 5}', "a") + progress(0, None, '{"row": 7}', "b")
    (tmp_path / "events_1_a").write_bytes(written)
    assert [batch.records for batch in EventLog(tmp_path).of("b")] == [7]


def test_a_trigger_that_ran_no_batch_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "events_1_a").write_bytes(progress(1, '{"row": 5}', '{"row": 5}', triggerExecution=3))
    assert EventLog(tmp_path).follow() == []


def test_a_batch_that_an_earlier_run_has_planned_is_planned_at_its_start(tmp_path: Path) -> None:
    told = json.loads(progress(1, '{"row": 5}', '{"row": 9}').partition(b',"progress":')[2][:-2])
    del told["durationMs"]["latestOffset"]  # Spark reads the ends of a batch that it repeats in its own log
    (tmp_path / "events_1_a").write_bytes(PROGRESS + b',"progress":' + json.dumps(told).encode() + b"}\n")
    (batch,) = EventLog(tmp_path).follow()
    assert (batch.started, batch.planned) == (START, START)
