"""Edits of the resource on a real API server, each there and back: where each leads to, and what is refused.

`misoperation` makes all of them in memory; what these lead to has to be what they lead to there.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import OPERATOR, Figure, Goal, Measured
from support.control_plane import control_plane_in
from support.edits_on_server import begin, edited
from support.every_field import fields
from support.on_server import on_server

NAME = "server"
EDITS = 500
"""Each is taken back: twice as many transitions."""
FIGURES = (
    Figure("server_transitions", "edits", Goal(">=", 2 * EDITS)),
    Figure("server_transitions_failed", "edits", Goal("<=", 0)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Make so many edits of those that there are, drawn from the seed."""
    every = [(of, kind) for of in fields() for kind in sorted(set(of.values()) - {"null"})]
    count = max(1, round(bench.share * EDITS))
    edits = random.Random(bench.seed).sample(every, count)
    failed = 0
    with (
        tempfile.TemporaryDirectory(prefix="chaos-server-") as folder,
        control_plane_in(Path(folder)) as plane,
        on_server(plane, plane.namespace()) as o,
    ):
        begin(o)
        for number, different in enumerate(edited(o, edits), 1):
            if different is not None:
                failed += 1
                bench.fails(different, f"python -m benchmarks.chaos --only {NAME} --seed {bench.seed}")
            if number % 100 == 0:
                bench.tell(f"{number} edits, there and back; {failed} failed")
    details = {"of": len(every), "seed": bench.seed}
    return {
        "server_transitions": Measured([2 * count], details),
        "server_transitions_failed": Measured([failed], details),
    }


SCENARIO = Scenario(NAME, FIGURES, measure, (*OPERATOR, "charts/headgate", "crds"))
