"""Recordings as topics of a broker of this machine, which keeps them between calls.

Key and value are decimal digits, and the event time is the record's timestamp, which has milliseconds. Rows go to the
partitions in turn, so that each partition has the whole span of event time, ascending.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

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
    scaled = of_scale(whole, bench.scale * share)
    name = f"{scaled.name}-{scaled.backlog_rows}"
    sizes = {number: len(range(number, scaled.backlog_rows, PARTITIONS)) for number in range(PARTITIONS)}
    if is_kept(broker, name, sizes, bench.tell):
        return name
    send(broker.bootstrap, name, records(bench.recording(whole, share)))
    return name


def records(directory: Path) -> Iterator[Record]:
    """Yield the rows of a recording as records, in their order."""
    partitions = itertools.cycle(range(PARTITIONS))
    for file in sorted(directory.glob("*.parquet")):
        for rows in pq.ParquetFile(file).iter_batches():
            micros = rows["event_time"].cast(pa.int64()).to_pylist()
            columns = zip(micros, rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
            for partition, (at, key, value) in zip(partitions, columns, strict=False):
                yield Record(partition, at // 1000, b"%d" % value, b"%d" % key)
