"""What the plots show: results in sight, pending records, heap, batch sizes and gaps between commits over time. Pure.

Times are seconds since the start of a run's first batch, so that the runs can be laid over each other.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from benchmarks.demo.heap import Collection
from benchmarks.demo.measures import Arrivals
from benchmarks.demo.visible import Appeared
from benchmarks.event_log import Batch

Point = tuple[float, float]

STEP_SECONDS = 0.25
JUST_BEFORE = 0.001


def pending(batches: Sequence[Batch], arrivals: Arrivals) -> list[Point]:
    """Return the records that had arrived and were not yet processed, also just before and after each
    commit; of a run without a commit, none."""
    if not batches:
        return []
    start, end = batches[0].started, batches[-1].committed
    commits = [batch.committed for batch in batches]
    moments = {*np.arange(start, end, STEP_SECONDS), *commits, *(commit - JUST_BEFORE for commit in commits)}
    points: list[Point] = []
    for moment in sorted(moments):
        done = int(np.searchsorted(commits, moment, side="right"))
        processed = sum(batches[done - 1].end_rows) if done else 0
        points.append((moment - start, max(0, sum(arrivals.by(moment)) - processed)))
    return points


def visible(appeared: Sequence[Appeared], started: float, ended: float) -> list[Point]:
    """Return the rows of the result that a reader sees, from the start to the end of a run."""
    points: list[Point] = [(0.0, 0)]
    for each in appeared:
        points += [(each.at - started, points[-1][1]), (each.at - started, points[-1][1] + each.rows)]
    return [*points, (ended - started, points[-1][1])]


def heap(collections: Sequence[Collection], started: float) -> list[Point]:
    """Return the MiB of the heap in use after each collection since the start of the first batch."""
    return [(each.at - started, each.left / 2**20) for each in collections if each.at >= started]


def batch_sizes(batches: Sequence[Batch]) -> list[Point]:
    """Return the records of each batch that has some, at its commit."""
    return [(batch.committed - batches[0].started, batch.records) for batch in batches if batch.records]


def commit_gaps(batches: Sequence[Batch]) -> list[Point]:
    """Return the time since the commit before, in seconds, at each commit; for the first, since its start."""
    if not batches:
        return []
    start = batches[0].started
    moments = [start, *(batch.committed for batch in batches)]
    return [(after - start, after - before) for before, after in pairwise(moments)]
