"""A backlog that a query meets with a past: a topic whose first records a checkpoint has, and which goes on.

Both are made once and kept. Each run that is measured goes on from a copy of the checkpoint, and of what lies beside
it. Where engines are compared, each has a checkpoint of its own, after the same records.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.backlog.engine import Request
from benchmarks.backlog.scenario import Bench, of_scale
from benchmarks.backlog.topics import PARTITIONS, in_turn, records
from benchmarks.kafka.scenario import is_kept
from benchmarks.local.recording import Recording, prepare
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

        `read` has the query run, by Spark.
        """
        name, states = self.with_states(bench, broker, {"checkpoint": read})
        return name, states["checkpoint"]

    def with_states(
        self, bench: Bench, broker: Broker, reads: Mapping[str, Callable[[Request], object]]
    ) -> tuple[str, dict[str, Path]]:
        """Return the topic, and by their names the checkpoints of queries that have read its history alone.

        All are made anew unless all are there: a checkpoint says how far in this very topic it is, and is made
        before the backlog is there. `reads` have the query run.
        """
        history = of_scale(self.history, bench.scale).backlog_rows
        name = f"{self.history.name}-{history}-{of_scale(self.backlog, bench.scale).backlog_rows}"
        states = {of: (bench.root / f"{name}.{of}").resolve() for of in reads}
        is_there = all(state.exists() for state in states.values())
        if not is_there and name in broker.admin.list_topics(timeout=20).topics:
            broker.delete_topic(name)
        if is_kept(broker, name, self.ends(bench), bench.tell):
            return name, states
        for of_old in bench.root.glob(f"{name}.*"):
            shutil.rmtree(of_old)
        recording = prepare(of_scale(self.history, bench.scale), bench.data / f"{history}", self.rows)
        send(broker.bootstrap, name, records(recording))
        if broker.latest(name) != in_turn(history):
            raise ValueError(f"{name} has {broker.latest(name)} records and not {history}; measure again")
        for of, read in reads.items():
            bench.tell(f"making {states[of].name}")
            read(Request(self.query, [name], bootstrap=broker.bootstrap, to_checkpoint=states[of]))
        send(broker.bootstrap, name, after(history, records(bench.recording(self.backlog))))
        return name, states

    def ends(self, bench: Bench) -> dict[int, int]:
        """Return where the partitions of the topic end, with the backlog."""
        history, backlog = (of_scale(one, bench.scale).backlog_rows for one in (self.history, self.backlog))
        return in_turn(history + backlog)


def after(number: int, rows: Iterator[Record]) -> Iterator[Record]:
    """Yield records that go to the partitions in turn, as those that follow so many others."""
    for row in rows:
        yield row._replace(partition=(row.partition + number) % PARTITIONS)
