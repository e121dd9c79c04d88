"""How far an aligned reader runs past its limit, from when each record came.

    floor(t) = min over splits with records left of the event time that they have reached at the end of moment t
    limit(t) = floor(t) + drift

A moment is a millisecond, and everything that comes in it counts as reached before any of it is judged: in favour of
the reader. A split that has been read to its end holds nobody. Pure but for reading files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import concat_tables, csv

COLUMNS = ("split", "at", "came")
Numbers = np.ndarray[Any, np.dtype[np.int64]]
NO_LIMIT = np.iinfo(np.int64).max // 2


@dataclass(frozen=True)
class Came:
    """The records of a topic, in any order; an entry of each array for every record."""

    split: Numbers
    at: Numbers
    """Event time, in milliseconds since 1970."""
    came: Numbers
    """When it came, in milliseconds since 1970."""

    def splits(self) -> Iterator[Came]:
        """Yield the records of each split."""
        for split in np.unique(self.split):
            its = self.split == split
            yield Came(self.split[its], self.at[its], self.came[its])


@dataclass(frozen=True)
class Overshoot:
    """What came of one topic while another one was being read."""

    records: int
    """How many were past the limit at their moment."""
    share: float
    """Of those that came meanwhile."""
    furthest_ms: int
    """How far the furthest was past it; below 0 where none was."""
    slow_seconds: float
    """How long the other topic took, from the first record of either."""


def overshoot(fast: Came, slow: Came, drift_ms: int) -> Overshoot:
    """Return how far `fast` ran past the limit until the last record of `slow`."""
    first, last = int(min(fast.came.min(), slow.came.min())), int(slow.came.max())
    splits = [split for topic in (fast, slow) for split in topic.splits()]
    floor = np.minimum.reduce([reached(split, first, last) for split in splits])
    meanwhile = fast.came <= last
    past = fast.at[meanwhile] - floor[fast.came[meanwhile] - first] - drift_ms
    beyond = past > 0
    return Overshoot(int(beyond.sum()), float(beyond.mean()), int(past.max()), (last - first) / 1000)


def reached(split: Came, first: int, last: int) -> Numbers:
    """Return the event time that a split has reached at the end of each moment; no limit once it has no more."""
    times = np.full(last - first + 1, split.at.min(), dtype=np.int64)
    until = split.came <= last
    np.maximum.at(times, split.came[until] - first, split.at[until])
    times = np.maximum.accumulate(times)
    times[max(0, int(split.came.max()) - first + 1) :] = NO_LIMIT
    return times


def read(directory: Path) -> Came:
    """Read the CSV files of a directory. Raises ValueError where they have no records."""
    found = [file for file in sorted(directory.glob("[!.]*")) if file.stat().st_size]
    if not found:
        raise ValueError(f"{directory}: no records were written")
    options = csv.ReadOptions(column_names=list(COLUMNS))
    rows = concat_tables([csv.read_csv(file, read_options=options) for file in found])
    return Came(*(rows[name].to_numpy() for name in COLUMNS))
