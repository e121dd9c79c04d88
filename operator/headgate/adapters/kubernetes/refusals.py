"""Why the API server does not take what is to become of a driver, in words that lead to a remedy.

The server tells in prose, and its admission plugins in theirs; a few of them are what people meet.
"""

from __future__ import annotations

import re

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


def obstacle_of(refusal: ApiRefused, before: Obstacle | None, now: float) -> Obstacle:
    """Return the refusal as what stands in the way; `before` is the one from the try before."""
    found = ((reason, remedy) for form, reason, remedy in KNOWN if form.search(refusal.message))
    reason, remedy = next(found, (StepReason.START_REFUSED, "see to what the API server names"))
    is_old = before is not None and before.reason is reason
    return Obstacle(
        reason=reason,
        message=f"the driver cannot be created ({' '.join(refusal.message.split())}); {remedy}",
        since=before.since if before is not None and is_old else now,
    )


def untold(error: TransientError, before: Obstacle | None, now: float) -> Obstacle:
    """Return why a driver goes on with the control document that it has; `before` as above."""
    told = error.message if isinstance(error, ApiRefused) else str(error)
    return Obstacle(
        reason=StepReason.CONTROL_REFUSED,
        message=f"the driver runs, and cannot be told what has changed ({' '.join(told.split())}); see to what the "
        "API server names",
        since=now if before is None else before.since,
    )
