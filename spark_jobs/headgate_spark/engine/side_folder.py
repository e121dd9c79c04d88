"""The folder beside a checkpoint, `<checkpoint>.headgate/`, as one run uses it.

It is useful, and only a source that comes after a history needs it. Rights may end at the checkpoint itself, a disk
may be full, a folder may belong to somebody else: what cannot be read or kept there is told once, and the query goes
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import structlog

from headgate_contract.foreign import scrubbed
from headgate_spark.engine.store import DamagedFileError

log = structlog.get_logger("headgate")


class Kept(Enum):
    """What is kept there, and what is lost where that cannot be done."""

    BATCHES = (
        "what was learnt of batches",
        "the next run learns anew how large its batches may be, and does not know of one that did not fit",
    )
    TOPICS = (
        "the ids of topics",
        "the next run does not see whether a topic was created anew while the query was down",
    )
    HISTORIES = ("how far histories have been read", "no source can come after a history (`after`)")


class FolderError(RuntimeError):
    """A query cannot go on without the folder; the message says why, and what to do."""


class SideFolder:
    """Tells once what cannot be read or kept."""

    def __init__(self, query: str, folder: str) -> None:
        self._query = query
        self._folder = folder
        self._told: set[tuple[Kept, bool]] = set()

    def load(self, kept: Kept, load: Callable[[], Any | None]) -> Any | None:
        """Return what `load` gives; `None` also where it fails."""
        try:
            return load()
        except Exception as error:  # each file system fails in its own way
            self.tell(kept, error, written=False)
            return None

    def save(self, kept: Kept, save: Callable[[], None]) -> bool:
        """Save; return whether that was done."""
        try:
            save()
        except Exception as error:  # each file system fails in its own way
            self.tell(kept, error, written=True)
            return False
        return True

    def tell(self, kept: Kept, error: Exception, *, written: bool) -> None:
        """Say once what is lost, and the remedy."""
        if (kept, written) in self._told:
            return
        self._told.add((kept, written))
        what, lost = kept.value
        done = "kept" if written else "read"
        log.warning(f"{what} cannot be {done}: {lost}", query=self._query, problem=self.problem(error))

    def problem(self, error: Exception) -> str:
        """Return what is wrong with the folder, or with a file in it, and the remedy."""
        if isinstance(error, DamagedFileError):
            return f"{error}; the next one takes its place"
        return (
            f"{self._folder} cannot be used ({words_of(error)}); see that there is room, and that the job may list, "
            "read and write in it"
        )


@contextmanager
def tolerated(event: str, **about: str) -> Iterator[None]:
    """Log what fails and need not succeed: file systems and clients may, and a JVM that is ending in many ways."""
    try:
        yield
    except Exception as error:
        log.debug(event, **about, error=str(error))


def words_of(error: Exception) -> str:
    """Return what an exception says: of one of the JVM its first cause, without the stack frames that py4j adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.partition(": ")[2] for line in lines if line.startswith((": ", "Caused by: "))]
    return scrubbed(next(iter(causes[-1:] or lines[:1]), type(error).__name__))
