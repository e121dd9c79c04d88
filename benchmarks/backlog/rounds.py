"""Rounds in which every variant of a workload takes its turn, and what their times come to.

Each round begins with another variant, and each ratio is between runs of one round, so that both meet the same
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.backlog.engine import Engine, Mode, Ran, Request
from benchmarks.backlog.scenario import WARM_UP, Bench
from benchmarks.backlog.session import documented_session, plain_session
from benchmarks.backlog.topics import topic
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.recording import Recording
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured
from benchmarks.local.statistics import divided, median_interval, rotated
from headgate_contract import ControlDocument, QueryControl
from support.kafka_connector import connector_conf

UNCAPPED, GOVERNED, BATCH = "plain_uncapped", "headgate", "batch"


@dataclass(frozen=True)
class Variant:
    """One way to run a workload."""

    name: str
    engine: str = "plain"
    mode: Mode = "stream"
    records_per_batch: int | None = None
    once: bool = False
    """Whether it runs in the first round alone: no figure is taken of it, it is there to be read beside them."""
    one_by_one: bool = False
    """Whether its engine takes records one by one, so that how many there are makes no other batches."""
    query: str | None = None
    """The name of its query; None: the workload's."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Properties of the session that hold for its runs alone."""


@dataclass(frozen=True)
class Ratio:
    """A figure: how many times as long one variant takes as another one."""

    figure: Figure
    longer: tuple[str, ...]
    """Where there are several, the fastest in each round of those that run in it."""
    shorter: str


