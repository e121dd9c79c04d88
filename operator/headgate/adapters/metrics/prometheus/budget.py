"""Whose expressions are asked: fair between namespaces, however many each has.

Pure functions of who wants what. A namespace of a thousand expressions takes as many turns as one of a single one,
until the latter has nothing more to ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TypeVar

T = TypeVar("T")


def admitted(wanted: Mapping[str, Sequence[T]], room: int) -> dict[str, list[T]]:
    """Return the first ones of each namespace, as many as there is room for; the least of a namespace is one.

    What several namespaces want takes room once. The choice is the same each time, as long as `wanted` is.
    """
    if len({one for group in wanted.values() for one in group}) <= room:
        return {namespace: list(group) for namespace, group in wanted.items()}
    found: dict[str, list[T]] = {namespace: [] for namespace in wanted}
    taken: set[T] = set()
    for _, namespace, one in _in_turn({name: (0, group) for name, group in sorted(wanted.items())}):
        if one in taken or len(taken) < room or not found[namespace]:
            taken.add(one)
            found[namespace].append(one)
    return found


def chosen(
    waiting: Mapping[str, Sequence[T]], under_way: Iterable[str], turn_at: Mapping[str, float], most: int
) -> list[tuple[str, T]]:
    """Return what is asked now, the most urgent first, each once.

    `waiting` is what each namespace would have asked, in order; `under_way` names those that have something asked
    already, once for each; `turn_at` is when each had its last turn. Namespaces that have waited longest come first.
    As many are under way in the end as `most`; a namespace that has nothing under way gets its turn even so.
    """
    running = Counter(under_way)
    total = running.total()
    found: list[tuple[str, T]] = []
    known: set[T] = set()
    order = sorted(waiting, key=lambda namespace: turn_at.get(namespace, 0.0))
    for turn, namespace, one in _in_turn({name: (running[name], waiting[name]) for name in order}):
        if len(found) >= most:
            break
        if one in known or (turn > 0 and total + len(found) >= most):
            continue
        known.add(one)
        found.append((namespace, one))
    return found


def _in_turn(groups: Mapping[str, tuple[int, Sequence[T]]]) -> Iterator[tuple[int, str, T]]:
    """Yield the members of all groups by the number of their turn; each group counts from a number of its own."""
    left = {name: (first, iter(group)) for name, (first, group) in groups.items()}
    for turn in count():
        if not left:
            return
        for name, (first, group) in list(left.items()):
            if first > turn:
                continue
            try:
                yield turn, name, next(group)
            except StopIteration:
                del left[name]
