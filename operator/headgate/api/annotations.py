"""What people ask of a running application beside its `spec`: annotations, which no Git repository owns.

A pause or a checkpoint for this once is nothing to commit. The commands write these annotations as `kubectl annotate`
could, the loop reads them, and the operator never changes them. What is malformed asks for nothing: there is nobody
to refuse it, since the API server takes any text.
"""

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

PAUSED: Final = "headgate.dev/paused"
"""Sources that are not read for now: `query/source`, separated by commas."""
CHECKPOINT: Final = "headgate.dev/checkpoint"
"""When a checkpoint was asked for last: a moment for all queries, `query/moment` for one, separated by commas."""

SourceId: TypeAlias = tuple[str, str]
"""A query and one of its sources."""

ALL_QUERIES: Final = ""
"""Stands for every query that has no request of its own."""


def paused_sources(annotations: Mapping[str, str]) -> frozenset[SourceId]:
    """Return the sources that the annotation pauses; what has no slash names nothing."""
    pairs = (entry.partition("/") for entry in paused_entries(annotations))
    return frozenset((query, source) for query, slash, source in pairs if slash)


def paused_entries(annotations: Mapping[str, str]) -> list[str]:
    """Return what stands between the commas of the annotation that pauses, whether it names anything or not."""
    return _entries(annotations.get(PAUSED, ""))


def paused_text(sources: Collection[SourceId]) -> str | None:
    """Return the annotation that pauses `sources`; None: it is to be removed."""
    return ",".join(f"{query}/{source}" for query, source in sorted(sources)) or None


def checkpoint_requests(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the last request by query; under `ALL_QUERIES` that of all which have none of their own."""
    entries = (entry.rpartition("/") for entry in _entries(annotations.get(CHECKPOINT, "")))
    return {query: moment for query, _, moment in entries}


def checkpoint_text(requests: Mapping[str, str]) -> str:
    return ",".join(f"{query}/{moment}" if query else moment for query, moment in sorted(requests.items()))


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]
