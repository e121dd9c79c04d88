"""One reconcile.

Called by a tick of `headgate local`, by the operator for any event on a resource, its driver or its metrics,
and after a restart of either: always with what was remembered, never with what happened.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from headgate.api.application import SparkApplication
from headgate.decision.driver import IN_A_CLUSTER, Finish, Kill, Release, Remove, Start, Stop, Wait, Words
from headgate.reconcile.conditions import should_be_heard_at
from headgate.reconcile.decide import Plan, decide
from headgate.reconcile.events import missing_at
from headgate.reconcile.executors import patience_ends_at
from headgate.reconcile.memory import Kept, LoopMemory
from headgate.reconcile.observe import Seen, observe
from headgate.reconcile.ports import Event, Ports
from headgate.reconcile.report import report


def apply(plan: Plan, ports: Ports, *, now: float, saves: bool) -> None:
    """Bring the world to `plan`; with `saves`, what is to be remembered of it is written down first.

    The order matters. What the loop must remember is written before anything is done, so that a crash in between
    continues instead of guessing. The control document comes before the driver, so that a driver that starts finds
    it from its first batch on.
    """
    if saves:
        ports.store.save(plan.kept.to_json())
    if plan.publishes:
        ports.controls.publish(plan.document)
    match plan.step.action:
        case Start(attempt=attempt, follows_oom_kill=follows_oom_kill):
            ports.drivers.start(plan.launch, attempt, now, follows_oom_kill=follows_oom_kill)
        case Stop():
            ports.drivers.stop(plan.grace_period_seconds)
        case Kill():
            ports.drivers.kill()
        case Release():
            ports.finalizer.release()
        case Remove():
            ports.finalizer.remove()
        case Wait() | Finish():
            pass
        case other:
            assert_never(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one reconcile saw, decided and told; `memory` goes into the next."""

    seen: Seen
    plan: Plan
    memory: LoopMemory
    events: tuple[Event, ...]
    clock_at: float | None
    """Unix time from which a look at the metrics is worth a reconcile though it shows nothing new: a re-entry clock
    has run out by then, or has to be written down. `None`: no such clock runs."""
    wake_at: float | None
    """Unix time at which there is something to do, or to tell, even if nothing is heard before."""


def reconcile(  # noqa: PLR0913  what there is, and the two that only a caller can know
    application: SparkApplication,
    ports: Ports,
    memory: LoopMemory,
    now: float,
    *,
    jitter: float,
    words: Words = IN_A_CLUSTER,
) -> Outcome:
    """Bring the application to what is declared, as far as one reconcile can.

    `now` is Unix time; `jitter` is a fresh random number in 0..1; `words` are what messages say where the loop runs.
    """
    seen, memory = observe(application, ports, memory, now)
    plan = decide(application, seen, memory.kept, jitter=jitter, tried=memory.tried, words=words)
    tolerance = ports.write_policy.dwell_share * application.spec.metrics.stale_after.total_seconds()
    saves = plan.kept.is_worth_saving(memory.saved, dwell_tolerance_seconds=tolerance)
    apply(plan, ports, now=now, saves=saves)
    tried = plan.document if plan.publishes else None
    memory = replace(memory, kept=plan.kept, saved=plan.kept if saves else memory.saved, tried=tried)
    events, memory = report(application, seen, plan, memory, ports)
    dwells = {query.name: query.backlog.reentry.dwell.total_seconds() for query in application.spec.queries}
    clock_at = memory.kept.clock_at(dwells, memory.saved, tolerance)
    times = (
        plan.step.until,
        should_be_heard_at(seen),
        missing_at(application, seen),
        patience_ends_at(seen, memory),
    )
    wake_at = min((time for time in times if time is not None), default=None)
    return Outcome(seen=seen, plan=plan, memory=memory, events=events, clock_at=clock_at, wake_at=wake_at)


def recall(ports: Ports, complain: Callable[[str], None]) -> LoopMemory:
    """Return the memory of a loop that starts, or starts again. `complain` is told of what is damaged."""
    saved, status = ports.store.load(), ports.reports.last()
    kept = Kept() if saved is None else Kept.from_json(saved, complain)
    return LoopMemory(kept=kept, saved=kept, status=status, status_written=status)
