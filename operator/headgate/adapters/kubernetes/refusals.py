"""Why the API server does not take a driver's pod, in words that lead to a remedy.

The server tells in prose, and its admission plugins in theirs; a few of them are what people meet.
"""

from __future__ import annotations

import re

from headgate.decision.driver import Obstacle, StepReason
from headgate.errors import ApiRefused

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
