"""Why the API server does not take what is to become of a driver, in words that lead to a remedy.

The server tells in prose, and its admission plugins in theirs; a few of them are what people meet.
"""

import re
from dataclasses import dataclass

from headgate.decision.driver import Obstacle, StepReason
from headgate.decision.situation import PATIENCE_SECONDS
from headgate.errors import ApiRefused, ApiUnavailable, TransientError
from headgate.key import Key

KNOWN = (
    ("exceeded quota", StepReason.QUOTA_EXCEEDED, "raise the quota, or suspend another application"),
    (
        "(?i:service ?account .*not found)",
        StepReason.SERVICE_ACCOUNT_MISSING,
        "create it in this namespace; the chart does so in those listed in drivers.namespaces",
    ),
    (
        "violates PodSecurity",
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


class NameIsTaken(PredecessorRemains):
    """The pod that is to be made is there already, and nothing says that it is a driver."""

    def __init__(self, application: Key, pod: str) -> None:
        super().__init__(application, pod)
        self.remedy = (
            f"there is a pod {pod} already, and it has no labels of a driver. It is somebody else's, or a webhook "
            f"has taken them off. Delete it (kubectl delete pod {pod}), and the attempt starts"
        )


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps failing, as what stands in the way."""

    obstacle: Obstacle
    is_certain: bool
    """Whether the API server has said no; one that does not answer may do so in a moment."""

    def obstacle_at(self, now: float) -> Obstacle | None:
        """Return what there is to tell of it: what may be over in a moment, once it has lasted."""
        has_lasted = now >= self.obstacle.since + PATIENCE_SECONDS
        return self.obstacle if self.is_certain or has_lasted else None


def start_trouble(error: TransientError, before: Trouble | None, now: float) -> Trouble:
    """Return why the driver cannot be created; `before` is the trouble of the try before."""
    if isinstance(error, PredecessorRemains):
        return _trouble(error, StepReason.PREDECESSOR_REMAINS, error.remedy, before, now)
    words = _words(error)
    found = ((reason, remedy) for form, reason, remedy in KNOWN if re.search(form, words))
    reason, remedy = next(found, (StepReason.START_REFUSED, "see to what the API server names"))
    return _trouble(error, reason, f"the driver cannot be created ({words}); {remedy}", before, now)


def telling_trouble(error: TransientError, before: Trouble | None, now: float) -> Trouble:
    """Return why a driver goes on with the control document that it has; `before` as above."""
    words = _words(error)
    message = f"the driver runs, and cannot be given the change ({words}); see to what the API server names"
    return _trouble(error, StepReason.CONTROL_REFUSED, message, before, now)


def _words(error: TransientError) -> str:
    return " ".join((error.message if isinstance(error, ApiRefused) else str(error)).split())


def _trouble(
    error: TransientError, reason: StepReason, message: str, before: Trouble | None, now: float
) -> Trouble:
    is_old = before is not None and before.obstacle.reason is reason
    since = before.obstacle.since if before is not None and is_old else now
    obstacle = Obstacle(reason=reason, message=message, since=since)
    return Trouble(obstacle, is_certain=not isinstance(error, ApiUnavailable))
