"""A windowed aggregation in append mode: count and sum per key and ten minutes, each window written once."""

from __future__ import annotations

from functools import partial

from benchmarks.backlog.rounds import Workload, faster, measure, variants
from benchmarks.backlog.scenario import Scenario
from benchmarks.local.recording import Recording

DEVICES = Recording("devices", 3_000_000, 3600, 1, 0, keys=50_000)
"""Each of them once a minute."""
LOW = "plain_50k"
WORKLOAD = Workload(
    "windows", (DEVICES,), variants((LOW, 50_000)), (faster("windows_vs_low_latency", LOW, 2),)
)
SCENARIO = Scenario("windows", WORKLOAD.figures, partial(measure, workload=WORKLOAD))
