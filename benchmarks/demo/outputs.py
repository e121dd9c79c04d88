"""The results of the runs, compared row by row."""

from collections.abc import Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from benchmarks.demo.visible import committed

Row = dict[str, Any]

SORT_KEYS = [("hour", "ascending"), ("origin", "ascending")]


def read_output(directory: Path) -> list[Row]:
    """Return the rows that a run has committed, in order of hour and airport.

    A driver that ran out of memory leaves files that are not whole: no log of the sink names them.
    """
    files = [str(file) for file in sorted(committed(directory))]
    if not files:
        return []
    rows: list[Row] = ds.dataset(files, format="parquet").to_table().sort_by(SORT_KEYS).to_pylist()
    return rows


def of_same_hours(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Return the rows of the hours and airports of which `others` has one."""
    there = {(row["hour"], row["origin"]) for row in others}
    return [row for row in rows if (row["hour"], row["origin"]) in there]


def first_differences(
    expected: tuple[str, Sequence[Row]], found: tuple[str, Sequence[Row]], most: int = 5
) -> list[str]:
    """Describe the first rows in which one run differs from another, each with its name; empty where none does."""
    (reference, wanted_rows), (name, rows) = expected, found
    differing = (
        f"row {number}\n  {reference}: {wanted}\n  {name}: {row}"
        for number, (wanted, row) in enumerate(zip_longest(wanted_rows, rows))
        if wanted != row
    )
    return list(islice(differing, most))
