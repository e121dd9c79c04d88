"""What a document asks of a source that the source, as it is, cannot do, and that is left undone.

The query goes on without it; whoever wrote it would wait in vain for what it was to do, so it is told, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import structlog

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import Lane

log = structlog.get_logger("headgate")

WHOLE = "is read whole or not at all (lane gate), so no batch of it can be cut"


def unheeded(control: QueryControl | None, sources: Mapping[str, Descriptor]) -> list[str]:
    """Return what is not done, each with the remedy. `sources` are those of the job by name."""
    if control is None:
        return []
    of_sources = [
        problem
        for name, source in control.sources.items()
        if name in sources
        for problem in _of_source(name, source, sources[name])
    ]
    whole = sorted(name for name, described in sources.items() if described.lane is Lane.GATE)
    if whole and control.batch.max_records != BatchControl().max_records:
        is_read = WHOLE if len(whole) == 1 else WHOLE.replace("is read", "are read", 1)
        of_sources.append(f"batch.maxRecords does not bound {', '.join(whole)}, which {is_read}")
    return of_sources


def _of_source(name: str, control: SourceControl, described: Descriptor) -> Iterator[str]:
    if control.publish_group is not None and described.format != "kafka":
        yield (
            f"kafka.publishGroup of source {name} does nothing: its format is {described.format}, and only positions "
            "in Kafka can be published; leave it out"
        )
    limits = (control.rate_limit, control.rate_limit_during_backlog)
    if described.lane is Lane.GATE and any(limit and limit.records_per_checkpoint for limit in limits):
        yield (
            f"rateLimit.recordsPerCheckpoint of source {name} does nothing: it {WHOLE}; use recordsPerSecond, which "
            "holds in the long run, or the source's own limit in the job"
        )


class Unheeded:
    """Tells of one query's, each once."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._told: frozenset[str] = frozenset()

    def tell(self, control: QueryControl | None, sources: Mapping[str, Descriptor]) -> None:
        """A document is in force: log what is new of what is not done. What was mended is told anew if it returns."""
        found = unheeded(control, sources)
        for problem in found:
            if problem not in self._told:
                log.warning("a setting is not heeded", query=self._query, problem=problem)
        self._told = frozenset(found)
