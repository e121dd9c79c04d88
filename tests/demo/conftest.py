"""Three small runs, made up, with figures that can be computed in one's head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.demo.decisions import Decision, plain_decision
from benchmarks.demo.heap import Collection
from benchmarks.demo.measures import Arrivals, Seen, measure, measure_unfinished
from benchmarks.demo.results import Findings, Result
from benchmarks.demo.runs import TITLES, Run
from benchmarks.demo.session import OUT_OF_MEMORY
from benchmarks.demo.visible import Appeared
from benchmarks.event_log import Batch

START = 1_000_000.0


def batch(
    number: int, started: float, committed: float, first: tuple[int, int], end: tuple[int, int]
) -> Batch:
    """A batch whose times are seconds after `START`."""
    planned = START + started
    return Batch("delays", number, planned, planned, START + committed, first, end, 10 * (number + 1))


@pytest.fixture
def batches() -> tuple[Batch, ...]:
    """A backlog of 100 and 10 rows in two batches, one batch without records, then two live ones."""
    return (
        batch(0, 0, 4, (0, 0), (60, 10)),
        batch(1, 4, 10, (60, 10), (100, 10)),
        batch(2, 10, 11, (100, 10), (100, 10)),
        batch(3, 12, 13, (100, 10), (102, 10)),
        batch(4, 14, 16, (102, 10), (104, 12)),
    )


@pytest.fixture
def arrivals() -> Arrivals:
    """What is there from the start, then a row of the first source each second from 11 on."""
    first = [START] * 100 + [START + second for second in (11, 12, 13, 14)]
    second = [START] * 10 + [START + 11.5, START + 14]
    return Arrivals((np.array(first), np.array(second)))


@pytest.fixture
def seen(batches: tuple[Batch, ...], arrivals: Arrivals) -> Seen:
    """Results after 4, 7 and 13 seconds, and heaps of 300, 400 and 200 MiB."""
    appeared = [Appeared(START + second, rows) for second, rows in ((4, 3), (7, 2), (13, 2))]
    heaps = [Collection(START + second, mib * 2**20) for second, mib in ((2, 300), (8, 400), (14, 200))]
    return Seen(batches, arrivals, appeared, heaps, started=START, ended=START + 17)


@pytest.fixture
def findings(seen: Seen, tmp_path: Path) -> Findings:
    """All three runs got through."""
    results = {}
    for key, title in TITLES.items():
        command = ("python", "job.py", "--quote=<it>")
        named = title.format(heap="1g")
        run = Run(
            key=key, title=named, directory=tmp_path, command=command, environment={}, is_governed=False
        )
        decisions = plain_decision(START)
        if key == "governed":
            decisions = (
                Decision(START, True, "PendingRecords", 30.0),
                Decision(START + 10, False, None, 0.5),
            )
        results[key] = Result(
            run,
            tuple(seen.batches),
            seen.arrivals,
            decisions,
            measure(seen, rows_out=7),
            tuple(seen.appeared),
            tuple(seen.collections),
            seen.started,
            seen.ended,
        )
    return Findings(results, outputs_equal=True)


@pytest.fixture
def with_a_death(findings: Findings, seen: Seen) -> Findings:
    """The run with the small heap found no memory before it had written anything."""
    died = replace(seen, batches=(), appeared=())
    small = replace(
        findings.results["plain_small"],
        batches=(),
        appeared=(),
        measures=measure_unfinished(died, 0),
        failure=OUT_OF_MEMORY,
    )
    return replace(findings, results={**findings.results, "plain_small": small})
