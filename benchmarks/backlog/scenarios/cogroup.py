"""coGroup: the values of two streams, brought together by key as two lists.

The state of a key is as long as its lists, and a small batch writes all of it again for each record that it adds:
the case in which a backlog gains most from being one batch. What plain Spark reaches of a batch job in one batch
without a cap is reported beside the figures: no query that Spark runs as a stream could reach more.

A run takes two seconds, and the plain driver is used far more than the governed one, which shows. It makes hundreds
of batches in each round, so its JVM has compiled what Spark does once per batch: the governed driver makes as many
beforehand, of a query that its document does not list. Its heap had grown more: it collected two or three times in a
run, the governed one nine times. And it never lies idle, while the governed one waits three minutes for it and then
took a tenth longer.
"""

from __future__ import annotations

from functools import partial

from benchmarks.backlog.rounds import (
    BATCH,
    UNCAPPED,
    Ratio,
    Variant,
    Workload,
    faster,
    measure,
    part_of_batch,
    variants,
)
from benchmarks.backlog.scenario import Scenario
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Report

LEFT, RIGHT = (
    Recording(name, 1_000_000, 3600, 1, 0, keys=100_000) for name in ("cogroup-left", "cogroup-right")
)
LOW, MIDDLE = "plain_4k", "plain_40k"
WORKLOAD = Workload(
    "cogroup",
    (LEFT, RIGHT),
    variants((LOW, 4_000), (MIDDLE, 40_000)),
    (
        faster("cogroup_vs_low_latency_4k", LOW, 20),
        faster("cogroup_vs_low_latency_40k", MIDDLE, 10),
        part_of_batch("cogroup_vs_batch", 0.8),
        Ratio(Figure("cogroup_uncapped_vs_batch", "ratio", Report()), (BATCH,), UNCAPPED),
    ),
    beforehand=(Variant("as plain", "governed", records_per_batch=4_000, query="not-governed"),),
    short=True,
)
SCENARIO = Scenario("cogroup", WORKLOAD.figures, partial(measure, workload=WORKLOAD))
