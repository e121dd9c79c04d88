"""What is kept of histories beside a checkpoint, as JSON: where each ends, and which have been read."""

from __future__ import annotations

from typing import Any

from headgate_spark.planner.model import HybridMemory


def value_of(memory: HybridMemory) -> Any:
    """Return what is kept."""
    ends = {name: dict(end) for name, end in memory.ends.items()}
    return {"ends": ends, "finished": sorted(memory.finished)}


def memory_in(value: Any) -> HybridMemory:
    """Return what was kept as `value`; members of a later version are ignored. Raises ValueError."""
    members = value if isinstance(value, dict) else {}
    ends, finished = members.get("ends"), members.get("finished")
    if not isinstance(ends, dict) or not all(map(_is_position, ends.values())):
        raise ValueError("`ends` has no offsets by source and split")
    if not isinstance(finished, list) or not all(isinstance(name, str) for name in finished):
        raise ValueError("`finished` is no list of sources")
    return HybridMemory(ends, frozenset(finished))


def _is_position(value: Any) -> bool:
    return isinstance(value, dict) and all(type(at) is int for at in value.values())
