"""What a batch costs that has next to nothing to do: one row, no state, a local checkpoint.

A governed driver of which nobody has said anything plans each trigger and writes its checkpoint as `headgate-run` has
it written; the other one is Spark's own. Both run the same query for as many batches, in turns, and Spark's own
record says how long each trigger took.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from benchmarks.backlog.rounds import interval
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.session import Session, documented_session, plain_session
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, rotated
from headgate_contract import ControlDocument

BATCHES = 100
WARM_UPS = 3
"""Runs of each before anything counts: a JVM compiles what it runs."""
PLAIN, GOVERNED = "plain", "headgate"
FIGURE = Figure("fixed_batch_cost_vs_plain", "ratio", Goal("<=", 0.6))


def seconds_of_a_batch(session: Session, batches: int) -> float:
    """Return how long a trigger took, as the median of one run."""
    found = session.answer(session.ask({"workload": "", "mode": "small", "batches": batches}))
    return median(found["seconds"])


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run both in turns, each the first and the last of a pair; returns the ratio of each pair."""
    batches = max(10, round(BATCHES * bench.scale))
    took: dict[str, list[float]] = {PLAIN: [], GOVERNED: []}
    nothing_said = ControlDocument(generation=1, queries={})
    with (
        plain_session(bench, "fixed-plain") as plain,
        documented_session(bench, "fixed-governed", nothing_said) as governed,
    ):
        sessions = {PLAIN: plain, GOVERNED: governed}
        for session in list(sessions.values()) * WARM_UPS:
            seconds_of_a_batch(session, batches)
        for turn in range(bench.rounds):
            first, second = rotated((PLAIN, GOVERNED), turn)
            of_pair: dict[str, list[float]] = {PLAIN: [], GOVERNED: []}
            for name in (first, second, second, first):
                of_pair[name].append(seconds_of_a_batch(sessions[name], batches))
            for name, seconds in of_pair.items():
                took[name].append(median(seconds))
            bench.tell(
                f"pair {turn + 1}: " + ", ".join(f"{n} {t[-1] * 1000:.0f} ms" for n, t in took.items())
            )
    ratios = divided(took[GOVERNED], took[PLAIN])
    return {FIGURE.id: Measured(ratios, {**interval(ratios), "batches": batches, "seconds": took})}


SCENARIO = Scenario(FIGURE.id, (FIGURE,), measure)
