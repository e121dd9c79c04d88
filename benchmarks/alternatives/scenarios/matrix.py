"""Each workload beside every opponent, over the same topics, with results that all write as files.

A governed query against the fastest of Flink's ways in each round, whichever backend it has, and against the fastest
on RocksDB, whose state may be larger than memory, as Spark's may. Keys come in shuffled passes, in which small
batches and bundles combine nothing; for the aggregation also by chance, evenly, by Zipf's law, and with one hot key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.alternatives.opponents import FLINK, capped, of_flink, ways
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED, Ratio, Variant, Workload
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.scenarios import aggregation, cogroup, deduplication, flink, join, windows
from benchmarks.local.recording import Recording, Spread
from benchmarks.local.results import Figure, Goal, Measured, Report

SPREADS: tuple[Spread, ...] = ("uniform", "zipf", "hot")


@dataclass(frozen=True)
class Contest:
    """A workload beside all opponents, and what is to be reached."""

    of: Workload
    best: float | None = None
    """Against the fastest of Flink's ways; None: it is only reported, as the next."""
    rocksdb: float | None = None
    combined: bool = False
    """Whether mini-batches apply."""
    slow: bool = False
    """Whether plain Spark takes minutes without a cap, too: it runs once then."""
    spread: Spread = "passes"

    @property
    def name(self) -> str:
        """What its figures are named after."""
        return self.of.name if self.spread == "passes" else f"{self.of.name}_{self.spread}"

    @property
    def workload(self) -> Workload:
        """As it is run."""
        governed = next(one for one in self.of.variants if one.name == GOVERNED)
        spark = (governed, Variant(BATCH, mode="batch"), Variant(UNCAPPED, once=self.slow))
        groups = {
            "best_flink": (self.best, ways(combined=self.combined)),
            "flink_rocksdb": (self.rocksdb, ways(("rocksdb",), combined=self.combined)),
        }
        ratios = [
            Ratio(Figure(f"{self.name}_vs_{group}", "ratio", goal(bound)), names, GOVERNED)
            for group, (bound, names) in groups.items()
        ]
        return Workload(
            self.of.name if self.spread == "passes" else "marked",
            [self.side(number) for number in range(len(self.of.sides))],
            (*spark, *capped(), *of_flink(combined=self.combined)),
            ratios,
            where=f" beside all others, keys: {self.spread}",
            all_warm=True,
        )

    def side(self, number: int) -> Recording:
        """Return a recording with the keys of this spread."""
        whole = self.of.sides[number]
        if self.spread == "passes":
            return whole
        return replace(whole, name=f"{whole.name}-{self.spread}", spread=self.spread)

    @property
    def scenario(self) -> Scenario:
        """What measures it."""
        workload = self.workload
        return Scenario(f"{self.name}_beside_all", workload.figures, partial(measure, workload=workload))


def goal(bound: float | None) -> Goal | Report:
    """Return what is to be reached."""
    return Report() if bound is None else Goal(">=", bound)


def measure(bench: Bench, workload: Workload) -> Mapping[str, Measured]:
    """Run all rounds of a contest."""
    return flink.measure(bench, workload, FLINK)


LONG_LISTS = replace(
    cogroup.WORKLOAD,
    name="cogroup_100",
    sides=[replace(side, name=f"{side.name}-100", keys=10_000) for side in cogroup.WORKLOAD.sides],
)
"""coGroup with a hundred values a side: what an engine writes anew for each record grows with the list."""
CONTESTS = (
    Contest(aggregation.WORKLOAD, best=1.5, rocksdb=5, combined=True),
    Contest(join.WORKLOAD, best=2, rocksdb=10, slow=True),
    Contest(windows.WORKLOAD, best=1, rocksdb=2),
    Contest(deduplication.WORKLOAD, best=1, rocksdb=2),
    Contest(cogroup.WORKLOAD, best=3, combined=True),
    Contest(LONG_LISTS, rocksdb=8, combined=True),
    *(Contest(aggregation.WORKLOAD, combined=True, spread=spread) for spread in SPREADS),
)
SCENARIOS = tuple(contest.scenario for contest in CONTESTS)
