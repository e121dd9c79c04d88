"""An interval join of two streams, with `headgate_spark.backfill`.

A join keeps every row in its state, whatever the size of its batches, so plain Spark gains little without a cap. That
takes longest of all beside low latency, so it runs once.
The backfill joins the history as a batch and rebuilds the state from the rows that can still find a partner.
"""

from __future__ import annotations

from functools import partial

from benchmarks.backlog.rounds import Workload, faster, measure, part_of_batch, variants
from benchmarks.backlog.scenario import Scenario
from benchmarks.local.recording import Recording

LEFT, RIGHT = (Recording(name, 3_000_000, 3600, 1, 0, keys=100_000) for name in ("join-left", "join-right"))
LOW = "plain_20k"
WORKLOAD = Workload(
    "join",
    (LEFT, RIGHT),
    variants((LOW, 20_000), governed="backfill", uncapped_once=True),
    (faster("join_vs_low_latency", LOW, 15), part_of_batch("join_vs_batch", 0.7)),
)
SCENARIO = Scenario("join", WORKLOAD.figures, partial(measure, workload=WORKLOAD))
