"""Beside Flink: the queries over topics that both read, with results that both write as files.

Flink in streaming mode, with state in RocksDB and an incremental checkpoint every five seconds, is what a backlog is
worked off with there. Where its mini-batches apply, it runs with and without them, and the faster run of each round
counts. Its batch mode is beside them, in the first round: its limit. All of it is in the same rounds, and so is the
comparison of results. coGroup has a batch job of Spark beside it as well: no stream of Spark could be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.backlog.engine import Engine, Ran, Request
from benchmarks.backlog.flink.cluster import cluster_in
from benchmarks.backlog.flink.engine import FlinkEngine
from benchmarks.backlog.flink.settings import BATCH as FLINK_BATCH
from benchmarks.backlog.flink.settings import MINI_BATCH, STREAMING, TaskManagerMemory, memory_beside
from benchmarks.backlog.rounds import (
    BATCH,
    GOVERNED,
    Ratio,
    Variant,
    Workload,
    as_topics,
    in_one_batch,
    in_turns,
    measured,
    request,
)
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.scenarios import aggregation, cogroup, deduplication, join, windows
from benchmarks.backlog.session import documented_session, plain_session
from benchmarks.local.drivers import Resource
from benchmarks.local.results import Figure, Goal, Measured, Report
from support.kafka_connector import connector_conf

SETTINGS = {"flink": STREAMING, "flink_mini_batch": MINI_BATCH, "flink_batch": FLINK_BATCH}
ONE_BY_ONE, COMBINED = ("flink",), ("flink", "flink_mini_batch")


def beside(
    workload: Workload, goal: Goal | Report, streaming: tuple[str, ...], *, limited: bool = False
) -> Workload:
    """Return a workload as it is run beside Flink, with the ways in which Flink streams it.

    Where it is `limited`, there is a figure of what a batch job of Spark reaches, too.
    """
    of_spark = [one for one in workload.variants if one.name == GOVERNED or (limited and one.name == BATCH)]
    others = (
        *(Variant(name, name, one_by_one=True) for name in streaming),
        Variant("flink_batch", "flink_batch", "batch", once=True),
    )
    goals = {GOVERNED: ("", goal), BATCH: ("_batch", Report())}
    ratios = [
        Ratio(Figure(f"{workload.name}{what}_vs_flink_streaming", "ratio", wanted), streaming, variant.name)
        for variant in of_spark
        for what, wanted in [goals[variant.name]]
    ]
    return Workload(workload.name, workload.sides, (*of_spark, *others), ratios, where=" beside Flink")


def measure(
    bench: Bench, workload: Workload, settings: Mapping[str, Mapping[str, str]] = SETTINGS
) -> Mapping[str, Measured]:
    """Run all rounds of a workload; `settings` are those of Flink, by the name of the engine."""
    runs = ran(bench, workload, settings)
    return {ratio.figure.id: measured(workload, runs, ratio) for ratio in workload.ratios}


def ran(bench: Bench, workload: Workload, settings: Mapping[str, Mapping[str, str]]) -> dict[str, list[Ran]]:
    """Return the runs of all rounds of a workload."""
    with as_topics(bench, workload) as inputs, engines(bench, workload.name, settings) as engine_of:

        def asked(topics: Sequence[str], variant: Variant) -> Request:
            written = bench.root / "written" / variant.name
            return request(workload, variant, topics, inputs.bootstrap, written)

        of_part, of_whole = (partial(asked, topics) for topics in (inputs.part, inputs.whole))
        return in_turns(bench, workload, engine_of, of_part, of_whole)


@contextmanager
def engines(
    bench: Bench, workload: str, settings: Mapping[str, Mapping[str, str]]
) -> Iterator[Mapping[str, Engine]]:
    """Start what the variants run in, and a driver beside them that reads what Flink has written."""
    name, connector = f"{workload}-beside-flink", connector_conf()
    with (
        cluster_in(bench.root / "flink", memory()) as cluster,
        plain_session(bench, f"{name}-reader", connector) as reader,
        documented_session(bench, f"{name}-governed", in_one_batch(workload), connector) as governed,
    ):
        flink = {way: FlinkEngine(cluster, of_way, reader.read) for way, of_way in settings.items()}
        yield {"governed": governed, "plain": reader, **flink}


def memory() -> TaskManagerMemory:
    """Return the memory of a task manager beside the drivers of all benchmarks."""
    return memory_beside(Resource.read().manifest["spec"]["driver"]["memory"])


WORKLOADS = (
    beside(aggregation.WORKLOAD, Goal(">=", 2), COMBINED),
    beside(cogroup.WORKLOAD, Goal(">=", 8), COMBINED, limited=True),
    beside(join.WORKLOAD, Goal(">=", 8), ONE_BY_ONE),
    beside(windows.WORKLOAD, Report(), ONE_BY_ONE),
    beside(deduplication.WORKLOAD, Report(), ONE_BY_ONE),
)
SCENARIOS = tuple(
    Scenario(f"{each.name}_beside_flink", each.figures, partial(measure, workload=each)) for each in WORKLOADS
)
