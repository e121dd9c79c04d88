"""Report: tell people what is so, when it is worth telling.

Numbers move with every tick, and writing each of them to an API server would cost more than the job is worth.
So a status is written when something changed that a person would act on, and otherwise now and then, so that
whoever looks sees numbers that are not old.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.api.application import SparkApplication
from headgate.api.status import QueryStatus, SourceStatus, SparkApplicationStatus, Summary
from headgate.reconcile.decide import Plan
from headgate.reconcile.events import UNKNOWN_NAME, changes, unknown_names
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import Event, Ports
from headgate.reconcile.status import status_of

REFRESH_SECONDS = 30.0
"""How old the numbers in a written status may be while they move."""


def report(
    application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory, ports: Ports
) -> tuple[tuple[Event, ...], LoopMemory]:
    """Tell what changed, and return the events and the memory of having told them."""
    status = status_of(application, seen, plan, memory)
    complaints = unknown_names(application, seen)
    events = (
        *changes(memory.status, status, seen, plan),
        *(
            Event(at=seen.now, reason=UNKNOWN_NAME, message=complaint, is_warning=True)
            for complaint in complaints
            if complaint not in memory.unknown_names
        ),
    )
    for event in events:
        ports.reports.tell(event)
    memory = replace(memory, status=status, unknown_names=complaints)
    if _is_worth_writing(status, memory, seen.now):
        ports.reports.write(status)
        memory = replace(memory, status_written=status, status_written_at=seen.now)
    return events, memory


def _is_worth_writing(status: SparkApplicationStatus, memory: LoopMemory, now: float) -> bool:
    written = memory.status_written
    if written is None or without_numbers(status) != without_numbers(written):
        return True
    return status != written and not 0 <= now - memory.status_written_at < REFRESH_SECONDS


def without_numbers(status: SparkApplicationStatus) -> SparkApplicationStatus:
    """Return the status without what moves from tick to tick."""
    return status.model_copy(
        update={
            "summary": Summary(query=status.summary.query, backlog=status.summary.backlog),
            "conditions": tuple(c.model_copy(update={"message": ""}) for c in status.conditions),
            "queries": tuple(_query_without_numbers(query) for query in status.queries),
        }
    )


def _query_without_numbers(query: QueryStatus) -> QueryStatus:
    still = dict.fromkeys(("grant", "throughput", "pending_records", "watermark_lag", "eta"))
    sources = tuple(_source_without_numbers(source) for source in query.sources)
    return query.model_copy(update={**still, "sources": sources})


def _source_without_numbers(source: SourceStatus) -> SourceStatus:
    still = dict.fromkeys(("watermark_lag", "pending_records", "alignment", "held"))
    return source.model_copy(update=still)
