"""Writes the readings that the example replays: a hundred minutes of sensors, a thousand readings a second.

    python3 record.py DIR [READINGS]

Called once, while the image is built. The job itself needs nothing of this.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = np.datetime64("2026-01-01T00:00:00", "us")
READINGS = 6_000_000
PER_SECOND = 1000
SENSORS = 500


def readings(count: int) -> pa.Table:
    """Return `count` readings, sorted by event time: when, which sensor, what it read."""
    chance = np.random.default_rng(1)
    at = START + np.arange(count).astype("timedelta64[us]") * (1_000_000 // PER_SECOND)
    sensor = chance.integers(0, SENSORS, count).astype(np.int16)
    celsius = (20 + 5 * chance.standard_normal(count)).round(1).astype(np.float32)
    return pa.table(
        {"at": pa.array(at).cast(pa.timestamp("us", "UTC")), "sensor": sensor, "celsius": celsius}
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    table = readings(int(sys.argv[2]) if len(sys.argv) > 2 else READINGS)
    pq.write_table(table, folder / "readings.parquet", row_group_size=100_000)
