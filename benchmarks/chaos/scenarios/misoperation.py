"""Every value of every field of the resource, there and back, with all read and in a backlog."""

from __future__ import annotations

import random
from collections.abc import Mapping

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from support.every_field import fields
from support.transitions import HELD_IN_BACKLOG, LawError, walk

FIGURES = (
    Figure("transitions", "edits", Goal(">=", 1000)),
    Figure("transitions_failed", "edits", Goal("<=", 0)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Walk through the fields in an order of the seed's."""
    chance = random.Random(bench.seed)
    found = fields()
    chance.shuffle(found)
    found = found[: max(1, round(bench.share * len(found)))]
    edits, failed = {"read": 0, "backlog": 0}, 0
    for of in found:
        kinds = list(of.values())
        chance.shuffle(kinds)
        for where in edits:
            if where == "backlog" and str(of) in HELD_IN_BACKLOG:
                continue
            try:
                edits[where] += walk(of, kinds, is_behind=where == "backlog")
            except LawError as error:
                failed += 1
                bench.fails(str(error), f"python -m benchmarks.chaos --only misoperation --seed {bench.seed}")
    details = {**edits, "fields": len(found), "seed": bench.seed}
    return {
        "transitions": Measured([sum(edits.values())], details),
        "transitions_failed": Measured([failed], details),
    }


SCENARIO = Scenario("misoperation", FIGURES, measure, measures=())
