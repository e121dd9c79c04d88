"""Each workload beside every opponent, over the same topics, with results that all write as files.

A governed query against the fastest of Flink's ways in each round, whichever backend it has, and against the fastest
on RocksDB, whose state may be larger than memory, as Spark's may. It runs three times in each round: as it is, in
columns, and, only reported, by Spark's reader of Kafka, and without Spark's count of the rows of a state. Keys come
in shuffled passes, in which small batches and bundles combine nothing; for the aggregation also by chance, evenly,
by Zipf's law, and with one hot key. Which ways of Flink take part, and which caps of plain Spark, says a screening of
all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.alternatives.opponents import (
    FLINK,
    FLINK_BATCH,
    SMALLEST,
    capped,
    streaming,
    streams,
    ways,
)
from benchmarks.alternatives.screening import last
from benchmarks.backlog.flink import beside
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED, Ratio, Variant, Workload, times
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.scenarios import aggregation, cogroup, deduplication, join, windows
from benchmarks.local.recording import Recording, Spread
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured, Report

SPREADS: tuple[Spread, ...] = ("uniform", "zipf", "hot")
BY_ROWS = Variant("by_rows", "governed", conf={"spark.headgate.columnarKafka": "false"})
UNCOUNTED = Variant(
    "uncounted",
    "governed",
    conf={"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false"},
)
"""What the job can have by a property of Spark's own. Flink does not count the rows of its state, in any way here."""


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
    """Whether plain Spark takes minutes without a cap, too: it runs once then, and never with a cap."""
    spread: Spread = "passes"

    @property
    def name(self) -> str:
        """What its figures are named after."""
        return self.of.name if self.spread == "passes" else f"{self.of.name}_{self.spread}"

    @property
    def ways(self) -> tuple[str, ...]:
        """All ways of Flink that apply."""
        return streams(combined=self.combined)

    @property
    def governed(self) -> tuple[Variant, ...]:
        """The governed variants: as it is, and what is set otherwise beside it.

        A backfill keeps no state.
        """
        plainly = next(one for one in self.of.variants if one.name == GOVERNED)
        return (plainly,) if plainly.mode == "backfill" else (plainly, BY_ROWS, UNCOUNTED)

    @property
    def groups(self) -> Mapping[str, tuple[float | None, tuple[str, ...]]]:
        """What is to be reached against the fastest of some ways, by what figures call these."""
        rocksdb = ways(("rocksdb",), combined=self.combined)
        return {
            "best_flink": (self.best, self.ways),
            "flink_rocksdb": (self.rocksdb, rocksdb),
            FLINK_BATCH: (None, (FLINK_BATCH,)),
        }

    @property
    def screening(self) -> Figure:
        """How many times as long as the fastest way of Flink the slowest one takes."""
        return Figure(f"{self.name}_screening", "ratio", Report())

    def ratios(self, taking_part: Collection[str]) -> list[Ratio]:
        """Return the figures, of the ways to stream that take part, and of the batch job of Flink.

        What a batch job of Spark reaches is only reported: it keeps no state and makes no commit.
        """
        return [
            Ratio(
                Figure(
                    f"{called}_vs_{group}",
                    "ratio",
                    goal(bound if is_ours else None),
                    COLUMNS if is_ours else None,
                ),
                tuple(way for way in names if way in (*taking_part, FLINK_BATCH)),
                variant,
            )
            for variant in (*(one.name for one in self.governed), BATCH)
            for is_ours in [variant == GOVERNED]
            for called in [self.name if is_ours else f"{self.name}_{variant}"]
            for group, (bound, names) in self.groups.items()
        ]

    def rounds(
        self, taking_part: Sequence[str], once: Collection[str] = (), caps: Collection[str] = ()
    ) -> Workload:
        """Return what is run in rounds; caps of plain Spark run in the first one.

        Those that make few batches run once before that as well.
        """
        spark = (Variant(BATCH, mode="batch"), *(() if self.slow else (Variant(UNCAPPED),)))
        variants = (
            *self.governed,
            *spark,
            *capped(caps, once=True),
            *streaming(taking_part, once=once),
            BY_BATCH_OF_FLINK,
        )
        return replace(
            self._run(variants, "beside all others"),
            ratios=self.ratios(taking_part),
            all_warm=True,
            beforehand=capped(cap for cap in caps if cap != SMALLEST),
        )

    @property
    def opponents(self) -> Workload:
        """What a screening runs once."""
        spark = (Variant(UNCAPPED, once=True),) if self.slow else capped()
        return self._run((*streaming(self.ways), *spark), "each opponent once")

    def _run(self, variants: Sequence[Variant], what: str) -> Workload:
        name = self.of.name if self.spread == "passes" else "marked"
        sides = [self.side(number) for number in range(len(self.of.sides))]
        return Workload(name, sides, variants, (), where=f" {what}, keys: {self.spread}")

    def side(self, number: int) -> Recording:
        """Return a recording with the keys of this spread."""
        whole = self.of.sides[number]
        if self.spread == "passes":
            return whole
        return replace(whole, name=f"{whole.name}-{self.spread}", spread=self.spread)

    @property
    def scenarios(self) -> tuple[Scenario, Scenario]:
        """What measures it: the screening, and the rounds."""
        figures = tuple(ratio.figure for ratio in self.ratios(self.ways))
        return (
            Scenario(self.screening.id, (self.screening,), partial(screened, contest=self)),
            Scenario(f"{self.name}_beside_all", figures, partial(measure, contest=self)),
        )


def goal(bound: float | None) -> Goal | Report:
    """Return what is to be reached."""
    return Report() if bound is None else Goal(">=", bound)


def screened(bench: Bench, contest: Contest) -> Mapping[str, Measured]:
    """Run each opponent once, over a part of the records and then over the whole."""
    runs = beside.ran(replace(bench, rounds=1), contest.opponents, FLINK)
    seconds = [runs[way][0].seconds for way in contest.ways]
    ratio = max(seconds) / min(seconds)
    return {contest.screening.id: Measured([ratio], times(contest.opponents, runs))}


def measure(bench: Bench, contest: Contest) -> Mapping[str, Measured]:
    """Run all rounds of a contest, with the ways that the last screening has left, or else with all."""
    found = last(bench.results, contest.screening.id, contest.opponents, contest.ways)
    if found is None:
        bench.tell(f"{contest.screening.id} has not been measured: all ways take part")
        return beside.measure(bench, contest.rounds(contest.ways), FLINK)
    of_streams = [names for group, (_, names) in contest.groups.items() if group != FLINK_BATCH]
    workload = contest.rounds(found.finalists(of_streams), found.slow, found.caps)
    of_rounds = beside.measure(bench, workload, FLINK)
    return {
        name: replace(one, details={**one.details, "screening": found.details})
        for name, one in of_rounds.items()
    }


BY_BATCH_OF_FLINK = Variant(FLINK_BATCH, FLINK_BATCH, "batch")
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
SCENARIOS = tuple(scenario for contest in CONTESTS for scenario in contest.scenarios)
