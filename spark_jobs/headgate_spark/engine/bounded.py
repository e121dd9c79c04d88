"""Tables that a driver which runs for months does not let grow: the oldest entries go."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def put_last(table: dict[str, T], key: str, value: T) -> None:
    """Put an entry behind all others."""
    table.pop(key, None)
    table[key] = value


def trim(table: dict[str, T], most: int) -> list[str]:
    """Drop the oldest entries of a table beyond so many; return their keys."""
    dropped = list(table)[: max(0, len(table) - most)]
    for key in dropped:
        del table[key]
    return dropped
