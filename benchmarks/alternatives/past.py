"""A backlog that a query meets with a past: a topic whose first records a checkpoint has, and which goes on.

Both are made once and kept. Each run that is measured goes on from a copy of the checkpoint, and of what lies beside
it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.backlog.engine import Request
from benchmarks.backlog.scenario import Bench, of_scale
from benchmarks.backlog.topics import PARTITIONS, in_turn, records
from benchmarks.kafka.scenario import is_kept
from benchmarks.local.recording import Recording, prepare
from headgate_spark.engine.checkpoint import side_directory
from support.kafka import Broker
from support.kafka_records import Record, send


@dataclass(frozen=True)
class Past:
    """What a query has read, and what it has not."""

    query: str
    """Its name, and that of its workload."""
    history: Recording
    backlog: Recording
    rows: Callable[[Recording], Iterator[pa.Table]] | None = None
    """Of the history, where they are not as in other recordings."""

    def with_state(self, bench: Bench, broker: Broker, read: Callable[[Request], object]) -> tuple[str, Path]:
        """Return the topic, and the checkpoint of the query that has read its history and not the backlog.

        Both are made anew unless both are there: the checkpoint says how far in this very topic it is. `read` has
        the query run.
        """
        history, backlog = (of_scale(one, bench.scale) for one in (self.history, self.backlog))
        name = f"{history.name}-{history.backlog_rows}-{backlog.backlog_rows}"
        state = (bench.root / f"{name}.checkpoint").resolve()
        before, sizes = in_turn(history.backlog_rows), in_turn(history.backlog_rows + backlog.backlog_rows)
        if not state.exists() and name in broker.admin.list_topics(timeout=20).topics:
            broker.delete_topic(name)
        if is_kept(broker, name, sizes, bench.tell):
            return name, state
        for of_old in (state, Path(side_directory(str(state)))):
            shutil.rmtree(of_old, ignore_errors=True)
        send(
            broker.bootstrap,
            name,
            records(prepare(history, bench.data / f"{history.backlog_rows}", self.rows)),
        )
        if broker.latest(name) != before:
            raise ValueError(f"{name} has {broker.latest(name)} records and not {before}; measure again")
        read(Request(self.query, [name], bootstrap=broker.bootstrap, to_checkpoint=state))
        send(broker.bootstrap, name, after(history.backlog_rows, records(bench.recording(self.backlog))))
        return name, state


def after(number: int, rows: Iterator[Record]) -> Iterator[Record]:
    """Yield records that go to the partitions in turn, as those that follow so many others."""
    for row in rows:
        yield row._replace(partition=(row.partition + number) % PARTITIONS)
