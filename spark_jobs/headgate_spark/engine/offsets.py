"""A source's own offsets and the planner's positions: the same thing in two forms.

The planner counts records per split. A source writes JSON of its own making into the checkpoint, and only that
may go back to it, since the checkpoint must stay readable without Headgate. Only formats whose integers are known
to count records are translated; for every other source the planner has coarser means (`Lane`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from headgate_spark.planner.model import Position


class OffsetFormat(Protocol):
    """How one kind of source writes its offsets."""

    def position(self, offset: str) -> Position:
        """Return the records per split.

        Raises `ValueError` if `offset` is not of this format, `RecursionError` if it is nested too deeply for JSON.
        """

    def offset(self, position: Position, latest: str) -> str:
        """Return the offset of `position`, in the shape of `latest`."""


class RecordCounts:
    """JSON objects, nested or flat, whose leaves count records.

    Kafka: `{"orders": {"0": 17}}` is `{"orders/0": 17}`. The replay source: `{"row": 17}` is itself.
    """

    def position(self, offset: str) -> Position:
        """Return the records per split, splits being named by the path of the leaf."""
        return dict(_leaves(json.loads(offset), ()))

    def offset(self, position: Position, latest: str) -> str:
        """Return `position` as JSON.

        A split that the planner has no position for is one that has just appeared: it is taken up to its latest,
        because only the source knows where it begins.
        """
        return json.dumps(_rebuilt(json.loads(latest), (), position), separators=(",", ":"))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif type(value) is int and path:
        yield "/".join(path), value
    else:
        raise ValueError(
            f"offset member {'/'.join(path) or '(all)'} is {value!r}; expected a count of records"
        )


def _rebuilt(value: Any, path: tuple[str, ...], position: Position) -> Any:
    if isinstance(value, dict):
        return {key: _rebuilt(inner, (*path, key), position) for key, inner in value.items()}
    return position.get("/".join(path), value)
