"""After an outage: ten million keys are in the state already when the backlog begins, and a tenth of them comes.

The state is made once, by plain Spark, and each run goes on from a copy of its checkpoint: it loads the state first,
and reads an entry of it for each key that comes. The other scenarios begin with none. The checkpoint has the state as
a snapshot, as that of a query that has run for minutes: one batch alone would leave a log of ten million changes,
which each run would replay first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.alternatives.past import Past
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
from benchmarks.backlog.scenario import WARM_UP, Bench, Scenario
from benchmarks.backlog.session import plain_session
from benchmarks.backlog.topics import topic
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.recording import ROWS_PER_FILE, SEED, Recording
from benchmarks.local.results import Figure, Goal, Measured
from support.kafka_connector import connector_conf

HISTORY = Recording("outage-past", 10_000_000, 3600, 1, 0, keys=10_000_000)
BACKLOG = Recording("outage-backlog", 5_000_000, 3600, 1, 0, keys=1_000_000)
"""Five passes over a tenth of the keys."""
ROUNDS = 3
"""At the most: a hundred small batches beside so many keys take minutes."""
LOW = "plain_50k"
SNAPSHOTS = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"}
"""Of what makes the state; runs that go on from it write changes, as the session says."""
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
    bench = replace(bench, rounds=min(bench.rounds, ROUNDS))
    with kept_broker(bench.root / "broker") as broker:
        whole, state = PAST.with_state(bench, broker, partial(read_plainly, bench))
        part = topic(bench, broker, BACKLOG, WARM_UP)

        def asked(of: str, state: Path | None, variant: Variant) -> Request:
            return request(WORKLOAD, variant, [of], broker.bootstrap, from_checkpoint=state)

        with engines(bench, WORKLOAD) as engine_of:
            of_part, of_whole = partial(asked, part, None), partial(asked, whole, state)
            runs = in_turns(bench, WORKLOAD, engine_of, of_part, of_whole)
    return {ratio.figure.id: measured(WORKLOAD, runs, ratio) for ratio in WORKLOAD.ratios}


def read_plainly(bench: Bench, request: Request) -> None:
    """Have plain Spark run a query."""
    with plain_session(bench, "outage-state", connector_conf() | SNAPSHOTS) as session:
        session.run(request)


def each_once(recording: Recording) -> Iterator[pa.Table]:
    """Yield rows in which each key comes once, in any order: as many keys as there are rows."""
    random = np.random.default_rng(SEED)
    numbers = random.permutation(recording.rows)
    for start in range(0, recording.rows, ROWS_PER_FILE):
        of_file = numbers[start : start + ROWS_PER_FILE]
        times = pa.array(recording.event_times(start, start + len(of_file)), pa.timestamp("us", tz="UTC"))
        values = random.integers(0, 1000, len(of_file))
        yield pa.table({"key": of_file, "value": values, "event_time": times})


PAST = Past("outage", HISTORY, BACKLOG, each_once)
SCENARIO = Scenario("outage", WORKLOAD.figures, measure)
