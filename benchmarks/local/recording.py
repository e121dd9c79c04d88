"""The records that the benchmarks read: made once, from a fixed seed, and kept under `build`.

Every key comes once in each pass over the keys, and each pass is in an order of its own: batches of any size
meet keys from all over the state, as a stream of users or devices does, and the result is known (every key has
been seen `rows / keys` times). In other spreads a key comes as often as chance has it, and its last record is marked.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

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
HOT_SHARE = 0.1
Spread = Literal["passes", "uniform", "zipf", "hot"]
"""How keys come: each once in every pass; each with the same chance; the n-th most frequent with a chance of 1/n; or
one of them with a chance of a tenth, and the others with the same."""
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


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
    spread: Spread = "passes"

    @property
    def rows(self) -> int:
        """All rows, backlog and live."""
        return self.backlog_rows + self.live_rows_per_second * self.live_seconds

    def arrived_after(self, row: int) -> float:
        """Return how many seconds after the beginning of the live part a row arrives; below 0: before it."""
        return (row - self.backlog_rows) / self.live_rows_per_second

    def event_times(self, start: int, end: int) -> Numbers:
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
    description = described_as(recording)
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


def described_as(recording: Recording) -> str:
    """Return what tells a recording from others; of what all had before there were spreads, nothing new."""
    members = {**asdict(recording), "keys": recording.keys or KEYS, "seed": SEED}
    return json.dumps(
        {name: value for name, value in members.items() if (name, value) != ("spread", "passes")}
    )


def tables(recording: Recording) -> Iterator[pa.Table]:
    """Yield the rows: `key` and `value` (64-bit integers), `event_time` (microseconds, UTC), ascending."""
    random = np.random.default_rng(SEED)
    drawn = None if recording.spread == "passes" else by_chance(random, recording)
    for start in range(0, recording.rows, ROWS_PER_FILE):
        end = min(start + ROWS_PER_FILE, recording.rows)
        if drawn is None:
            of_file, values = (
                keys(random, end - start, recording.keys or KEYS),
                random.integers(0, 1000, end - start),
            )
        else:
            of_file, values = drawn[0][start:end], drawn[1][start:end]
        times = pa.array(recording.event_times(start, end), pa.timestamp("us", tz="UTC"))
        yield pa.table({"key": of_file, "value": values, "event_time": times})


def keys(random: np.random.Generator, rows: int, count: int) -> Numbers:
    """Return the keys of one file: passes over all `count` of them, each shuffled, the last one cut short."""
    passes = [random.permutation(count) for _ in range(-(-rows // count))]
    return np.concatenate(passes)[:rows]


def by_chance(random: np.random.Generator, recording: Recording) -> tuple[Numbers, Numbers]:
    """Return keys in the order in which chance has them, and values: even but for the last record of each key.

    So the sum of a key's values is odd once its last record is in it, and not before.
    """
    count, rows = recording.keys or KEYS, recording.rows
    numbers = random.integers(0, count, rows)
    if recording.spread == "hot":
        numbers[random.random(rows) < HOT_SHARE] = 0
    if recording.spread == "zipf":
        chances = np.cumsum(1 / np.arange(1, count + 1))
        ranks = np.searchsorted(chances, random.random(rows) * chances[-1])
        numbers = random.permutation(count)[np.minimum(ranks, count - 1)]
    values = 2 * random.integers(0, 500, rows)
    _, last = np.unique(numbers[::-1], return_index=True)
    values[rows - 1 - last] += 1
    return numbers, values


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
