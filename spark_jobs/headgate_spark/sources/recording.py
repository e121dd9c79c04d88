"""A recording: the rows of a directory of Parquet files, numbered from 0 in the order of file name and position.

A replay has to answer three questions quickly: how many rows lie before an event time (at each planning of a batch),
what is the event time of a row (when a replay is resumed), and what do rows a to b hold (in the executors). A Parquet
footer gives the smallest and largest time of each row group, so a search needs the footers, which stay in memory, and
the time column of one row group, of which the last ones used are kept. A recording of any length is thus searched
without loading it. Called by the replay source, in the planner's process and in the executors' Python workers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Micros = int
"""Microseconds since 1970-01-01 UTC."""


@dataclass(frozen=True)
class RowRange:
    """Rows `start` up to, not including, `end` of one row group of one file."""

    file: str
    group: int
    start: int
    end: int

    def batches(self, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches in the types that Spark expects."""
        rows = row_group(self.file, self.group).slice(self.start, self.end - self.start)
        yield from rows.to_batches(max_chunksize=rows_per_batch)


@dataclass(frozen=True)
class Recording:
    """Where each row group begins; see `open_recording`."""

    schema: pa.Schema
    groups: tuple[tuple[str, int], ...]
    """File and number in the file of each row group."""
    starts: tuple[int, ...]
    """The first row of each row group, and after the last one the number of rows."""

    @property
    def rows(self) -> int:
        return self.starts[-1]

    def ranges(self, start: int, end: int) -> Iterator[RowRange]:
        """Yield what rows `start` up to, not including, `end` consist of, in order."""
        at = bisect_right(self.starts, start) - 1
        while start < end:
            first, following = self.starts[at], self.starts[at + 1]
            stop = min(end, following)
            if stop > start:
                yield RowRange(*self.groups[at], start - first, stop - first)
            start, at = max(start, stop), at + 1


@dataclass(frozen=True)
class RowIndex:
    """Event times of a recording that is sorted by them; see `index_by_time`."""

    recording: Recording
    column: str
    latest: tuple[Micros, ...]
    """The largest event time of each row group."""

    def rows_before(self, time: Micros) -> int:
        """Count the rows whose event time is before `time`."""
        group = bisect_left(self.latest, time)
        if group == len(self.latest):
            return self.recording.rows
        return self.recording.starts[group] + int(np.searchsorted(self._times(group), time, side="left"))

    def time_of(self, row: int) -> Micros:
        """Return the event time of a row; `row` is from 0 to the number of rows minus 1."""
        group = bisect_right(self.recording.starts, row) - 1
        return int(self._times(group)[row - self.recording.starts[group]])

    def _times(self, group: int) -> npt.NDArray[np.int64]:
        return times_of_group(*self.recording.groups[group], self.column)


def open_recording(path: Path) -> Recording:
    """Read the footers of a Parquet file, or of the `*.parquet` files of a directory in order of their names.

    Raises FileNotFoundError where there is no such file, ValueError where the files differ in schema.
    """
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise FileNotFoundError(
            f"replay source: no Parquet file at {path}; set option path to a file or directory"
        )
    groups: list[tuple[str, int]] = []
    starts = [0]
    schema = spark_types(opened(str(files[0])).schema_arrow)
    for file in files:
        parquet = opened(str(file))
        if spark_types(parquet.schema_arrow) != schema:
            raise ValueError(
                f"replay source: {file} has another schema than {files[0]}; write both with one schema"
            )
        for number in range(parquet.num_row_groups):
            groups.append((str(file), number))
            starts.append(starts[-1] + parquet.metadata.row_group(number).num_rows)
    return Recording(schema, tuple(groups), tuple(starts))


def index_by_time(recording: Recording, column: str) -> RowIndex:
    """Index a recording by its event-time column, from the footers where they have statistics.

    Raises ValueError where the column is missing, is no timestamp, has nulls, or is not in ascending order.
    """
    position = recording.schema.get_field_index(column)
    if position < 0:
        names = ", ".join(recording.schema.names)
        raise ValueError(f"replay source: no column {column!r}; set option eventTime to one of: {names}")
    if not pa.types.is_timestamp(recording.schema.field(position).type):
        raise ValueError(
            f"replay source: column {column!r} is not a timestamp; set option eventTime to one that is"
        )
    latest: list[Micros] = []
    for file, group in recording.groups:
        first, last = bounds_of_group(file, group, column)
        if latest and first < latest[-1]:
            raise ValueError(
                f"replay source: {file} is not sorted by {column!r}; sort the rows before writing them"
            )
        latest.append(last)
    return RowIndex(recording, column, tuple(latest))


def bounds_of_group(file: str, group: int, column: str) -> tuple[Micros, Micros]:
    """Return the smallest and largest time of a row group, from its statistics where it has them."""
    parquet = opened(file)
    row_group_metadata = parquet.metadata.row_group(group)
    leaves = (row_group_metadata.column(leaf) for leaf in range(row_group_metadata.num_columns))
    statistics = next(leaf.statistics for leaf in leaves if leaf.path_in_schema == column)
    if statistics is not None and statistics.has_min_max and statistics.null_count == 0:
        return to_micros(statistics.min), to_micros(statistics.max)
    times = times_of_group(file, group, column)
    return int(times[0]), int(times[-1])


def to_micros(moment: Any) -> Micros:
    """Convert a datetime, taken as UTC where it has no zone."""
    return int(pa.scalar(moment).cast(pa.timestamp("us"), safe=False).value)


@lru_cache(maxsize=8)
def times_of_group(file: str, group: int, column: str) -> npt.NDArray[np.int64]:
    """Return the event times of a row group, in microseconds, of the shape (rows,)."""
    values = opened(file).read_row_group(group, columns=[column]).column(column)
    if values.null_count:
        raise ValueError(
            f"replay source: {column!r} of {file} has nulls; leave out rows without an event time"
        )
    times: npt.NDArray[np.int64] = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()
    if np.any(times[1:] < times[:-1]):
        raise ValueError(
            f"replay source: {file} is not sorted by {column!r}; sort the rows before writing them"
        )
    return times


@lru_cache(maxsize=4)
def row_group(file: str, group: int) -> pa.Table:
    """Return a row group in the types that Spark expects; the last ones are kept for the next batches."""
    table = opened(file).read_row_group(group)
    return table.cast(spark_types(table.schema), safe=False)


@lru_cache(maxsize=64)
def opened(file: str) -> pq.ParquetFile:
    """Return a Parquet file, memory-mapped, opened once per process: workers outlive their batches."""
    return pq.ParquetFile(file, memory_map=True)


def spark_types(schema: pa.Schema) -> pa.Schema:
    """Return the schema in the Arrow types that Spark uses: microseconds, UTC, short string offsets."""
    return pa.schema([field.with_type(spark_type(field.type)) for field in schema])


def spark_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    return kind
