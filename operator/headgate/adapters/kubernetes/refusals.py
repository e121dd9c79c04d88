"""Why the API server does not take what is to become of a driver, in words that lead to a remedy.

The server tells in prose, and its admission plugins in theirs; a few of them are what people meet.
"""

from __future__ import annotations

import re

from headgate.adapters.kubernetes.key import Key
from headgate.decision.driver import Obstacle, StepReason
from headgate.errors import ApiRefused, TransientError

KNOWN = (
    (
        re.compile(r"exceeded quota"),
        StepReason.QUOTA_EXCEEDED,
        "raise the quota, or suspend another application",
    ),
    (
        re.compile(r"service ?account .*not found", re.IGNORECASE),
        StepReason.SERVICE_ACCOUNT_MISSING,
        "create it in this namespace; the chart does so in those listed in drivers.namespaces",
    ),
    (
        re.compile(r"violates PodSecurity"),
        StepReason.START_REFUSED,
        "leave out what the namespace's Pod Security Standard forbids",
    ),
)
"""What the message looks like, what it is, and what to do; the first that fits."""


class PredecessorRemains(TransientError):  # noqa: N818  named after the reason that it becomes
    """A driver from before, which was thought to be gone, is still there and may still write."""

    def __init__(self, application: Key, pod: str) -> None:
        super().__init__(f"application {application}: pod {pod} is still there; nothing is started beside it")
        self.remedy = (
            f"pod {pod} of the attempt before is still there without the labels that it is found by, and may still "
            f"write; delete it (kubectl delete pod {pod}), and the next attempt starts"
        )


def obstacle_of(refusal: ApiRefused | PredecessorRemains, before: Obstacle | None, now: float) -> Obstacle:
    """Return the refusal as what stands in the way; `before` is the one from the try before."""
    if isinstance(refusal, PredecessorRemains):
        reason, message = StepReason.PREDECESSOR_REMAINS, refusal.remedy
    else:
        reason, remedy = _known(refusal.message)
        message = f"the driver cannot be created ({' '.join(refusal.message.split())}); {remedy}"
    is_old = before is not None and before.reason is reason
    return Obstacle(
        reason=reason, message=message, since=before.since if before is not None and is_old else now
    )


def _known(message: str) -> tuple[StepReason, str]:
    found = ((reason, remedy) for form, reason, remedy in KNOWN if form.search(message))
    return next(found, (StepReason.START_REFUSED, "see to what the API server names"))


def untold(error: TransientError, before: Obstacle | None, now: float) -> Obstacle:
    """Return why a driver goes on with the control document that it has; `before` as above."""
    told = error.message if isinstance(error, ApiRefused) else str(error)
    return Obstacle(
        reason=StepReason.CONTROL_REFUSED,
        message=f"the driver runs, and cannot be told what has changed ({' '.join(told.split())}); see to what the "
        "API server names",
        since=now if before is None else before.since,
    )
