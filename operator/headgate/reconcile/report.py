"""Report: tell people what is so, when it is worth telling.

Numbers move with every tick, and writing each of them to an API server would cost more than the job is worth.
So a status is written when something changed that a person would act on, and otherwise now and then (`Upkeep`
says how often), so that whoever looks sees numbers that are not old.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.api.application import SparkApplication
from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.decide import Plan
from headgate.reconcile.events import UNKNOWN_NAME, changes, unknown_names
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.moves import has_changed, numbers_moved
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import Event, Ports, Upkeep
from headgate.reconcile.status import status_of


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
    if _is_worth_writing(status, memory, ports.upkeep, seen.now):
        ports.reports.write(status)
        memory = replace(memory, status_written=status, status_written_at=seen.now)
    return events, memory


def _is_worth_writing(status: SparkApplicationStatus, memory: LoopMemory, upkeep: Upkeep, now: float) -> bool:
    written = memory.status_written
    if written is None or has_changed(written, status):
        return True
    age = now - memory.status_written_at
    if status == written or 0 <= age < upkeep.numbers_seconds:
        return False
    return not 0 <= age < upkeep.small_moves_seconds or numbers_moved(written, status)
