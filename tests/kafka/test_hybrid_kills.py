"""`kill -9` at the switch from files to a topic: the next run goes on from there, and each record is read once."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support.driver import driver, ids_in
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Record, send

pytestmark = pytest.mark.spark

DIES = Path(__file__).parents[1] / "data" / "dies"
FILES, FILE_ROWS, LIVE = 6, 100, 400
HISTORY = FILES * FILE_ROWS


def write_history(folder: Path) -> None:
    folder.mkdir()
    for number in range(FILES):
        ids = range(number * FILE_ROWS, (number + 1) * FILE_ROWS)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), folder / f"part-{number}.parquet")


def saved(checkpoint: Path) -> list[str]:
    """Return the histories that the newest memory beside the checkpoint has as read."""
    kept = (checkpoint.parent / f"{checkpoint.name}.headgate").glob("hybrid.*.json")
    newest = max(kept, key=lambda path: int(path.name.split(".")[1]), default=None)
    return [] if newest is None else json.loads(newest.read_text())["finished"]


def test_a_kill_on_either_side_of_the_switch_neither_loses_nor_doubles_a_record(
    kafka: Broker, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    send(
        kafka.bootstrap,
        topic,
        (Record(n % 2, 1_700_000_000_000 + n, str(n).encode()) for n in range(HISTORY + LIVE)),
    )
    write_history(tmp_path / "history")
    starting = json.dumps({topic: {"0": HISTORY // 2, "1": HISTORY // 2}})
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    arguments = ("hybrid_kafka.py", tmp_path / "history", kafka.bootstrap, topic, starting, out, checkpoint)
    conf = {"spark.jars": ",".join(map(str, connector_jars()))}
    sources = {
        "history": SourceControl(),
        topic: SourceControl(after="history", rate_limit=RateControl(records_per_checkpoint=LIVE // 4)),
    }
    control = {"hybrid": QueryControl(sources=sources, batch=BatchControl(target_seconds=3600))}
    for moment in ("before", "after"):
        folder = tmp_path / moment
        dies = {"PYTHONPATH": str(DIES), "DIES": moment}
        with driver(folder, *arguments, control=control, conf=conf, environment=dies) as killed:
            assert killed.wait() == -signal.SIGKILL, killed.log[-3000:]
        assert saved(checkpoint) == ([] if moment == "before" else ["history"])
        assert sorted(ids_in(out)) == list(range(HISTORY))
    with driver(tmp_path / "then", *arguments, control=control, conf=conf) as running:
        running.wait_for_metric(
            "headgate_source_pending_records", lambda v: v == 0 and len(ids_in(out)) > HISTORY, source=topic
        )
        assert running.metric("headgate_source_phase", source=topic) == 0
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    assert sorted(ids_in(out)) == list(range(HISTORY + LIVE))
