"""L1, cover: what the logs of a checkpoint say was read, was read once, and in its order.

Spark begins a batch where the one before it ends, so two ranges of a partition can neither overlap nor leave a gap
unless an end goes back, an entry is missing, or a partition is gone. Integers in an offset's JSON are positions,
whatever the source; what else is in there has no order that anybody but the source knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NO_OFFSET = "-"
LINES_BEFORE_OFFSETS = 2
Partition = tuple[str, ...]


class CoverError(AssertionError):
    """A checkpoint breaks the law."""


def audit_checkpoint(path: Path, *, logs_may_change: bool = False) -> int:
    """Raise `CoverError` for a checkpoint that breaks the law; return how many batches it tells of.

    `logs_may_change`: topics were deleted, or created anew, so partitions may vanish and ends go back.
    """
    planned, committed = _ids(path / "offsets"), _ids(path / "commits")
    if not planned:
        if committed:
            raise CoverError(f"{path}: batches {committed} were committed, and none was planned")
        return 0
    if planned != list(range(planned[0], planned[-1] + 1)):
        raise CoverError(f"{path}/offsets: batches {planned} have a gap")
    kept = [
        batch for batch in committed if batch >= planned[0]
    ]  # older entries go from either log on its own
    if kept and kept != list(range(kept[0], kept[-1] + 1)):
        raise CoverError(f"{path}/commits: batches {kept} have a gap")
    if not set(kept) <= set(planned):
        raise CoverError(
            f"{path}: batches {sorted(set(kept) - set(planned))} were committed, and never planned"
        )
    if planned[-1] - (kept[-1] if kept else planned[0] - 1) > 1:
        raise CoverError(f"{path}: {planned[-1]} was planned before {planned[-1] - 1} was committed")
    if not logs_may_change:
        _in_order(path, planned)
    return len(planned)


def audit_checkpoints(root: Path, *, logs_may_change: bool = False) -> int:
    """The same for each checkpoint below a folder."""
    found = [offsets.parent for offsets in root.rglob("offsets") if (offsets.parent / "commits").is_dir()]
    return sum(audit_checkpoint(path, logs_may_change=logs_may_change) for path in found)


def _ids(log: Path) -> list[int]:
    return sorted(int(entry.name) for entry in log.iterdir() if entry.name.isdigit()) if log.is_dir() else []


def _in_order(path: Path, planned: list[int]) -> None:
    before: Mapping[str, Mapping[Partition, int]] | None = None
    for batch in planned:
        ends = _ends(path / "offsets" / str(batch))
        if ends is not None and before is not None and ends.keys() == before.keys():
            for source in ends:
                _goes_on(f"{path}/offsets/{batch}, source {source}", before[source], ends[source])
        before = ends


def _goes_on(where: str, before: Mapping[Partition, int], after: Mapping[Partition, int]) -> None:
    if gone := before.keys() - after.keys():
        raise CoverError(f"{where}: {sorted(gone)} vanished")
    for partition, end in before.items():
        if after[partition] < end:
            raise CoverError(f"{where}: {partition} goes back from {end} to {after[partition]}")


def _ends(entry: Path) -> Mapping[str, Mapping[Partition, int]] | None:
    """Return where the partitions of each source end; `None`: the entry has no form that is known."""
    try:
        form, *lines = entry.read_text(encoding="utf-8").splitlines() or [""]
    except FileNotFoundError:  # Spark purges old ones on a thread of its own
        return None
    told = lines[LINES_BEFORE_OFFSETS - 1 :]
    if form == "v1":
        named = {str(place): text for place, text in enumerate(told)}
    elif form == "v2" and all(":" in line for line in told):
        named = dict(line.split(":", 1) for line in told)
    else:
        return None
    return {source: dict(_integers(_json(text))) for source, text in named.items()}


def _json(text: str) -> Any:
    try:
        return None if text == NO_OFFSET else json.loads(text)
    except ValueError:
        return None


def _integers(value: Any, at: Partition = ()) -> Iterator[tuple[Partition, int]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield at, value
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from _integers(member, (*at, key))
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from _integers(member, (*at, str(place)))
