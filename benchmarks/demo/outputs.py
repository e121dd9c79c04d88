"""The results of the runs, compared row by row."""

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

Row = dict[str, Any]

SORT_KEYS = [("hour", "ascending"), ("origin", "ascending")]


def read_output(directory: Path) -> list[Row]:
    """Return the rows that a run wrote, in order of hour and airport."""
    files = [str(file) for file in sorted(directory.glob("*.parquet"))]
    if not files:
        return []
    rows: list[Row] = ds.dataset(files, format="parquet").to_table().sort_by(SORT_KEYS).to_pylist()
    return rows


def first_differences(outputs: Mapping[str, list[Row]], most: int = 5) -> list[str]:
    """Describe the first rows in which a run differs from the first run; empty where all are equal."""
    (reference, expected), *others = outputs.items()
    found: list[str] = []
    for name, rows in others:
        differing = (
            f"row {number}\n  {reference}: {wanted}\n  {name}: {row}"
            for number, (wanted, row) in enumerate(zip_longest(expected, rows))
            if wanted != row
        )
        found += [text for text, _ in zip(differing, range(most), strict=False)]
    return found
