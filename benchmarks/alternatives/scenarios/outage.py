"""After an outage: ten million keys are in the state already when the backlog begins, and a tenth of them comes.

The state is made once, by plain Spark, and each run goes on from a copy of its checkpoint: it loads the state first,
and reads an entry of it for each key that comes. The other scenarios begin with none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.backlog.engine import Request
from benchmarks.backlog.rounds import (
    GOVERNED,
    UNCAPPED,
    Ratio,
    Variant,
    Workload,
    engines,
    in_turns,
    measured,
    request,
)
from benchmarks.backlog.scenario import WARM_UP, Bench, Scenario, of_scale
from benchmarks.backlog.session import plain_session
from benchmarks.backlog.topics import PARTITIONS, in_turn, records, topic
from benchmarks.kafka.scenario import is_kept, kept_broker
from benchmarks.local.recording import ROWS_PER_FILE, SEED, Recording, prepare
from benchmarks.local.results import Figure, Goal, Measured
from support.kafka import Broker
from support.kafka_connector import connector_conf
from support.kafka_records import Record, send

HISTORY = Recording("outage-history", 10_000_000, 3600, 1, 0, keys=10_000_000)
BACKLOG = Recording("outage-backlog", 5_000_000, 3600, 1, 0, keys=1_000_000)
"""Five passes over a tenth of the keys."""
LOW = "plain_50k"
WORKLOAD = Workload(
    "outage",
    (BACKLOG,),
    (Variant(GOVERNED, "governed"), Variant(UNCAPPED), Variant(LOW, records_per_batch=50_000)),
    (
        Ratio(Figure("outage_vs_default", "ratio", Goal("<=", 1.1)), (GOVERNED,), UNCAPPED),
        Ratio(Figure("outage_vs_50k", "ratio", Goal(">=", 5)), (LOW,), GOVERNED),
    ),
    where=", ten million keys in the state",
    settled=True,
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all rounds, each run from a copy of the same state."""
    with kept_broker(bench.root / "broker") as broker:
        whole, state = with_state(bench, broker)
        part = topic(bench, broker, BACKLOG, WARM_UP)

        def asked(of: str, state: Path | None, variant: Variant) -> Request:
            return request(WORKLOAD, variant, [of], broker.bootstrap, from_checkpoint=state)

        with engines(bench, WORKLOAD) as engine_of:
            of_part, of_whole = partial(asked, part, None), partial(asked, whole, state)
            runs = in_turns(bench, WORKLOAD, engine_of, of_part, of_whole)
    return {ratio.figure.id: measured(WORKLOAD, runs, ratio) for ratio in WORKLOAD.ratios}


def with_state(bench: Bench, broker: Broker) -> tuple[str, Path]:
    """Return the topic, and the checkpoint of a query that has read its history and not the backlog.

    Both are made anew unless both are there: the checkpoint says how far in this very topic it is.
    """
    history, backlog = (of_scale(one, bench.scale) for one in (HISTORY, BACKLOG))
    name = f"outage-{history.backlog_rows}-{backlog.backlog_rows}"
    state = bench.root / f"{name}.checkpoint"
    before, sizes = in_turn(history.backlog_rows), in_turn(history.backlog_rows + backlog.backlog_rows)
    if not state.exists() and name in broker.admin.list_topics(timeout=20).topics:
        broker.delete_topic(name)
    if is_kept(broker, name, sizes, bench.tell):
        return name, state
    shutil.rmtree(state, ignore_errors=True)
    rows = records(prepare(history, bench.data / f"{history.backlog_rows}", each_once))
    send(broker.bootstrap, name, rows)
    if broker.latest(name) != before:
        raise ValueError(f"{name} has {broker.latest(name)} records and not {before}; measure again")
    with plain_session(bench, "outage-state", connector_conf()) as session:
        session.run(Request("outage", [name], bootstrap=broker.bootstrap, to_checkpoint=state))
    send(broker.bootstrap, name, after(history.backlog_rows, records(bench.recording(BACKLOG))))
    return name, state


def after(number: int, rows: Iterator[Record]) -> Iterator[Record]:
    """Yield records that go to the partitions in turn, as those that follow so many others."""
    for row in rows:
        yield row._replace(partition=(row.partition + number) % PARTITIONS)


def each_once(recording: Recording) -> Iterator[pa.Table]:
    """Yield rows in which each key comes once, in any order: as many keys as there are rows."""
    random = np.random.default_rng(SEED)
    numbers = random.permutation(recording.rows)
    for start in range(0, recording.rows, ROWS_PER_FILE):
        of_file = numbers[start : start + ROWS_PER_FILE]
        times = pa.array(recording.event_times(start, start + len(of_file)), pa.timestamp("us", tz="UTC"))
        values = random.integers(0, 1000, len(of_file))
        yield pa.table({"key": of_file, "value": values, "event_time": times})


SCENARIO = Scenario("outage", WORKLOAD.figures, measure)
