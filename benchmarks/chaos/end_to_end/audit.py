"""What must be so when a run is over, read from the checkpoint, the sink, the journal of its files and event logs."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from laws.cover import CoverError, audit_checkpoint

from benchmarks.chaos.end_to_end.feed import FIRST, PARTITIONS, SECOND, TOPICS, Ends, Totals, timed, totals
from benchmarks.event_log import Batch, EventLog

CALL_SECONDS = 5.0
"""How long Spark waits for an answer of the planner; a source without one is left out of the batch."""


@dataclass(frozen=True)
class Limits:
    """What the job has asked for."""

    records_per_checkpoint: int
    records_per_second: float
    burst_seconds: float
    drift_ms: int = 0
    """Of the alignment group, where there is one."""


@dataclass
class Audit:
    """What came out."""

    batches: int
    lost: int
    """Records that are in a topic and not in what was counted."""
    doubled: int
    """Records that were counted more often than they are in a topic."""
    past_limit: int
    """Records that a batch may not have: too many of a source, past the limit of alignment, or held by `after`."""
    at_limit: int = 0
    """Batches with a partition that alignment alone has ended where it did."""
    broken: list[str] = field(default_factory=list)
    """Everything else that is not as it must be, a sentence each."""


def audit(
    *,
    checkpoint: Path,
    query: str,
    out: Path,
    journal: Path,
    events: Sequence[Path],
    ends: Ends,
    history: int,
    unheard: Collection[int],
    limits: Limits,
) -> Audit:
    """Judge a run that has read everything up to `ends`, and whose last driver was asked to stop.

    `events` are the event logs of its drivers, in order.
    `history` is where each partition of the first topic ended when it began. In the planning of the batches `unheard`
    the planner was hit: what it had answered of one source may have been lost to the other.
    """
    planned = {number: ends_of(checkpoint, number) for number in numbers(checkpoint / "offsets")}
    committed = numbers(checkpoint / "commits")
    batches = {number: EventLog(folder).of(query) for number, folder in enumerate(events, 1)}
    found = Audit(len(committed), *lost_and_doubled(final(out, committed), totals(ends)), past_limit=0)
    slow = {
        batch.number
        for ran in batches.values()
        for batch in ran
        if batch.planned - batch.started >= CALL_SECONDS
    }
    late, found.at_limit = aligned(planned, history, limits.drift_ms, slow.union(unheard))
    past = [*past_limit(planned, limits.records_per_checkpoint), *early(planned, history), *late]
    found.past_limit = sum(records for records, _ in past)
    found.broken += [
        *(what for _, what in past),
        *cover(checkpoint),
        *left_planned(planned, committed),
        *wrong_answers(out, committed, planned),
        *two_writers(journal),
        *other_ranges(batches, planned),
        *too_fast(batches, limits),
    ]
    return found


def numbers(log: Path) -> list[int]:
    """Return the batches that a log of a checkpoint has, in their order."""
    return sorted(int(entry.name) for entry in log.iterdir() if entry.name.isdigit())


def ends_of(checkpoint: Path, batch: int) -> Ends:
    """Return where a batch ends, as it was planned."""
    entries = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
    offsets = ChainMap(*(json.loads(entry[entry.index("{") :]) for entry in entries if "{" in entry))
    return {t: {int(partition): end for partition, end in offsets.get(t, {}).items()} for t in TOPICS}


def answer(out: Path, batch: int) -> Totals:
    """Return what the job wrote of a batch."""
    rows = json.loads((out / f"{batch}.json").read_text(encoding="utf-8"))
    return {(topic, key): (count, total) for topic, key, count, total in rows}


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


def past_limit(planned: Mapping[int, Ends], most: int) -> Iterator[tuple[int, str]]:
    """Yield by how many records a batch has more of a source than it may."""
    for number, before, ends in steps(planned):
        for topic in ends:
            if (size := sum(ends[topic].values()) - sum(before[topic].values())) > most:
                yield size - most, f"batch {number} has {size} records of {topic}"


def early(planned: Mapping[int, Ends], history: int) -> Iterator[tuple[int, str]]:
    """Yield how many records of the second topic a batch has, and the first one's history was not over before it."""
    for number, before, ends in steps(planned):
        read = sum(ends[SECOND].values()) - sum(before[SECOND].values())
        if read and not over(before, history):
            yield read, f"batch {number} has {read} records of {SECOND}, and {FIRST} was at {before[FIRST]}"


