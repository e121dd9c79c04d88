"""Queries that properties name and that the job does not start: told when it has started none for a while."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping

import structlog

from headgate_contract.settings.strangers import named_query, of_queries
from headgate_spark.engine.bounded import News, put_last, trim

log = structlog.get_logger("headgate")

SETTLED_SECONDS = 30.0
"""How long after the start of a query another one may be about to start."""
MOST = 1_000
"""Properties that are remembered, and names of queries that have started."""


class Strangers:
    """Takes note of what starts. Any thread may call it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._lock = threading.Lock()
        self._properties: dict[str, str] = {}
        """Those that name a query that has not started."""
        self._started: dict[str, None] = {}
        self._settled_at: float | None = None
        self._tells_at = math.inf
        """When what is named in vain is to be logged; infinite: it has been."""
        self._news: News[str] = News()

    def begins(self, query: str, properties: Mapping[str, str]) -> None:
        """A query begins, in a session with these properties."""
        with self._lock:
            put_last(self._started, query, None)
            self._properties |= {
                key: value for key, value in properties.items() if named_query(key) is not None
            }
            self._properties = {
                k: v for k, v in self._properties.items() if named_query(k) not in self._started
            }
            trim(self._started, MOST)
            trim(self._properties, MOST)
            self._settled_at = self._tells_at = self._clock() + SETTLED_SECONDS

    @property
    def sentences(self) -> list[str]:
        """What is named in vain, each with what may be meant; none while more queries may be about to start."""
        with self._lock:
            if self._settled_at is None or self._clock() < self._settled_at:
                return []
            return list(of_queries(self._properties, self._started))

    def tell(self) -> None:
        """Log what is new of it; costs nothing but once after the start of a query."""
        if self._clock() < self._tells_at:
            return
        self._tells_at = math.inf
        self._log()

    def tell_at_end(self) -> None:
        """The driver ends, and nothing else starts: log what has not been told, as a run that ends soon leaves it."""
        with self._lock:
            if self._tells_at == math.inf:
                return
            self._settled_at = self._clock()
        self._log()

    def _log(self) -> None:
        for problem in self._news.among(self.sentences):
            log.warning("a setting is said of a query that the job does not have", problem=problem)
