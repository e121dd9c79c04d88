"""The replay source in real queries: found by its name, each row once, over restarts too."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from support.recordings import at, write_recording
from support.spark import committed_batches, planned_offsets, wait_until

pytestmark = pytest.mark.spark

ROWS = 1000
BACKLOG = 600


def start(
    spark: SparkSession, root: Path, trigger: dict[str, object] | None = None, **options: object
) -> StreamingQuery:
    """Copy the recording to Parquet; it is a row a second."""
    recording = root / "recording"
    if not recording.exists():
        write_recording(recording, [range(ROWS // 2), range(ROWS // 2, ROWS)], rows_per_group=130)
    stream = spark.readStream.format("replay").options(**options).load(str(recording))
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(root / "checkpoint"))
    return writer.trigger(**(trigger or {"processingTime": "50 milliseconds"})).start(str(root / "out"))


def rows_planned(root: Path) -> int:
    """Where the last committed batch ends."""
    batches = committed_batches(root / "checkpoint")
    return json.loads(planned_offsets(root / "checkpoint", batches[-1])[0])["row"] if batches else 0


def ids_written(root: Path) -> list[int]:
    table = ds.dataset([str(file) for file in (root / "out").glob("*.parquet")]).to_table()
    return sorted(table.column("id").to_pylist())


def test_backlog_and_live_rows_are_each_read_once_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    cut, live = at(BACKLOG).isoformat(), tmp_path / "live"
    options = {"eventTime": "ts", "cut": cut, "startedBy": live, "speed": 200, "rowsPerBatch": 170}
    query = start(spark, tmp_path, **options)
    wait_until(lambda: rows_planned(tmp_path) > BACKLOG // 2, "half of the backlog")
    query.stop()
    assert rows_planned(tmp_path) <= BACKLOG
    live.touch()
    query = start(spark, tmp_path, **options)
    wait_until(lambda: rows_planned(tmp_path) == ROWS, "the last row")
    query.stop()
    assert ids_written(tmp_path) == list(range(ROWS))


def test_the_users_cap_bounds_each_batch(spark: SparkSession, tmp_path: Path) -> None:
    query = start(spark, tmp_path, {"availableNow": True}, rowsPerBatch=300)
    assert query.awaitTermination(240)
    ends = [
        json.loads(planned_offsets(tmp_path / "checkpoint", n)[0])["row"]
        for n in committed_batches(tmp_path / "checkpoint")
    ]
    assert ends == [300, 600, 900, 1000]


def test_a_query_that_ends_by_itself_leaves_what_has_not_arrived(spark: SparkSession, tmp_path: Path) -> None:
    query = start(
        spark,
        tmp_path,
        {"availableNow": True},
        eventTime="ts",
        cut=at(BACKLOG).isoformat(),
        startedBy="/none",
    )
    assert query.awaitTermination(240)
    assert ids_written(tmp_path) == list(range(BACKLOG))


def test_bad_options_reach_the_user_with_the_remedy(spark: SparkSession, tmp_path: Path) -> None:
    write_recording(tmp_path / "recording", [range(3)])
    with pytest.raises(Exception, match="option cut is set but eventTime is not; set eventTime"):
        start(spark, tmp_path, cut="2013-01-01")
