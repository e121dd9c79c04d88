"""What a batch costs that has next to nothing to do: one row, no state.

A governed driver of which nobody has said anything plans each trigger and writes its checkpoint as `headgate-run` has
it written; the other one is Spark's own. Both run the same query for as many batches, in turns, and Spark's own
record says how long each trigger took. The checkpoint is on a local disk, or in a store in which each request takes
50 ms: renames there are a copy and a delete, and it writes a name only if it is absent where that is asked for, as S3
does (`FaultyFileSystem`). What an S3 client asks beyond Hadoop's calls (it probes before it writes) is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from benchmarks.backlog.rounds import interval
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.session import Session, documented_session, plain_session
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, rotated
from headgate_contract import ControlDocument
from support import faulty_files

WARM_UPS = 3
"""Runs of each before anything counts: a JVM compiles what it runs."""
PLAIN, GOVERNED = "plain", "headgate"
NOTHING_SAID = ControlDocument(generation=1, queries={})
FAR_MILLIS = 50


@dataclass(frozen=True)
class Place:
    """Where the checkpoint is."""

    figure: Figure
    batches: int
    """Of a run."""
    rounds: int
    """At the most."""
    store: str = ""
    """Before its path."""
    conf: Mapping[str, str] = field(default_factory=dict)

    def seconds_of_a_batch(self, session: Session, batches: int) -> float:
        """Return how long a trigger took, as the median of one run."""
        asked = {"workload": "", "mode": "small", "batches": batches, "store": self.store}
        return median(session.answer(session.ask(asked))["seconds"])

    def measure(self, bench: Bench) -> Mapping[str, Measured]:
        """Run both in turns, each the first and the last of a pair; returns the ratio of each pair."""
        batches = max(10, round(self.batches * bench.scale))
        took: dict[str, list[float]] = {PLAIN: [], GOVERNED: []}
        name = self.figure.id
        more = dict(self.conf)
        if self.store:
            more["spark.driver.extraClassPath"] = str(faulty_files.jar())
        with (
            plain_session(bench, f"{name}-plain", more) as plain,
            documented_session(bench, f"{name}-governed", NOTHING_SAID, more) as governed,
        ):
            sessions = {PLAIN: plain, GOVERNED: governed}
            for session in list(sessions.values()) * WARM_UPS:
                self.seconds_of_a_batch(session, batches)
            for turn in range(min(bench.rounds, self.rounds)):
                first, second = rotated((PLAIN, GOVERNED), turn)
                of_pair: dict[str, list[float]] = {PLAIN: [], GOVERNED: []}
                for which in (first, second, second, first):
                    of_pair[which].append(self.seconds_of_a_batch(sessions[which], batches))
                for which, seconds in of_pair.items():
                    took[which].append(median(seconds))
                bench.tell(
                    f"pair {turn + 1}: " + ", ".join(f"{n} {t[-1] * 1000:.0f} ms" for n, t in took.items())
                )
        ratios = divided(took[GOVERNED], took[PLAIN])
        return {name: Measured(ratios, {**interval(ratios), "batches": batches, "seconds": took})}

    @property
    def scenario(self) -> Scenario:
        """What measures it."""
        return Scenario(self.figure.id, (self.figure,), self.measure)


LOCAL = Place(Figure("fixed_batch_cost_vs_plain", "ratio", Goal("<=", 0.6)), batches=100, rounds=10)
FAR = Place(
    Figure("fixed_batch_cost_vs_plain_at_50ms_store", "ratio", Goal("<=", 0.8)),
    batches=20,
    rounds=6,
    store="faulty:",
    conf=faulty_files.conf(latency=FAR_MILLIS, put_if_absent=False, conditional_writes=True),
)
SCENARIOS = (LOCAL.scenario, FAR.scenario)
