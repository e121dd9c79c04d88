"""What the loop says, in words that are true of one machine.

The loop speaks of a resource in a cluster, which is suspended and resumed, and whose executors have memory of
their own. Here a person has pressed Ctrl-C, starts the command again, and has one process.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.decision.driver import State, Step, StepReason
from headgate.decision.lifecycle import AFTER_A_PAUSE, EXECUTOR_MEMORY, SUSPEND_AND_RESUME

STOPPED_MESSAGE = "stopped; headgate local goes on from here"
STOPPING_MESSAGE = "stopping at the end of the running batch"


def in_local_words(step: Step, *, stop_asked: bool) -> Step:
    """Return the step with another message, where its own would mislead here."""
    if stop_asked and step.reason is StepReason.SUSPENDED:
        return replace(step, message=STOPPED_MESSAGE if step.state is State.SUSPENDED else STOPPING_MESSAGE)
    message = step.message.replace(SUSPEND_AND_RESUME, "run headgate local again to try again")
    message = message.removesuffix(AFTER_A_PAUSE)
    return replace(step, message=message.replace(EXECUTOR_MEMORY, "driver.memory"))
