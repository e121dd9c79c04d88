"""Recordings as topics of a broker of this machine, which keeps them between calls.

Key and value are decimal digits, and the event time is the record's timestamp, which has milliseconds. Rows go to the
partitions in turn, so that each partition has the whole span of event time, ascending; where keys come by chance, all
records of a key go to the same one, in their order, as producers send them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.backlog.scenario import Bench, of_scale
from benchmarks.kafka.scenario import is_kept
from benchmarks.local.recording import Recording
from support.kafka import Broker
from support.kafka_records import Record, send

PARTITIONS = 4


def topic(bench: Bench, broker: Broker, whole: Recording, share: float = 1.0) -> str:
    """Return a topic with a recording at the scale of `bench`, or a `share` of it; filled unless it is there."""
    scaled, by_key = of_scale(whole, bench.scale * share), whole.spread != "passes"
    name = f"{scaled.name}-{scaled.backlog_rows}"
    sizes = of_keys(bench.recording(whole, share)) if by_key else in_turn(scaled.backlog_rows)
    if is_kept(broker, name, sizes, bench.tell):
        return name
    send(broker.bootstrap, name, records(bench.recording(whole, share), by_key=by_key))
    return name


def in_turn(rows: int) -> dict[int, int]:
    """Return how many records go to each partition where they go in turn."""
    return {number: len(range(number, rows, PARTITIONS)) for number in range(PARTITIONS)}


def of_keys(directory: Path) -> dict[int, int]:
    """Return how many records go to each partition where each key has its own."""
    counts = np.zeros(PARTITIONS, dtype=np.int64)
    for rows in batches(directory):
        counts += np.bincount(rows["key"].to_numpy() % PARTITIONS, minlength=PARTITIONS)
    return dict(enumerate(counts.tolist()))


def records(directory: Path, *, by_key: bool = False) -> Iterator[Record]:
    """Yield the rows of a recording as records, in their order."""
    turns = itertools.cycle(range(PARTITIONS))
    for rows in batches(directory):
        micros, keys = rows["event_time"].cast(pa.int64()).to_pylist(), rows["key"].to_pylist()
        partitions = (key % PARTITIONS for key in keys) if by_key else itertools.islice(turns, len(keys))
        columns = zip(partitions, micros, keys, rows["value"].to_pylist(), strict=True)
        for partition, at, key, value in columns:
            yield Record(partition, at // 1000, b"%d" % value, b"%d" % key)


def batches(directory: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a recording in their order."""
    for file in sorted(directory.glob("*.parquet")):
        yield from pq.ParquetFile(file).iter_batches()
