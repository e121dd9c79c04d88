"""Faults by the hundred over one governed job with state, and what it lost, counted twice, or took beyond its limits.

A generator whose every record is known writes to two topics of a real broker; the job counts by topic and key and
writes each batch once. The topics are aligned, and the second waits until the history of the first is read. The run
is over when everything was read; then the checkpoint, the sink and the event logs of all drivers are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.chaos.end_to_end.run import storm
from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import DRIVER, Figure, Goal, Measured

NAME = "end_to_end"
FIGURES = (
    Figure("chaos_faults", "faults", Goal(">=", 500)),
    Figure("chaos_records", "records", Goal(">=", 50_000_000)),
    *(Figure(name, "records", Goal("<=", 0)) for name in ("lost", "doubled", "past_limit")),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let all of them come. Raises BrokenError where the run cannot go on."""
    faults, records = (max(1, round(bench.share * whole)) for whole in (bench.faults, bench.records))
    found = storm(bench.root / NAME, seed=bench.seed, faults=faults, records=records, tell=bench.tell)
    seen = found.audit
    values = {"lost": seen.lost, "doubled": seen.doubled, "past_limit": seen.past_limit}
    size = f"--seed {bench.seed} --faults {faults} --records {records}"
    bench.judge(seen.broken, values, "records", f"python -m benchmarks.chaos --only {NAME} {size}")
    details = {
        "faults": dict(found.faults.most_common()),
        "drivers": found.drivers,
        "batches": seen.batches,
        "batches_at_the_limit_of_alignment": seen.at_limit,
        "broken": len(seen.broken),
        "seconds": found.seconds,
        "seed": bench.seed,
    }
    values |= {"chaos_faults": sum(found.faults.values()), "chaos_records": found.records}
    return {name: Measured([value], details) for name, value in values.items()}


SCENARIO = Scenario(NAME, FIGURES, measure, DRIVER)
