"""Sources that are read one after the other (`after`): a chain that ends in itself never starts.

Whoever writes a resource and whoever writes a control document by hand is refused it by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def cycles(after: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield each cycle of `after` (a source and the one that it waits for) once, from its first source in order.

    A source that waits for itself is a cycle of one.
    """
    seen: set[str] = set()
    for name in after:
        if name not in seen and (cycle := _cycle_from(name, after)):
            seen.update(cycle)
            yield tuple(cycle)


def problem(cycle: tuple[str, ...]) -> str:
    """Return what is wrong with a cycle, and what to do."""
    way = " after ".join([*cycle, cycle[0]])
    if len(cycle) == 1:
        return f"{way}: it would never start; name the source that holds the history"
    return f"{way}: none of them would ever start; let one start by itself"


def _cycle_from(start: str, after: Mapping[str, str]) -> list[str]:
    """Return the way from `start` back to itself, or nothing."""
    way = [start]
    while (following := after.get(way[-1])) is not None:
        if following == start:
            return way
        if following in way:
            break
        way.append(following)
    return []
