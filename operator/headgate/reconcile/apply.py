"""Apply: carry a plan out.

The order matters. What the loop must remember is written before anything is done, so that a crash in between
continues instead of guessing. The control document comes before the driver, so that a driver that starts finds
it from its first batch on.
"""

from __future__ import annotations

from typing import assert_never

from headgate.decision.driver import Finish, Kill, Start, Stop, Wait
from headgate.reconcile.decide import Plan
from headgate.reconcile.memory import Kept
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import Ports


def apply(plan: Plan, seen: Seen, ports: Ports, *, kept: Kept) -> None:
    """Bring the world to `plan`; `kept` is what was written down last."""
    if plan.kept != kept:
        ports.store.save(plan.kept.to_json())
    if plan.document != seen.published:
        ports.controls.publish(plan.document)
    match plan.step.action:
        case Start(attempt=attempt):
            ports.drivers.start(plan.launch, attempt, seen.now)
        case Stop():
            ports.drivers.stop()
        case Kill():
            ports.drivers.kill()
        case Wait() | Finish():
            pass
        case other:
            assert_never(other)
