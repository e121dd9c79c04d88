"""What a run is, whoever makes it: what is asked for, what comes back, and the seam between the two.

A second engine is another class with `run`: it is handed the same inputs and answers with the same values, so that
its runs take their turns among the others and have their results compared with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from benchmarks.backlog.comparison import Output

Mode = Literal["stream", "batch", "backfill"]


@dataclass(frozen=True)
class Request:
    """One run of one workload."""

    workload: str
    """By the name that it has in `jobs/workloads.py`."""
    inputs: Sequence[Path | str]
    """The directory of each side, or its topic."""
    mode: Mode = "stream"
    records_per_batch: int | None = None
    """Of all sides together; None for all there is."""
    bootstrap: str | None = None
    """Where the broker is, if the inputs are topics."""
    output: Path | None = None
    """The directory in which the result is to be, as files; None: the result is dropped."""
    query: str | None = None
    """The name of the stream; None: the workload's."""
    from_checkpoint: Path | None = None
    """What the stream goes on from: it is copied, and stays as it is; None: from the beginning."""
    to_checkpoint: Path | None = None
    """Where its checkpoint is to be kept; None: it is removed."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Properties of the session that hold for this run alone."""


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    began: float
    """When it was started, in seconds since 1970."""
    ended: float
    """When its last row was written."""
    batches: int
    """Micro-batches that read records, or checkpoints of an engine that has none; 1 for a batch job."""
    output: Output
    peak_bytes: Callable[[], int] | None = None
    """Reads off logs the highest heap after a collection, and what was spilled; None where the engine has none."""
    handed_over: float | None = None
    """When it was asked for, where planning and submitting it do not count; None where they do."""

    cpu_seconds: float | None = None
    """Processor time of all processes of the engine, what it does between runs included; None where nobody looked."""

    repeated: float | None = None
    """The largest part of the records that a failure repeats: those of a batch, or between the commits of an engine
    that has none; None where nobody looked."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.began


class Engine(Protocol):
    """Whatever can run a workload."""

    def run(self, request: Request) -> Ran:
        """Run it to its end; raises where it fails or takes too long."""
