"""A million inputs that are nearly right, at every place at which text of others is read."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from support.fuzzing import feed, kept
from support.surfaces import SURFACES

INPUTS = 1_000_000
SLOWEST_SECONDS = 0.05
GROWN_MIB = 64
"""More than that nobody needs to remember of text that was read or refused."""
FIGURES = (
    Figure("fuzz_inputs", "inputs", Goal(">=", INPUTS)),
    Figure("fuzz_failures", "inputs", Goal("<=", 0)),
    Figure("fuzz_slowest_seconds", "s", Goal("<=", SLOWEST_SECONDS)),
    Figure("fuzz_memory_grown_mib", "MiB", Goal("<=", GROWN_MIB)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Feed each surface its share."""
    shares = sum(surface.share for surface in SURFACES)
    inputs, failures, slowest, grown = {}, 0, {}, {}
    for surface in SURFACES:
        count = 1 + round(bench.share * INPUTS * surface.share / shares)
        fed = feed(surface, count, bench.seed)
        inputs[surface.name], slowest[surface.name] = fed.inputs, fed.slowest_seconds
        grown[surface.name] = fed.grown_mib
        failures += len(fed.defects)
        wrong = [(defect.content, defect.told.strip().splitlines()[-1]) for defect in fed.defects]
        if fed.slowest_seconds > SLOWEST_SECONDS:
            wrong.append((fed.slowest, f"it takes {fed.slowest_seconds:.3f} s of processor time"))
        for content, what in wrong:
            file = kept(bench.root / "fuzz", surface.name, content)
            again = f"PYTHONPATH=tests:. python -m support.fuzzing {surface.name} {file}"
            bench.fails(f"{surface.name}: {what}", again)
        if fed.grown_mib > GROWN_MIB:
            what = (
                f"{surface.name}: the process has grown by {fed.grown_mib:.0f} MiB in {fed.inputs:,} inputs"
            )
            bench.fails(what, f"python -m benchmarks.chaos --only fuzz --seed {bench.seed}")
        bench.tell(f"{surface.name}: {fed.inputs:,} inputs, {len(fed.defects)} of them defects")
    return {
        "fuzz_inputs": Measured([sum(inputs.values())], {**inputs, "seed": bench.seed}),
        "fuzz_failures": Measured([failures], {"seed": bench.seed}),
        "fuzz_slowest_seconds": Measured([max(slowest.values())], slowest),
        "fuzz_memory_grown_mib": Measured([sum(grown.values())], grown),
    }


SCENARIO = Scenario("fuzz", FIGURES, measure, measures=())
