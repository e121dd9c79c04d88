"""Three small runs, made up, with figures that can be computed in one's head."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.demo.decisions import Decision, plain_decision
from benchmarks.demo.measures import Arrivals, measure
from benchmarks.demo.results import Findings, Result
from benchmarks.demo.runs import TITLES, Run
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
def findings(batches: tuple[Batch, ...], arrivals: Arrivals, tmp_path: Path) -> Findings:
    measures = measure(batches, arrivals, rows_out=7)
    results = {}
    for key, title in TITLES.items():
        command = ("python", "job.py", "--quote=<it>")
        run = Run(key=key, title=title, directory=tmp_path, command=command, environment={}, trigger=None)
        decisions = plain_decision(START, timedelta(seconds=0.5))
        if key == "governed":
            decisions = (
                Decision(START, True, "PendingRecords", 30.0),
                Decision(START + 10, False, None, 0.5),
            )
        results[key] = Result(run, batches, arrivals, decisions, measures)
    return Findings(results, outputs_equal=True)
