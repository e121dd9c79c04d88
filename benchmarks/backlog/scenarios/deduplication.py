"""Deduplication within a watermark: one row of each key in two minutes, where two come.

Its state has no value to be combined: each row that is kept is written once, whatever the batches are. The case in
which a backlog gains least from being one batch, beside the fixed cost of the batches that it spares.
"""

from __future__ import annotations

from functools import partial

from benchmarks.backlog.rounds import Workload, faster, measure, variants
from benchmarks.backlog.scenario import Scenario
from benchmarks.backlog.scenarios.windows import DEVICES

LOW = "plain_50k"
WORKLOAD = Workload(
    "deduplication",
    (DEVICES,),
    variants((LOW, 50_000)),
    (faster("deduplication_vs_low_latency", LOW, 2),),
)
SCENARIO = Scenario("deduplication", WORKLOAD.figures, partial(measure, workload=WORKLOAD))
