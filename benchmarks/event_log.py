"""What Spark itself recorded of each batch, read from its event log while a job runs.

Governed and plain runs are measured by the same record, written by Spark, without a word in the job: the event
log has the progress of every batch, with offsets, times and state. Measuring them by anything of Headgate would
compare two instruments instead of two runs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

PROGRESS = b'{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"'


@dataclass(frozen=True)
class Batch:
    """One committed micro-batch. Times are seconds since 1970."""

    query: str
    number: int
    started: float
    """When its trigger fired."""
    planned: float
    """When the offsets at which it ends were known; of one that an earlier run had planned, when it started."""
    committed: float
    first_rows: tuple[int, ...]
    """The first row it read of each source."""
    end_rows: tuple[int, ...]
    """The row after the last one, of each source."""
    state_rows: int
    """Rows in the state of all operators after the batch."""
    late_rows: int = 0
    """Rows that came behind the watermark and were dropped."""

    @property
    def records(self) -> int:
        """Records of all sources; 0 for a batch that only moved the watermark on."""
        return sum(self.end_rows) - sum(self.first_rows)

    @property
    def seconds(self) -> float:
        """From trigger to commit."""
        return self.committed - self.started


@dataclass
class EventLog:
    """The event log of one run, followed as it grows."""

    directory: Path
    batches: list[Batch] = field(default_factory=list)
    _read: dict[Path, int] = field(default_factory=dict)

    def follow(self) -> list[Batch]:
        """Read what has been added since the last call; return all batches so far."""
        for file in sorted(self.directory.glob("**/events_*")):
            with file.open("rb") as lines:
                lines.seek(self._read.get(file, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self._read[file] = self._read.get(file, 0) + len(line)
                    if line.startswith(PROGRESS):
                        self._add(json.loads(line)["progress"])
        return self.batches

    def of(self, query: str) -> list[Batch]:
        """Return the batches of one query so far."""
        return [batch for batch in self.follow() if batch.query == query]

    def _add(self, progress: Mapping[str, Any]) -> None:
        if "addBatch" in progress["durationMs"]:
            self.batches.append(batch_of(progress))


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """Return the batch that Spark reports as `progress`."""
    started = datetime.fromisoformat(progress["timestamp"]).timestamp()
    durations = progress["durationMs"]
    return Batch(
        query=progress["name"],
        number=progress["batchId"],
        started=started,
        planned=started + durations.get("latestOffset", 0) / 1000,
        committed=started + durations["triggerExecution"] / 1000,
        first_rows=tuple(row_of(source["startOffset"]) for source in progress["sources"]),
        end_rows=tuple(row_of(source["endOffset"]) for source in progress["sources"]),
        state_rows=sum(operator["numRowsTotal"] for operator in progress["stateOperators"]),
        late_rows=sum(
            operator.get("numRowsDroppedByWatermark", 0) for operator in progress["stateOperators"]
        ),
    )


def row_of(offset: str | None) -> int:
    """Return the records before an offset, over all its splits; the first batch of a query starts at none.

    Replay writes `{"row": 17}`, Kafka `{"orders": {"0": 17, "1": 3}}`.
    """
    return sum_of(json.loads(offset)) if offset else 0


def sum_of(counts: Any) -> int:
    """Return the sum of all numbers in a JSON value."""
    return sum(map(sum_of, counts.values())) if isinstance(counts, dict) else int(counts)
