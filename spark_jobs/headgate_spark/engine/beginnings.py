"""Where partitions begin that a source has come to have while it runs.

Spark reads a new partition from its earliest offset, but tells nobody where that is before the batch has been
planned: nothing of it could be counted, and the first batch would take it whole, past every limit. So the beginning
is looked up by the source's own means, and the source is held until it is known, most often for one trigger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTimeError

import structlog

from headgate_spark.engine.aside import aside
from headgate_spark.planner.model import Position

log = structlog.get_logger("headgate")

TRIES = 3
"""So many failures in a row are worth a warning: a broker that was away for one of them is back by the next, because
each takes as long as the client's timeouts."""

Find = Callable[[Mapping[str, str], Collection[str]], Position]
"""Return the first offsets of splits (`topic/0`) of a source with these options; may take long and raise anything."""


class Beginnings:
    """The splits of one source that have appeared since Spark last said where it is."""

    def __init__(self, source: str, find: Callable[[Collection[str]], Position]) -> None:
        """`find` is called on a thread of its own."""
        self._source = source
        self._find = find
        self._known: dict[str, int] = {}
        self._answer: Future[Position] | None = None
        self._failures = 0
        """In a row."""

    def completed(self, start: Position) -> Position:
        """Return `start` with the splits that are not in it, each at its beginning."""
        return {**self._known, **start}

    def are_settled(self, start: Position, latest: Position, deadline: float) -> bool:
        """Tell whether every split of `latest` may be planned; if not, the source is to be asked again.

        It may wait until `deadline` (`time.monotonic`).
        """
        # A split that goes and comes back is another: where the first began, the second may have ended long ago.
        awaited = latest.keys() - start.keys()
        self._known = {split: at for split, at in self._known.items() if split in awaited}
        new = frozenset(awaited - self._known.keys())
        if not new:
            return True
        if self._answer is None:
            self._answer = aside("headgate-beginnings", lambda: self._find(new))
        try:
            self._known |= self._answer.result(max(0.0, deadline - time.monotonic()))
            self._failures = 0
        except NotInTimeError:
            return False
        except Exception as error:
            self._failures += 1
            if self._failures == TRIES:
                log.warning(
                    "a source is held, because it is not known where new partitions begin; it is asked again",
                    source=self._source,
                    error=str(error),
                )
        self._answer = None
        return False
