"""What a reader of the results sees, and from when on: Spark's file sink tells it in its own log.

A file that the sink has written counts once the log of a batch names it, and not before: that is what makes its
output exactly-once for whoever reads it with Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

LOG = "_spark_metadata"


@dataclass(frozen=True)
class Appeared:
    """Rows of the result that came into sight together."""

    at: float
    """Seconds since 1970."""
    rows: int


def appearances(output: Path) -> tuple[Appeared, ...]:
    """Return the rows that each batch brought into sight, in order; batches that brought none are left out."""
    seen: set[Path] = set()
    found = []
    for log in sorted((output / LOG).glob("[0-9]*"), key=batch_of):
        new = [file for file in files_of(log) if file not in seen]
        seen.update(new)
        if rows := sum(pq.read_metadata(file).num_rows for file in new):
            found.append(Appeared(log.stat().st_mtime, rows))
    return tuple(found)


def committed(output: Path) -> set[Path]:
    """Return the files that are in sight."""
    return {file for log in (output / LOG).glob("[0-9]*") for file in files_of(log)}


def batch_of(log: Path) -> int:
    """Return the batch of a log: `7`, or `9.compact`, which repeats those before it."""
    return int(log.name.removesuffix(".compact"))


def files_of(log: Path) -> Iterator[Path]:
    """Yield the files that a log names; its first line is its version."""
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        entry = json.loads(line)
        if entry["action"] == "add":
            yield Path(unquote(urlsplit(entry["path"]).path))
