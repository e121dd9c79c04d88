"""After an outage, beside Flink: a governed query goes on from its checkpoint, and Flink from a savepoint.

The topic is that of `outage`: ten million keys in the state, a tenth of which come five times. Each of Flink's ways
has a savepoint of its own, made once after the same records. All write their results as files, which are compared.
The driver that reads them makes no batch here, and plain Spark is compared in `outage`: two drivers of five gigabytes
and a task manager that holds so many keys would want all of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.alternatives.opponents import FLINK, name, streaming
from benchmarks.alternatives.scenarios.outage import BACKLOG, HISTORY, PAST, ROUNDS, read_plainly
from benchmarks.backlog.engine import Engine, Request
from benchmarks.backlog.flink.cluster import versions
from benchmarks.backlog.flink.engine import NOTHING
from benchmarks.backlog.flink.savepoint import FlinkAlone, save
from benchmarks.backlog.rounds import (
    GOVERNED,
    Ratio,
    Variant,
    Workload,
    in_one_batch,
    in_turns,
    measured,
    request,
)
from benchmarks.backlog.scenario import WARM_UP, Bench, Scenario, of_scale
from benchmarks.backlog.session import documented_session, plain_session
from benchmarks.backlog.topics import topic
from benchmarks.kafka.scenario import is_kept, kept_broker
from benchmarks.local.results import Figure, Measured, Report
from support.kafka_connector import connector_conf

HASHMAP, ROCKSDB = WAYS = tuple(name(backend, "60s", "") for backend in ("hashmap", "rocksdb"))
"""The faster ways of each state backend in the screening of the aggregation, which has these keys: without
mini-batches, and with few checkpoints."""
READER_HEAP = "2g"
STATE = "checkpoint"
WORKLOAD = Workload(
    "outage",
    (BACKLOG,),
    (Variant(GOVERNED, "governed"), *streaming(WAYS)),
    (
        Ratio(Figure("outage_vs_best_flink", "ratio", Report()), WAYS, GOVERNED),
        Ratio(Figure("outage_vs_flink_rocksdb", "ratio", Report()), (ROCKSDB,), GOVERNED),
    ),
    where=", ten million keys in the state, beside Flink",
    settled=True,
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all rounds, each run from a copy of what its engine has kept."""
    bench = replace(bench, rounds=min(bench.rounds, ROUNDS))
    cluster, at = bench.root / "flink", f"flink-{versions()['flink-runtime']}"
    records, ends = of_scale(HISTORY, bench.scale).backlog_rows, PAST.ends(bench)
    reads = {STATE: partial(read_plainly, bench)} | {
        f"{way}.{at}": partial(save, cluster, FLINK[way], ends, records) for way in WAYS
    }
    with kept_broker(bench.root / "broker") as broker:
        is_kept(broker, NOTHING, {0: 0}, bench.tell)
        whole, states = PAST.with_states(bench, broker, reads)
        part = topic(bench, broker, BACKLOG, WARM_UP)

        def asked(of: str, variant: Variant) -> Request:
            state = states[STATE if variant.name == GOVERNED else f"{variant.name}.{at}"]
            output = bench.root / "written" / variant.name
            goes_on_from = state if of == whole else None
            return request(WORKLOAD, variant, [of], broker.bootstrap, output, goes_on_from)

        with engines(bench, cluster) as engine_of:
            runs = in_turns(bench, WORKLOAD, engine_of, partial(asked, part), partial(asked, whole))
    return {ratio.figure.id: measured(WORKLOAD, runs, ratio) for ratio in WORKLOAD.ratios}


@contextmanager
def engines(bench: Bench, cluster: Path) -> Iterator[Mapping[str, Engine]]:
    """Start the governed driver, and one beside it that reads what Flink has written."""
    connector = connector_conf()
    small = connector | {"spark.driver.memory": READER_HEAP}
    document = in_one_batch(WORKLOAD.name)
    with (
        plain_session(bench, "outage-reader", small) as reader,
        documented_session(
            bench, "outage-beside-flink", document, connector, settled_heap=WORKLOAD.settled
        ) as governed,
    ):
        yield {"governed": governed} | {way: FlinkAlone(cluster, FLINK[way], reader.read) for way in WAYS}


SCENARIO = Scenario("outage_beside_flink", WORKLOAD.figures, measure)
