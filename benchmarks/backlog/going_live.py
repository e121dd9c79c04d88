"""A query that works a backlog off and then goes on live, in one run, which ends with its recording.

Every run of a query reads the same records, so that its result is the same too, however its batches were cut: it is
told to stop only when its last record has been committed, and lets Spark first run the batch without records that
closes what the last watermark closes. What a run came to is read off Spark's event log.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.backlog.comparison import Output
from benchmarks.backlog.session import Session, turns
from benchmarks.event_log import Batch
from benchmarks.local.recording import Recording

QUERY = "live"
INTERVAL = 0.5
"""Of triggers in the plain run, and of commits in the governed one once it is live; seconds."""
PENDING_SECONDS = 5
"""More than what arrives in this time is a backlog."""
WAIT_SECONDS = 180.0
"""How long a run may take beside the time in which records arrive: it ends one that hangs, and no slow one."""


@dataclass(frozen=True)
class Flow:
    """What a run reads: a recording whose backlog is there, and whose other rows arrive over time."""

    recording: Recording
    directory: Path
    speed: float = 1.0
    """How many times as fast as their event times say."""
    reads: int = 1
    """How often the query reads it."""

    @property
    def inputs(self) -> list[str]:
        """The inputs of a request."""
        return [str(self.directory.resolve())] * self.reads

    @property
    def live_seconds(self) -> float:
        """How long live records arrive."""
        return self.recording.live_seconds / self.speed

    def arrived_after(self, row: int) -> float:
        """Return how many seconds after the beginning of the live part a row arrives; below 0: before it."""
        return self.recording.arrived_after(row) / self.speed


@dataclass(frozen=True)
class Run:
    """One run, as Spark's event log has it."""

    began: float
    """When the live part began, in seconds since 1970."""
    batches: Sequence[Batch]
    output: Output


def query(flow: Flow) -> Mapping[str, object]:
    """Return what the resource of a governed run says of its query; a second source on the recording follows."""
    pending = round(PENDING_SECONDS * flow.recording.live_rows_per_second * flow.speed)
    return {
        "name": QUERY,
        "checkpoint": {"interval": f"{INTERVAL * 1000:.0f}ms", "intervalDuringBacklog": "0s"},
        "sources": [{"name": flow.recording.name, "backlog": {"pendingRecords": pending}}],
    }


def run(
    session: Session, workload: str, flow: Flow, records_per_batch: int | None, *, under_load: bool
) -> Run:
    """Make one run. `under_load`: live records arrive from its beginning on, and not only when it has caught up.

    It has caught up when the backlog is committed and Spark has closed what that closes, in a batch without records:
    one batch of everything leaves all of that to it.

    Raises TimeoutError where it does not get on.
    """
    sign, asked = turns(session.place) / "live", time.time()
    sign.unlink(missing_ok=True)
    if under_load:
        sign.touch()
    turn = session.ask(
        {
            "workload": workload,
            "mode": "stream",
            "inputs": flow.inputs,
            "records_per_batch": records_per_batch,
            "query": QUERY,
            "live": str(sign.resolve()),
            "speed": flow.speed,
            "trigger": f"{INTERVAL * 1000:.0f} milliseconds",
        }
    )
    wait = partial(wait_for_commit, session, asked)
    try:
        if not under_load:
            wait("the backlog", flow.recording.backlog_rows, WAIT_SECONDS)
            turn.with_suffix(".caught_up").touch()
            session.child.wait_for("the live part", lambda: sign.exists() or None, WAIT_SECONDS)
        wait("the recording", flow.recording.rows, flow.live_seconds + WAIT_SECONDS)
    finally:
        turn.with_suffix(".stop").touch()
    output = Output(**session.answer(turn)["output"])
    return Run(sign.stat().st_mtime, batches_since(session, asked), output)


def wait_for_commit(session: Session, asked: float, what: str, rows: int, seconds: float) -> None:
    """Wait until the run that was `asked` for at a time has committed so many rows of every source."""
    session.child.wait_for(
        f"the end of {what}",
        lambda: next((one for one in batches_since(session, asked) if has_read(one, rows)), None),
        seconds,
    )


def batches_since(session: Session, asked: float) -> list[Batch]:
    """Return the batches of the run that was `asked` for at a time, which is the last one."""
    return [one for one in session.log.of(QUERY) if one.started >= asked]


def has_read(batch: Batch, rows: int) -> bool:
    """Tell whether so many rows of every source have been read when a batch is committed."""
    return all(end >= rows for end in batch.end_rows)


def catch_up(made: Run, flow: Flow) -> Sequence[Batch]:
    """Return the batches up to the one that reached the end of the backlog."""
    last = next(
        number for number, one in enumerate(made.batches) if has_read(one, flow.recording.backlog_rows)
    )
    return made.batches[: last + 1]


def latencies(made: Run, flow: Flow, start: float, end: float) -> list[float]:
    """Return of each batch its commit minus the arrival of its oldest record, in seconds.

    A batch counts if that record arrived in a time, in seconds from the beginning of the live part.
    """
    arrivals = [(oldest(one, flow), one.committed - made.began) for one in made.batches if one.records]
    return [committed - arrived for arrived, committed in arrivals if start <= arrived < end]


def oldest(batch: Batch, flow: Flow) -> float:
    """Return when the oldest record of a batch arrived, in seconds from the beginning of the live part."""
    spans = zip(batch.first_rows, batch.end_rows, strict=True)
    return min(flow.arrived_after(first) for first, end in spans if end > first)
