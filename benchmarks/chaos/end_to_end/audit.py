"""What must be so when a run is over, read from the checkpoint, the sink, the journal of its files and event logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from laws.cover import CoverError, audit_checkpoint

from benchmarks.chaos.end_to_end.feed import Totals, totals
from benchmarks.event_log import Batch, EventLog

Ends = Mapping[int, int]
"""By partition, the offset after the last record."""


@dataclass(frozen=True)
class Limits:
    """What the job has asked for."""

    records_per_checkpoint: int
    records_per_second: float
    burst_seconds: float


@dataclass
class Audit:
    """What came out."""

    batches: int
    lost: int
    """Records that are in the topic and not in what was counted."""
    doubled: int
    """Records that were counted more often than they are in the topic."""
    past_limit: int
    """Records of batches beyond what a batch may have."""
    broken: list[str] = field(default_factory=list)
    """Everything else that is not as it must be, a sentence each."""


def audit(
    *,
    checkpoint: Path,
    query: str,
    topic: str,
    out: Path,
    journal: Path,
    events: Sequence[Path],
    ends: Ends,
    limits: Limits,
) -> Audit:
    """Judge a run that has read everything up to `ends`; `events` are the event logs of its drivers, in order."""
    planned = {number: ends_of(checkpoint, number, topic) for number in numbers(checkpoint / "offsets")}
    committed = numbers(checkpoint / "commits")
    batches = {number: EventLog(folder).of(query) for number, folder in enumerate(events, 1)}
    found = Audit(len(committed), *lost_and_doubled(final(out, committed), totals(ends)), past_limit=0)
    found.past_limit = past_limit(planned, limits.records_per_checkpoint)
    found.broken += [
        *cover(checkpoint),
        *wrong_answers(out, committed, planned),
        *two_writers(journal),
        *other_ranges(batches, planned),
        *too_fast(batches, limits),
    ]
    return found


def numbers(log: Path) -> list[int]:
    """Return the batches that a log of a checkpoint has, in their order."""
    return sorted(int(entry.name) for entry in log.iterdir() if entry.name.isdigit())


def ends_of(checkpoint: Path, batch: int, topic: str) -> Ends:
    """Return where a batch ends, as it was planned."""
    entry = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[-1]
    offset = json.loads(entry[entry.index("{") :])
    return {int(partition): end for partition, end in offset[topic].items()}


def answer(out: Path, batch: int) -> Totals:
    """Return what the job wrote of a batch."""
    rows = json.loads((out / f"{batch}.json").read_text(encoding="utf-8"))
    return {key: (count, total) for key, count, total in rows}


def final(out: Path, committed: Sequence[int]) -> Totals:
    """Return what was counted in the end: of each key, what the last batch has that has changed it."""
    found: Totals = {}
    for batch in committed:
        if (out / f"{batch}.json").exists():
            found |= answer(out, batch)
    return found


def lost_and_doubled(found: Totals, expected: Totals) -> tuple[int, int]:
    """Return how many records are missing, and how many are too many. A sum that is wrong counts as one of each."""
    lost = doubled = 0
    for key in found.keys() | expected.keys():
        count, total = found.get(key, (0, 0))
        right, right_total = expected.get(key, (0, 0))
        other = count == right and total != right_total
        lost += max(0, right - count) + other
        doubled += max(0, count - right) + other
    return lost, doubled


def past_limit(planned: Mapping[int, Ends], most: int) -> int:
    """Return by how many records batches are larger than they may be."""
    sizes, before = [], 0
    for batch in sorted(planned):
        end = sum(planned[batch].values())
        sizes.append(end - before)
        before = end
    return sum(max(0, size - most) for size in sizes)


def cover(checkpoint: Path) -> Iterator[str]:
    """Yield what the logs of the checkpoint break."""
    try:
        audit_checkpoint(checkpoint)
    except CoverError as error:
        yield str(error)


def wrong_answers(out: Path, committed: Sequence[int], planned: Mapping[int, Ends]) -> Iterator[str]:
    """Yield each batch that has told another count or sum of a key than there was up to its end."""
    for batch in committed:
        if not (out / f"{batch}.json").exists():
            yield f"batch {batch} was committed and has no output"
            continue
        right = totals(planned[batch])
        wrong = {key: told for key, told in answer(out, batch).items() if told != right.get(key)}
        if wrong:
            yield f"batch {batch} up to {dict(planned[batch])}: it told {wrong}"


def two_writers(journal: Path) -> Iterator[str]:
    """Yield what says that two drivers have committed: a batch twice, or one driver after the next had begun to."""
    lines = [line.split(" ") for line in journal.read_text(encoding="utf-8").splitlines()]
    commits = [(name, int(entry)) for name, log, entry in lines if log == "commits" and entry.isdigit()]
    batches = [batch for _, batch in commits]
    if batches != sorted(set(batches)):
        again = [batch for earlier, batch in pairwise(batches) if batch <= earlier]
        yield f"batches were committed twice, or out of order: {again}"
    turns = [name for name, _ in groupby(name for name, _ in commits)]
    if len(turns) != len(set(turns)):
        yield f"a driver has committed after the one that took its checkpoint: {turns}"


def other_ranges(batches: Mapping[int, Sequence[Batch]], planned: Mapping[int, Ends]) -> Iterator[str]:
    """Yield each batch that a driver has run up to elsewhere than its entry in the checkpoint says."""
    for driver, ran in batches.items():
        for batch in ran:
            if sum(batch.end_rows) != sum(planned[batch.number].values()):
                yield f"driver {driver} ran batch {batch.number} up to {batch.end_rows}, not {planned[batch.number]}"


def too_fast(batches: Mapping[int, Sequence[Batch]], limits: Limits) -> Iterator[str]:
    """Yield each driver that has planned more in some time than its rate and a full bucket allow.

    The first batch of a driver may be one that the driver before it had planned. A bucket never holds more than the
    burst, of a second at least; each driver begins with a full one.
    """
    rate = limits.records_per_second
    most = rate * max(1.0, limits.burst_seconds) + 1
    for driver, ran in batches.items():
        excess = worst = 0.0
        before = None
        for batch in ran[1:]:
            since = 0.0 if before is None else max(0.0, batch.planned - before)
            excess = max(0.0, excess - rate * since) + batch.records
            worst, before = max(worst, excess), batch.started
        if worst > most:
            yield f"driver {driver} was {worst - most:,.0f} records ahead of its rate and a full bucket"
