"""A workload beside Flink: its queries over topics that both read, with results that both write as files.

All of it is in the same rounds, and so is the comparison of results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.backlog.engine import Engine, Ran, Request
from benchmarks.backlog.flink.cluster import cluster_in
from benchmarks.backlog.flink.engine import FlinkEngine
from benchmarks.backlog.flink.settings import TaskManagerMemory, memory_beside
from benchmarks.backlog.rounds import (
    Variant,
    Workload,
    as_topics,
    in_one_batch,
    in_turns,
    measured,
    request,
)
from benchmarks.backlog.scenario import Bench
from benchmarks.backlog.session import documented_session, plain_session
from benchmarks.local.drivers import Resource
from benchmarks.local.results import Measured
from support.kafka_connector import connector_conf


def measure(
    bench: Bench, workload: Workload, settings: Mapping[str, Mapping[str, str]]
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
