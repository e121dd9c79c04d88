"""What has become of the queries of a driver that run no more.

A driver may run for months and start its queries again by itself, so what is kept is bounded, and what a query has
failed of is forgotten when it is started again: it no longer explains how the driver ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import structlog

from headgate_spark.engine.run import QueryRun

log = structlog.get_logger("headgate")

MOST = 50
"""Queries that are kept of those that have ended, the last ones: one without a name and without a checkpoint location
has a new id each time."""

T = TypeVar("T")


class Endings:
    """The last runs of queries that have ended, and what is to be said of them, by query."""

    def __init__(self, forget: Callable[[str], None]) -> None:
        """`forget` is told of each query of which nothing is kept any more; no lock is held."""
        self._forget = forget
        self._lock = threading.Lock()
        self._runs: dict[str, QueryRun] = {}
        self._failed: dict[str, str] = {}
        self._unread: dict[str, str] = {}
        self._has_any = False

    def add(self, run: QueryRun) -> None:
        """A run has ended."""
        with self._lock:
            self._has_any = True
            last(self._runs, run.name, run)
            dropped = trimmed(self._runs)
            for name in dropped:
                self._failed.pop(name, None)
                self._unread.pop(name, None)
        for name in dropped:
            self._forget(name)

    def begins_again(self, query: str) -> None:
        """A query runs again: how it has ended before explains nothing any more."""
        with self._lock:
            for table in (self._runs, self._failed, self._unread):
                table.pop(query, None)

    def failed(self, query: str, explanation: str) -> None:
        """A query has failed, and runs no more."""
        with self._lock:
            self._has_any = True
            last(self._failed, query, explanation)
            trimmed(self._failed)

    def left_unread(self, query: str, problem: str) -> None:
        """A run has ended by itself, and has left something."""
        with self._lock:
            last(self._unread, query, problem)
            trimmed(self._unread)
        log.warning("a run has ended with records unread", problem=problem)

    @property
    def has_any(self) -> bool:
        """Whether a query has ever ended."""
        with self._lock:
            return self._has_any

    @property
    def failures(self) -> Mapping[str, str]:
        """What queries have failed of, by query: a sentence with the remedy."""
        with self._lock:
            return dict(self._failed)

    @property
    def unread(self) -> list[str]:
        """What runs that have ended by themselves have left unread."""
        with self._lock:
            return list(self._unread.values())

    def runs(self, but: Collection[str]) -> list[QueryRun]:
        """Return the last run of each query but these."""
        with self._lock:
            return [run for name, run in self._runs.items() if name not in but]

    @property
    def run_ids(self) -> set[str]:
        """The ids of the runs that are kept."""
        with self._lock:
            return {run.run_id for run in self._runs.values()}


def last(table: dict[str, T], key: str, value: T) -> None:
    """Put an entry behind all others."""
    table.pop(key, None)
    table[key] = value


def trimmed(table: dict[str, T], most: int = MOST) -> list[str]:
    """Drop the oldest entries of a table beyond so many; return their keys."""
    dropped = list(table)[: max(0, len(table) - most)]
    for key in dropped:
        del table[key]
    return dropped
