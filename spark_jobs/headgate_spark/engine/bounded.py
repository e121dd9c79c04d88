"""What a driver remembers that runs for months: tables whose oldest entries go, and what has been told already."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


def put_last(table: dict[str, T], key: str, value: T) -> None:
    table.pop(key, None)
    table[key] = value


def trim(table: dict[str, T], most: int) -> list[str]:
    """Drop the oldest entries of a table beyond so many; return their keys."""
    dropped = list(table)[: max(0, len(table) - most)]
    for key in dropped:
        del table[key]
    return dropped


class News(Generic[H]):
    """What is new at each look; what was mended is new again if it returns."""

    def __init__(self) -> None:
        self._known: frozenset[H] = frozenset()

    def among(self, found: Iterable[H]) -> list[H]:
        """Return what was not there at the look before."""
        now = list(found)
        before, self._known = self._known, frozenset(now)
        return [each for each in now if each not in before]