@dataclass(frozen=True)
class Workload:
    """A query, what it reads, and how it is run."""

    name: str
    """By the name that it has in `jobs/workloads.py`."""
    sides: Sequence[Recording]
    variants: Sequence[Variant]
    ratios: Sequence[Ratio]
    where: str = ""
    """What results say of it beside its name."""
    beforehand: Sequence[Variant] = ()
    """Run once, before anything counts: small batches for a driver that would only make large ones."""
    all_warm: bool = False
    """Whether engines that take records one by one run over the whole once before anything counts, too. Then several
    variants share each engine, and those in one batch need half of their warm-ups."""
    short: bool = False
    """Whether its runs take seconds, so that it counts what state a JVM is in: how much it has compiled, how large
    its heap has grown, and how long it has lain idle while another one worked."""

    settled: bool = False
    """Whether heaps are whole from the start, as they are where runs are `short`: growing heaps and the full
    collections that go with it come to either driver at another run."""

    @property
    def title(self) -> str:
        """What it is called in results."""
        return self.name + self.where

    @property
    def records(self) -> int:
        """Records of all sides."""
        return sum(side.backlog_rows for side in self.sides)

    @property
    def warm_ups(self) -> int:
        """How often what makes one batch runs before anything counts: by then its times fall no more."""
        return 24 if self.short else 2 if self.all_warm else 4

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What is measured."""
        return tuple(ratio.figure for ratio in self.ratios)


def variants(
    *low: tuple[str, int], governed: Mode = "stream", uncapped_once: bool = False
) -> tuple[Variant, ...]:
    """Return the variants of a workload: `low` has the names and batch sizes of those at low latency."""
    return (
        Variant(GOVERNED, "governed", governed),
        Variant(BATCH, mode="batch"),
        Variant(UNCAPPED, once=uncapped_once),
        *(Variant(name, records_per_batch=records) for name, records in low),
    )


def faster(name: str, than: str, goal: float) -> Ratio:
    """Return the figure of how many times as fast Headgate is as a variant."""
    return Ratio(Figure(name, "ratio", Goal(">=", goal), COLUMNS), (than,), GOVERNED)


def part_of_batch(name: str, goal: float) -> Ratio:
    """Return the figure of which part of the speed of a batch job Headgate reaches."""
    return Ratio(Figure(name, "ratio", Goal(">=", goal), COLUMNS), (BATCH,), GOVERNED)


@dataclass(frozen=True)
class Inputs:
    """The topics that the sides of a workload are read from."""

    whole: Sequence[str]
    part: Sequence[str]
    """A small part of the same, which every variant that counts reads before anything does."""
    bootstrap: str
    """Where the broker is."""


@contextmanager
def as_topics(bench: Bench, workload: Workload) -> Iterator[Inputs]:
    """Have the recordings of a workload as topics, which Spark reads in the same way in streams and in batches."""
    with kept_broker(bench.root / "broker") as broker:
        whole, part = (
            [topic(bench, broker, side, share) for side in workload.sides] for share in (1.0, WARM_UP)
        )
        yield Inputs(whole, part, broker.bootstrap)


def measure(bench: Bench, workload: Workload) -> dict[str, Measured]:
    """Run all rounds of a workload; returns its ratios."""
    runs = ran(bench, workload)
    return {ratio.figure.id: measured(workload, runs, ratio) for ratio in workload.ratios}


def ran(bench: Bench, workload: Workload) -> dict[str, list[Ran]]:
    """Run every variant once per round; returns their runs. Raises `DifferentOutputsError`."""
    with as_topics(bench, workload) as inputs, engines(bench, workload) as engine_of:
        return in_turns(
            bench,
            workload,
            engine_of,
            lambda variant: request(workload, variant, inputs.part, inputs.bootstrap),
            lambda variant: request(workload, variant, inputs.whole, inputs.bootstrap),
        )


def in_turns(
    bench: Bench,
    workload: Workload,
    engine_of: Mapping[str, Engine],
    of_part: Callable[[Variant], Request],
    of_whole: Callable[[Variant], Request],
) -> dict[str, list[Ran]]:
    """Run the variants over a part, and then once per round over the whole; returns the runs of the rounds.

    Those that are to run `once` have the first round only. Those that make one batch of the whole run over it before
    the first round as well, a few times: with hundreds of batches a round, or records one by one, a JVM is warm
    sooner. Where runs are `short` they also run once more just before each run that counts: a driver that has waited
    minutes for the other one is slower at first.
    """
    runs: dict[str, list[Ran]] = {variant.name: [] for variant in workload.variants}
    bench.comparison.begin(workload.title)
    warm_up(bench, workload, engine_of, of_part, of_whole)
    counting = [variant for variant in workload.variants if not variant.once]
    of_one_batch = in_one(counting)
    for turn in range(bench.rounds):
        taking_part = counting if turn else workload.variants
        for variant in rotated(taking_part, turn):
            if workload.short and variant in of_one_batch:
                engine_of[variant.engine].run(of_whole(variant))
            run = engine_of[variant.engine].run(of_whole(variant))
            runs[variant.name].append(run)
            bench.tell(f"round {turn + 1}, {variant.name}: {run.seconds:.1f} s, batches: {run.batches}")
        outputs = {variant.name: runs[variant.name][-1].output for variant in taking_part}
        bench.comparison.compare(workload.title, outputs)
    return runs


def warm_up(
    bench: Bench,
    workload: Workload,
    engine_of: Mapping[str, Engine],
    of_part: Callable[[Variant], Request],
    of_whole: Callable[[Variant], Request],
) -> None:
    """Run the variants of which a figure is taken over a part, and those in one batch a few times over the whole.

    Those that run over the whole once before anything counts do without the part. Where all are to be warm, those
    that run once have the part, too.
    """
    counting = [variant for variant in workload.variants if not variant.once]
    of_others = [one for one in counting if one.one_by_one and workload.all_warm]
    for variant in workload.variants if workload.all_warm else counting:
        if variant not in of_others:
            engine_of[variant.engine].run(of_part(variant))
    for variant in [*workload.beforehand, *of_others, *(in_one(counting) * workload.warm_ups)]:
        run = engine_of[variant.engine].run(of_whole(variant))
        bench.tell(f"warm-up, {variant.name}: {run.seconds:.1f} s, batches: {run.batches}")


def in_one(variants: Sequence[Variant]) -> list[Variant]:
    """Return those that make one batch of all records."""
    return [one for one in variants if one.records_per_batch is None and not one.one_by_one]


@contextmanager
def engines(bench: Bench, workload: Workload) -> Iterator[Mapping[str, Engine]]:
    """Start what the variants run in."""
    name, connector, document = workload.name, connector_conf(), in_one_batch(workload.name)
    settled = workload.short or workload.settled
    with (
        plain_session(bench, f"{name}-plain", connector, settled_heap=settled) as beside,
        documented_session(bench, f"{name}-governed", document, connector, settled_heap=settled) as governed,
    ):
        yield {"plain": beside, "governed": governed}


def in_one_batch(query: str) -> ControlDocument:
    """Return the document of a query that is in backlog and has `intervalDuringBacklog: 0s`."""
    control = QueryControl(interval_seconds=0.5, interval_during_backlog_seconds=0, backlog=True)
    return ControlDocument(generation=1, queries={query: control})


def request(
    workload: Workload,
    variant: Variant,
    inputs: Sequence[str],
    bootstrap: str,
    output: Path | None = None,
    from_checkpoint: Path | None = None,
) -> Request:
    """Return what is asked of an engine for one run."""
    return Request(
        workload.name,
        inputs,
        variant.mode,
        variant.records_per_batch,
        bootstrap,
        output,
        variant.query,
        from_checkpoint,
        conf=variant.conf,
    )


def interval(ratios: Sequence[float]) -> dict[str, float]:
    """Return the interval of a median, as details have it."""
    low, high = median_interval(ratios)
    return {"interval_low": low, "interval_high": high}


def measured(workload: Workload, runs: Mapping[str, Sequence[Ran]], ratio: Ratio) -> Measured:
    """Return a ratio in each round in which one of the longer ones ran, its interval, and the times of all variants.

    What runs once has run in the first round.
    """
    longer = [[run.seconds for run in runs[name]] for name in ratio.longer]
    fastest = [min(each) for each in zip_longest(*longer, fillvalue=inf)]
    shorter = [run.seconds for run in runs[ratio.shorter]]
    ratios = divided(fastest, shorter[: len(fastest)])
    return Measured(ratios, {**interval(ratios), **times(workload, runs)})


def times(workload: Workload, runs: Mapping[str, Sequence[Ran]]) -> dict[str, Any]:
    """Return the times of all variants, with what they were taken of, as details have them."""
    seconds = {name: [run.seconds for run in found] for name, found in runs.items()}
    details: dict[str, Any] = {
        "workload": workload.title,
        "records": workload.records,
        "seconds": seconds,
        "batches": {name: [run.batches for run in found] for name, found in runs.items()},
    }
    if repeated := largest(workload, runs):
        details["largest"] = repeated
    if cpu := cpu_seconds(runs):
        details["cpu_seconds"] = cpu
    if submitting := submitting_seconds(runs):
        details["submitting_seconds"] = submitting
    return details


def largest(workload: Workload, runs: Mapping[str, Sequence[Ran]]) -> dict[str, list[int]]:
    """Return the most records that a failure repeats in each run of the variants whose engines tell it."""
    found = {
        name: [round(run.repeated * workload.records) for run in of_variant if run.repeated is not None]
        for name, of_variant in runs.items()
    }
    return {name: records for name, records in found.items() if records}


def cpu_seconds(runs: Mapping[str, Sequence[Ran]]) -> dict[str, list[float]]:
    """Return the processor time of each run of the variants whose engines tell it."""
    found = {
        name: [run.cpu_seconds for run in of_variant if run.cpu_seconds is not None]
        for name, of_variant in runs.items()
    }
    return {name: seconds for name, seconds in found.items() if seconds}


def submitting_seconds(runs: Mapping[str, Sequence[Ran]]) -> dict[str, list[float]]:
    """Return how long it took to plan and submit each run of the variants whose times do not have that."""
    found = {
        name: [run.began - run.handed_over for run in of_variant if run.handed_over is not None]
        for name, of_variant in runs.items()
    }
    return {name: seconds for name, seconds in found.items() if seconds}
