"""The records that the benchmarks read: made once, from a fixed seed, and kept under `build`.

Every key comes once in each pass over the keys, and each pass is in an order of its own: batches of any size
meet keys from all over the state, as a stream of users or devices does, and the result is known (every key has
been seen `rows / keys` times).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CUT = datetime(2026, 1, 1, tzinfo=UTC)
"""Event time between backlog and live records. The job moves it to the moment at which it starts."""
KEYS = 1_000_000
SEED = 20_260_101
ROWS_PER_FILE = 1_000_000
ROWS_PER_GROUP = 125_000
MICROS = 1_000_000


@dataclass(frozen=True)
class Recording:
    """A recording: an even flow up to the cut, and another one after it."""

    name: str
    """Its directory, and with it the name of the source that reads it."""
    backlog_rows: int
    backlog_seconds: int
    """Event time over which the backlog is spread."""
    live_rows_per_second: int
    live_seconds: int
    keys: int | None = None
    """Different keys; None for as many as the recordings of most benchmarks have."""

    @property
    def rows(self) -> int:
        """All rows, backlog and live."""
        return self.backlog_rows + self.live_rows_per_second * self.live_seconds

    def arrived_after(self, row: int) -> float:
        """Return how many seconds after the beginning of the live part a row arrives; below 0: before it."""
        return (row - self.backlog_rows) / self.live_rows_per_second

    def event_times(self, start: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the event times of rows, in microseconds since 1970."""
        rows = np.arange(start, end) - self.backlog_rows
        slow, fast = self.backlog_seconds * MICROS / self.backlog_rows, MICROS / self.live_rows_per_second
        return int(CUT.timestamp()) * MICROS + np.where(rows < 0, rows * slow, rows * fast).astype(np.int64)


HOUR = Recording("hour", 10_000_000, 3600, 2_778, 140)
"""What a job has to catch up on that stood still for an hour; the stream then goes on as fast as before."""
STEADY = Recording("steady", 200_000, 60, 50_000, 240)
"""A stream that is live."""


def prepare(
    recording: Recording, target: Path, rows: Callable[[Recording], Iterator[pa.Table]] | None = None
) -> Path:
    """Write `tables`, or other `rows`, of a recording unless they are there; return the directory of its files."""
    directory = target / recording.name
    described = directory / "recording.json"
    description = json.dumps({**asdict(recording), "keys": recording.keys or KEYS, "seed": SEED})
    if described.exists() and described.read_text() == description:
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    described.unlink(missing_ok=True)
    for file in directory.glob("*.parquet"):
        file.unlink()
    for number, table in enumerate((rows or tables)(recording)):
        pq.write_table(table, directory / f"{number:04}.parquet", row_group_size=ROWS_PER_GROUP)
    described.write_text(description)
    return directory


def tables(recording: Recording) -> Iterator[pa.Table]:
    """Yield the rows: `key` and `value` (64-bit integers), `event_time` (microseconds, UTC), ascending."""
    random = np.random.default_rng(SEED)
    for start in range(0, recording.rows, ROWS_PER_FILE):
        end = min(start + ROWS_PER_FILE, recording.rows)
        columns = {
            "key": keys(random, end - start, recording.keys or KEYS),
            "value": random.integers(0, 1000, end - start),
            "event_time": pa.array(recording.event_times(start, end), pa.timestamp("us", tz="UTC")),
        }
        yield pa.table(columns)


def keys(random: np.random.Generator, rows: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the keys of one file: passes over all `count` of them, each shuffled, the last one cut short."""
    passes = [random.permutation(count) for _ in range(-(-rows // count))]
    return np.concatenate(passes)[:rows]


def repeated(directory: Path, times: int) -> Path:
    """Return a directory with the files of another one several times over, as links: a long recording."""
    target = directory.with_name(f"{directory.name}-{times}-times")
    target.mkdir(exist_ok=True)
    for turn in range(times):
        for file in directory.glob("*.parquet"):
            link = target / f"{turn:02}-{file.name}"
            if not link.is_symlink():
                link.symlink_to(file.resolve())
    return target
