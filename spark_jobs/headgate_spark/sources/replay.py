"""`format("replay")`: a recording played to a streaming query as if it happened now.

Tests, demonstrations and benchmarks of a stream need input that is real, repeatable, and arrives over time. This
source reads Parquet files sorted by event time: what lies before the `cut` has arrived at once (a backlog), what lies
after arrives at `speed` times real time (live data). It is an ordinary source: any Spark query may use it.

    reader = spark.readStream.format("replay").option("eventTime", "scheduled")
    flights = reader.option("cut", "2013-11-25").option("speed", 3600).load("data/flights")

An offset is the number of rows read, `{"row": n}`, so a batch may end at any row. Wall-clock zero of the replay is

- `startedAt`, where it is given (seconds since 1970): arrival does not depend on who reads when;
- the time at which the file `startedBy` was last changed: someone else opens the tap;
- else the first planning of a query; after a restart arrival resumes at the last row read, so that it never
  goes back, and the time that the query was down does not count.

Spark builds the reader in two Python processes of the driver: one plans batches for as long as the query runs, the
other pickles it for the executors. It therefore opens nothing until it is asked, and takes nothing open along.
Admission control, and with it `rowsPerBatch`, needs Spark 4.2; on 4.0 and 4.1 each batch reads all that has arrived.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headgate_spark.sources.arrival import KNOWN_OPTIONS, ReplayOptions, parse_options
from headgate_spark.sources.recording import Recording, RowIndex, RowRange, index_by_time, open_recording

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL = True
except ImportError:  # Spark 4.0 and 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in where Spark has no such mixin."""

    HAS_ADMISSION_CONTROL = False

Offset = dict[str, int]

ROWS_PER_TASK = 10_000
"""A task that reads fewer rows costs more than it saves, so small batches are split into fewer tasks."""
ROWS_PER_ARROW_BATCH = 50_000


@dataclass
class ReplayPartition(InputPartition):
    """What one task reads: it says where the rows are, so that executors need no index."""

    ranges: tuple[RowRange, ...]


class ReplayDataSource(DataSource):
    """The data source named `replay`."""

    @classmethod
    def name(cls) -> str:
        return "replay"

    def schema(self) -> StructType:
        return from_arrow_schema(open_recording(self._parsed().path).schema, prefer_timestamp_ntz=True)

    def streamReader(self, schema: StructType) -> "ReplayStreamReader":  # noqa: ARG002 (Spark passes it)
        """Return the reader of a stream; ValueError where the options do not make sense."""
        options = self._parsed()
        if not HAS_ADMISSION_CONTROL:
            refuse_what_needs_admission_control(options)
        return ReplayStreamReader(options)

    def _parsed(self) -> ReplayOptions:
        given = {name: self.options[name] for name in KNOWN_OPTIONS if name in self.options}
        return parse_options(given)


def refuse_what_needs_admission_control(options: ReplayOptions) -> None:
    """Raise ValueError for what cannot be done where Spark does not tell a source the start of a batch."""
    if options.rows_per_batch:
        raise ValueError("replay source: option rowsPerBatch needs Spark 4.2 or newer; leave it out")
    if options.schedule and not (options.started_at or options.started_by):
        raise ValueError(
            "replay source: before Spark 4.2 option cut needs startedAt or startedBy; set one of them"
        )


class ReplayStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver and reads their rows in the executors.

    Spark calls `latestOffset` at each trigger, in a process of its own, and `read` in the workers of the executors.
    """

    def __init__(self, options: ReplayOptions, clock: Callable[[], float] = time.time) -> None:
        """Plan by `options`; `clock` tells the time in seconds since 1970."""
        self._options = options
        self._clock = clock
        self._zero = options.started_at
        self._frozen: int | None = None
        self._reached = 0

    def __getstate__(self) -> dict[str, Any]:
        """Take the options along, and nothing that was opened."""
        return {"_options": self._options}

    @cached_property
    def _recording(self) -> Recording:
        return open_recording(self._options.path)

    @cached_property
    def _times(self) -> RowIndex:
        return index_by_time(self._recording, self._options.event_time or "")

    def initialOffset(self) -> Offset:
        return {"row": 0}

    def getDefaultReadLimit(self) -> "ReadLimit":
        """Return the cap that the user set; a caller with a limit of its own passes that instead."""
        cap = self._options.rows_per_batch
        return ReadMaxRows(cap) if cap else ReadAllAvailable()

    def latestOffset(self, start: Offset | None = None, limit: "ReadLimit | None" = None) -> Offset:
        """Return where the next batch ends: what has arrived, at most `limit` rows past `start`.

        Spark before 4.2 passes neither.
        """
        first = start["row"] if start else 0
        end = max(first, self._arrived(first))
        if HAS_ADMISSION_CONTROL and isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return {"row": end}

    def reportLatestOffset(self) -> Offset | None:
        """Return what has arrived, for the progress of the query; None until the replay has begun."""
        if self._options.schedule and self._started() is None and not self._options.started_by:
            return None
        return {"row": self._arrived(0)}

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the query end at what has arrived by now."""
        self._frozen = self._arrived(0)

    def partitions(self, start: Offset, end: Offset) -> Sequence[ReplayPartition]:
        """Split the rows of a batch evenly over the tasks; none for an empty batch."""
        rows = end["row"] - start["row"]
        if rows <= 0:
            return []
        tasks = min(self._options.partitions, math.ceil(rows / ROWS_PER_TASK))
        bounds = [start["row"] + rows * task // tasks for task in range(tasks + 1)]
        return [ReplayPartition(tuple(self._recording.ranges(*span))) for span in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReplayPartition)  # noqa: S101
        for rows in partition.ranges:
            yield from rows.batches(ROWS_PER_ARROW_BATCH)

    def _arrived(self, first: int) -> int:
        """Count the rows that have arrived for a query that has read up to row `first`; it never falls."""
        if self._frozen is None:
            self._reached = max(self._reached, self._arrived_by_clock(first))
            return self._reached
        return self._frozen

    def _arrived_by_clock(self, first: int) -> int:
        schedule = self._options.schedule
        if schedule is None:
            return self._recording.rows
        zero = self._started()
        if zero is None and not self._options.started_by:
            zero = self._zero = self._clock() - self._elapsed_when_reading(first)
        elapsed = 0.0 if zero is None else self._clock() - zero
        return self._times.rows_before(schedule.event_time_reached(elapsed))

    def _started(self) -> float | None:
        """Return wall-clock zero in seconds since 1970; None where the replay has not begun."""
        if self._zero is None and self._options.started_by and self._options.started_by.exists():
            self._zero = self._options.started_by.stat().st_mtime
        return self._zero

    def _elapsed_when_reading(self, first: int) -> float:
        """Return how many seconds of the replay had passed when the last row before `first` arrived."""
        if first == 0 or self._options.schedule is None:
            return 0.0
        return self._options.schedule.seconds_until(self._times.time_of(first - 1))
