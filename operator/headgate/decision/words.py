"""Parts of messages that depend on where a driver runs: what a person does there, and what a setting is called.

In a cluster a person edits a resource, and executors have memory of their own. On one machine they have pressed
Ctrl-C, type the command again, and have one process. Whoever runs the loop says which of these is true.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The parts, in a cluster unless it is said otherwise."""

    stopping: str = "the application is suspended: stopping its driver"
    """While the driver of an application that is suspended has not ended."""
    stopped: str = "the application is suspended; set spec.suspend to false to start it"
    """Once it has."""
    try_again: str = "suspend and resume to try again"
    """What starts an application that has failed for good."""
    comes_back: str = ". It is tried again after a pause"
    """Ends a sentence on what keeps a driver from starting; empty where nobody tries again."""
    memory_setting: str = "executor.memory"
    """What gives tasks more memory."""


IN_A_CLUSTER = Words()
