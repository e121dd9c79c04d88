"""A condition before it has its moments: what is so, why in one word, and why in a sentence."""

from typing import Final, NamedTuple

from headgate.api.status import Condition, ConditionStatus
from headgate.reconcile.times import moment

TRUE: Final = ConditionStatus.TRUE
FALSE: Final = ConditionStatus.FALSE
UNKNOWN: Final = ConditionStatus.UNKNOWN

METRICS_UNAVAILABLE: Final = "MetricsUnavailable"


class Untimed(NamedTuple):
    """A condition without its moments."""

    type: str
    status: ConditionStatus
    reason: str
    message: str

    def condition(self, before: Condition | None, generation: int | None, now: float) -> Condition:
        """Return the condition at `now` (Unix time), of a resource's `generation`, after what it was `before`."""
        is_old = before is not None and before.status is self.status
        return Condition(
            **self._asdict(),
            last_transition_time=before.last_transition_time if before and is_old else moment(now),
            observed_generation=generation,
        )


def not_known(kind: str) -> Untimed:
    """Return that nobody can tell whether this condition holds."""
    return Untimed(kind, UNKNOWN, METRICS_UNAVAILABLE, "the metrics that would tell are not known")