def over(before: Ends, history: int) -> bool:
    """Tell whether the history of the first topic was read."""
    return all(before[FIRST].get(partition, 0) >= history for partition in range(PARTITIONS))


def aligned(
    planned: Mapping[int, Ends], history: int, drift_ms: int, unheard: Collection[int]
) -> tuple[list[tuple[int, str]], int]:
    """Return how many records of a batch are later than the slowest partition after it and the drift, in words too.

    And how many batches have a partition that ends at this limit. Of a topic that one of `unheard` has left out,
    nobody can say how far it was to come.
    """
    past: list[tuple[int, str]] = []
    at_limit = 0
    for number, before, ends in steps(planned):
        read = {topic for topic in TOPICS if ends[topic] != before[topic]}
        members = [topic for topic in timed(history) if topic.name in read or number not in unheard]
        members = [topic for topic in members if topic.name == FIRST or over(before, history)]
        reached = [(t, n, t.time(n, ends[t.name].get(n, 0))) for t in members for n in range(PARTITIONS)]
        limit = min((time for _, _, time in reached), default=0) + drift_ms
        for topic, n, _ in reached:
            offsets = range(before[topic.name].get(n, 0), ends[topic.name].get(n, 0))
            if later := topic.later(n, offsets, limit):
                at = f"{later} of partition {n} of {topic.name}, {offsets}"
                past.append((later, f"batch {number} has records past {limit}: {at}"))
        # of the slowest, where it has been read to its end, the last record counts: a millisecond before the next
        at_limit += bool(read) and any(limit <= time <= limit + 1 for _, _, time in reached)
    return past, at_limit


def steps(planned: Mapping[int, Ends]) -> Iterator[tuple[int, Ends, Ends]]:
    """Yield each batch with where it begins and where it ends."""
    before: Ends = {topic: {} for topic in TOPICS}
    for number, ends in sorted(planned.items()):
        yield number, before, ends
        before = ends


def cover(checkpoint: Path) -> Iterator[str]:
    """Yield what the logs of the checkpoint break."""
    try:
        audit_checkpoint(checkpoint)
    except CoverError as error:
        yield str(error)


def left_planned(planned: Collection[int], committed: Collection[int]) -> Iterator[str]:
    """Yield that a stop has left a batch which is planned and not committed."""
    if left := set(planned).difference(committed):
        yield f"a driver that was asked to stop left a batch that it has planned: {sorted(left)}"


def wrong_answers(out: Path, committed: Sequence[int], planned: Mapping[int, Ends]) -> Iterator[str]:
    """Yield each batch that has told another count or sum of a key than there was up to its end."""
    for batch in committed:
        if not (out / f"{batch}.json").exists():
            yield f"batch {batch} was committed and has no output"
            continue
        right = totals(planned[batch])
        wrong = {key: told for key, told in answer(out, batch).items() if told != right.get(key)}
        if wrong:
            yield f"batch {batch} up to {planned[batch]}: it told {wrong}"


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
            if batch.end_rows != tuple(sum(ends.values()) for ends in planned[batch.number].values()):
                yield f"driver {driver} ran batch {batch.number} up to {batch.end_rows}, not {planned[batch.number]}"


def too_fast(batches: Mapping[int, Sequence[Batch]], limits: Limits) -> Iterator[str]:
    """Yield each driver that has planned more of a source in some time than its rate and a full bucket allow.

    The first batch of a driver may be one that the driver before it had planned. A bucket never holds more than the
    burst, of a second at least; each driver begins with a full one.
    """
    rate = limits.records_per_second
    most = rate * max(1.0, limits.burst_seconds) + 1
    for driver, ran in batches.items():
        worst = max(
            (ahead_of_rate(ran[1:], source, rate) for source in range(len(ran[0].end_rows))) if ran else (),
            default=0.0,
        )
        if worst > most:
            yield f"driver {driver} was {worst - most:,.0f} records ahead of its rate and a full bucket"


def ahead_of_rate(ran: Sequence[Batch], source: int, rate: float) -> float:
    """Return by how much what was planned of a source was ahead of its rate, at the most."""
    excess = worst = 0.0
    before = None
    for batch in ran:
        since = 0.0 if before is None else max(0.0, batch.planned - before)
        excess = max(0.0, excess - rate * since) + batch.end_rows[source] - batch.first_rows[source]
        worst, before = max(worst, excess), batch.started
    return worst
