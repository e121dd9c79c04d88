"""Report: tell people what is so, when it is worth telling.

Numbers move with every tick, and writing each of them to an API server would cost more than the job is worth.
So a status is written when something changed that a person would act on, and otherwise now and then (`WritePolicy`
says how often), so that whoever looks sees numbers that are not old.
"""

from dataclasses import replace

from headgate.api.application import SparkApplication
from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.decide import Plan
from headgate.reconcile.events import changes, complaints
from headgate.reconcile.executors import executors_short_since
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import Event, Ports, WritePolicy
from headgate.reconcile.significance import (
    after_restart,
    after_write,
    has_changed,
    has_flapped,
    next_write,
    numbers_moved,
)
from headgate.reconcile.status import status_of


def report(
    application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory, ports: Ports
) -> tuple[tuple[Event, ...], LoopMemory]:
    """Tell what changed, and return the events and the memory of having told them."""
    status = status_of(application, seen, plan, memory)
    in_vain = _in_vain(application, seen, plan, memory)
    events = (
        *changes(memory.status, status, seen, plan),
        *(
            Event(at=seen.now, reason=reason, message=message, is_warning=True)
            for reason, message in in_vain
            if (reason, message) not in memory.complaints
        ),
    )
    for event in events:
        ports.reports.tell(event)
    short_since = executors_short_since(seen, plan, memory)
    memory = replace(memory, status=status, complaints=in_vain, executors_short_since=short_since)
    if (told := _written(status, memory, ports.write_policy, seen.now)) is not None:
        ports.reports.write(status)
        memory = told
    return events, memory


def _in_vain(
    application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory
) -> tuple[tuple[str, str], ...]:
    """Return what is asked for in vain; while not all is known of the driver, also what was told of it before."""
    now, before = tuple(complaints(application, seen)), memory.status
    is_same_attempt = before is not None and before.attempt == plan.step.history.attempt
    if seen.knows_all or seen.living_driver is None or not is_same_attempt:
        return now
    return tuple(dict.fromkeys((*memory.complaints, *now)))


def _written(
    status: SparkApplicationStatus, memory: LoopMemory, write_policy: WritePolicy, now: float
) -> LoopMemory | None:
    """Return the memory of having written the status; `None` where that is not worth it."""
    before, age = memory.status_written, now - memory.status_written_at
    if before is None or has_changed(before, status):
        return memory.having_written_status(write_policy, now)
    is_due = status != before and not 0 <= age < write_policy.numbers_seconds
    if is_due and (age < 0 or now >= memory.refresh_at or numbers_moved(before, status)):
        return memory.having_written_status(write_policy, now)
    if has_flapped(before, status) and now >= next_write(memory, write_policy, now):
        flapping_until = after_write(memory, write_policy, now)
        return replace(memory.having_written_status(write_policy, now), flapping_until=flapping_until)
    return None


def next_write_at(memory: LoopMemory, write_policy: WritePolicy, now: float) -> float | None:
    """Return from when on the status is worth a write though nothing more happens; `None`: it is written already."""
    status, written = memory.status, memory.status_written
    if status is None or written is None or status == written:
        return None
    at = memory.refresh_at
    return min(at, next_write(memory, write_policy, now)) if has_flapped(written, status) else at


def taken_over(memory: LoopMemory, write_policy: WritePolicy, now: float) -> LoopMemory:
    """Return what a loop that starts again has recalled, with the writes of the one before counted.

    Ten thousand applications are taken over together. What has changed meanwhile is written at once; numbers that
    have moved, at the moment of the period that each application has had all along. So a restart brings neither a
    wave of writes nor a silence.
    """
    if memory.status_written is None:
        return memory
    return replace(
        memory,
        status_written_at=now,
        refresh_at=write_policy.refresh_after_restart_at(now),
        flapping_until=after_restart(write_policy, now),
    )
