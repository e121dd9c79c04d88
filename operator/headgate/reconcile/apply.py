"""Apply: carry a plan out.

The order matters. What the loop must remember is written before anything is done, so that a crash in between
continues instead of guessing. The control document comes before the driver, so that a driver that starts finds
it from its first batch on.
"""

from __future__ import annotations

from typing import assert_never

from headgate.decision.driver import Finish, Kill, Release, Remove, Start, Stop, Wait
from headgate.reconcile.decide import Plan
from headgate.reconcile.ports import Ports


def apply(plan: Plan, ports: Ports, *, now: float, saves: bool) -> None:
    """Bring the world to `plan`; with `saves`, what is to be remembered of it is written down first."""
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
