"""Small recordings for the replay source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

EPOCH = datetime(2013, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    """The event time that many seconds after the recordings begin."""
    return EPOCH + timedelta(seconds=second)


def write_recording(
    directory: Path, files: Sequence[Sequence[float]], rows_per_group: int = 1000, *, statistics: bool = True
) -> Path:
    """Write one Parquet file for each sequence of event times (seconds); column `id` counts the rows."""
    directory.mkdir(parents=True, exist_ok=True)
    first = 0
    for number, seconds in enumerate(files):
        table = pa.table(
            {
                "id": pa.array(range(first, first + len(seconds)), pa.int64()),
                "ts": pa.array([at(second) for second in seconds], pa.timestamp("us", tz="UTC")),
            }
        )
        pq.write_table(
            table,
            directory / f"{number:03}.parquet",
            row_group_size=rows_per_group,
            write_statistics=statistics,
        )
        first += len(seconds)
    return directory
