"""What a person is told after changing a resource: field by field, what was and what is, and what follows.

`headgate explain --diff` says the same before it is applied. What was declared before is known to the process that
acted on it, and is too long to be kept in a status; an operator that comes later can only tell that something has
changed.
"""

from typing import Final

from headgate.api.application import SparkApplication
from headgate.api.changes import changes, summary
from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.ports import Event

RESOURCE_CHANGED: Final = "ResourceChanged"
"""The resource was changed; the message says what, and what each change does to the job."""


def edit(
    before: SparkApplication | None,
    after: SparkApplication,
    status: SparkApplicationStatus | None,
    now: float,
) -> Event | None:
    """Return what there is to say about the change from `before` to `after`, if anything.

    `before` is what was acted on last, `None` where this process has not acted yet; `status` is the one written last.
    """
    seen, generation = None if status is None else status.observed_generation, after.metadata.generation
    if before is not None:
        if before.spec == after.spec or not (found := changes(before, after)):
            return None
        message = f"the resource has changed: {summary(found)}"
    elif seen is None or generation is None or seen >= generation:
        return None
    else:
        message = (
            f"the resource has changed while no operator was looking: generation {seen} was acted on last, and it is "
            f"{generation} now"
        )
    return Event(at=now, reason=RESOURCE_CHANGED, message=message)
