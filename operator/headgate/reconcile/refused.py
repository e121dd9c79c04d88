"""The status of an application whose spec cannot be acted on.

The API server checks what its rules can see; the rest is found here, and so is a resource that another version
of the CRD let through. Nothing is done about it but to say so: a driver that runs goes on with what it has.
"""

from __future__ import annotations

from typing import Final

from headgate.api.status import (
    ApplicationState,
    Condition,
    ConditionStatus,
    SparkApplicationStatus,
)
from headgate.reconcile.times import moment

INVALID_SPEC: Final = "InvalidSpec"
"""The spec passed the API server and cannot be acted on; what was in force before stays so."""


def refused_status(
    before: SparkApplicationStatus | None, message: str, *, generation: int, now: float
) -> SparkApplicationStatus:
    """Return `before` with the word that this generation is refused, and why."""
    status = before or SparkApplicationStatus(state=ApplicationState.PENDING)
    answers = {
        "Ready": ConditionStatus.FALSE,
        "Reconciling": ConditionStatus.FALSE,
        "Stalled": ConditionStatus.TRUE,
    }
    known = {condition.type: condition for condition in status.conditions}
    said = {
        kind: _condition(kind, answer, known.get(kind), message, generation=generation, now=now)
        for kind, answer in answers.items()
    }
    conditions = tuple((known | said).values())
    return status.model_copy(update={"observed_generation": generation, "conditions": conditions})


def _condition(  # noqa: PLR0913  a condition has six members
    kind: str,
    answer: ConditionStatus,
    before: Condition | None,
    message: str,
    *,
    generation: int,
    now: float,
) -> Condition:
    unchanged = before is not None and before.status is answer
    return Condition(
        type=kind,
        status=answer,
        reason=INVALID_SPEC,
        message=message,
        last_transition_time=before.last_transition_time if before and unchanged else moment(now),
        observed_generation=generation,
    )
