"""Where a query takes up again, read from its checkpoint before Spark does.

Spark plans a batch by an entry in `offsets/` and commits it by one of the same number in `commits/`. So a batch that
has the one and not the other was running when the last run of the query ended, however that ended, and runs again.
By the time a source is first asked it has been repeated already, so all this is read when a query is opened. The
names of the entries are all that is needed for most of it; the form of an entry (`v1`: a line of metadata, then one
per source, `-` for none) has been the same since Spark 2.1, and where it is another nothing is taken to be known.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate_spark.engine.directory import Directory

LINES_BEFORE_OFFSETS = 2
NO_OFFSET = "-"


@dataclass(frozen=True, slots=True)
class Resumption:
    """The last batch that was planned in a checkpoint."""

    batch: int | None = None
    """Its id; `None`: none was planned, the query is new."""
    repeats: bool = False
    """It was not committed, and runs again."""
    offsets: tuple[str | None, ...] = ()
    """Where its sources end, in the order in which they are opened; empty where that cannot be told."""


def read_resumption(offsets: Directory, commits: Directory) -> Resumption:
    """Return where the query takes up again. Raises what the file system raises."""
    planned, committed = _last(offsets), _last(commits)
    if planned is None:
        return Resumption()
    repeats = committed is None or committed < planned
    return Resumption(planned, repeats, offsets_in(offsets.read(str(planned))))


def _last(log: Directory) -> int | None:
    return max((int(name) for name in log.names() if name.isdigit()), default=None)


def offsets_in(entry: str) -> tuple[str | None, ...]:
    """Return the offsets in an entry of the offset log."""
    lines = entry.splitlines()
    if not lines or lines[0] != "v1":
        return ()
    return tuple(None if line == NO_OFFSET else line for line in lines[LINES_BEFORE_OFFSETS:])
