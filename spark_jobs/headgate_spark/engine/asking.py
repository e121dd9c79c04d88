"""How Spark asks: in triggers, each of which asks every stream of a query once, in an order that is not known.

The shim tells with each question in which trigger of its query it is asked, and which answers have reached Spark. A
question may come again within its trigger, after a wait or a call that has failed; and one that the shim has given up
may come after its trigger is over.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate_contract.newer import dataclass


@dataclass(frozen=True, slots=True)
class Asking:
    """When a question was asked."""

    trigger: int
    """Of the run; only grows."""
    question: int
    """Of the run; only grows. What was answered to a later one is not known to this one."""
    passed: Mapping[int, int]
    """By handle, the trigger of the last answer that Spark was given, with which it may read. What was answered in a
    trigger and is not here never reached Spark: the stream was held."""

    @classmethod
    def parse(cls, text: str) -> Asking:
        """Return what the shim has told: `<trigger>.<question>:<handle>=<trigger>,…`. Raises `ValueError`."""
        number, _, listed = text.partition(":")
        trigger, _, question = number.partition(".")
        pairs = (entry.partition("=") for entry in listed.split(",") if entry)
        return cls(int(trigger), int(question), {int(handle): int(trigger) for handle, _, trigger in pairs})

    def passed_in(self, trigger: int | None) -> set[int]:
        """Return the handles of the streams of which Spark was told to read in a trigger."""
        return {handle for handle, number in self.passed.items() if number == trigger}
