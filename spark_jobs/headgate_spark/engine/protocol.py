"""The words between shim and planner, in both directions: what is asked and when, and every form of an answer.

`Planner.java` describes the same from the other end; `Answer.java` takes answers apart. Everything is text, because
an offset's JSON is the one form that every source can read back. No other module makes or reads these words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field

from headgate_contract.newer import dataclass
from headgate_spark.engine.questions import Field
from headgate_spark.planner.lease import Lease

PROTOCOL = 15
"""Which form of the words is spoken here; `PROTOCOL` in `Shim.java` is its like."""


# What is asked about ---------------------------------------------------------------------------------


def handle_of(field: Field) -> int:
    """Return the stream that a question names. Raises `ValueError`."""
    if field is None or not (field.isascii() and field.isdigit()):
        raise ValueError(f"{_shown(field)} is no handle of a stream")
    return int(field)


def latest_of(fields: Sequence[Field]) -> dict[int, Field]:
    """Return the latest offset of each stream by its handle, JSON of its source; `None`: it has none.

    Of each stream there are two fields, handle and offset. Raises `ValueError`.
    """
    if len(fields) % 2:
        raise ValueError(f"the latest offsets end with {_shown(fields[-1])}: a handle without its offset")
    return {handle_of(handle): offset for handle, offset in zip(fields[::2], fields[1::2])}


def _shown(field: Field) -> str:
    return "a null" if field is None else repr(field[:_SHOWN])


_SHOWN = 100  # characters


# When a question was asked ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asking:
    """When a question was asked.

    Spark asks in triggers, each of which asks every stream of a query once, in an order that is not known. A question
    may come again within its trigger, after a wait or a call that has failed; and one that the shim has given up may
    come after its trigger is over.
    """

    trigger: int
    """Of the run; only grows."""
    question: int
    """Of the run; only grows. What was answered to a later one is not known to this one."""
    passed: Mapping[int, int]
    """By handle, the trigger of the last answer that Spark was given, with which it may read. What was answered in a
    trigger and is not here never reached Spark: the stream was held."""

    @classmethod
    def parse(cls, text: Field) -> Asking:
        """Return what the shim has told: `<trigger>.<question>:<handle>=<trigger>,…`. Raises `ValueError`."""
        number, _, listed = (text or "").partition(":")
        trigger, _, question = number.partition(".")
        pairs = (entry.partition("=") for entry in listed.split(",") if entry)
        try:
            return cls(int(trigger), int(question), {handle_of(h): int(number) for h, _, number in pairs})
        except ValueError:
            raise ValueError(
                f"{_shown(text)} does not say when it is asked: <trigger>.<question>:<handle>=<trigger>,…"
            ) from None

    def passed_in(self, trigger: int | None) -> set[int]:
        """Return the handles of the streams of which Spark was told to read in a trigger."""
        return {handle for handle, number in self.passed.items() if number == trigger}


@dataclass(slots=True)
class AskedTrigger:
    """The trigger in which a run was asked last."""

    number: int | None = None
    """`None`: it was not asked yet."""
    _questions: dict[int, int] = field(default_factory=dict)
    """The last question about each handle."""

    def is_over_for(self, asking: Asking) -> bool:
        """Tell whether a question is of an earlier trigger: the shim has given it up, and held."""
        return self.number is not None and asking.trigger < self.number

    def begin(self, asking: Asking) -> None:
        self.number, self._questions = asking.trigger, {}

    def note(self, handle: int, asking: Asking) -> None:
        self._questions[handle] = max(asking.question, self._questions.get(handle, 0))

    def passed(self, handle: int, asking: Asking) -> Set[int]:
        """Return the streams whose answers in this trigger have come to Spark, or may have.

        A question about `handle` does not know of what was answered to later ones, nor of its own answer.
        """
        later = {other for other, question in self._questions.items() if question >= asking.question}
        return {handle, *later, *asking.passed_in(self.number)}


# What is answered ------------------------------------------------------------------------------------


OK = "ok"
"""To `opened`: the source is new."""
PREPARE = "prepare:realtime"
"""To `opened`: the query is new, and its state is to have the form that real-time mode needs."""
HOLD = "hold"
"""Read nothing in this trigger."""
NOTHING = "none"
"""Read nothing, and count as planned: a query without a batch has an empty first one."""
EVERYTHING = "all"
"""Read what there is, within the limit that the source has of its own."""


def resume(offset: str) -> str:
    """Return the answer to `opened` for a source that goes on at `offset`, its own JSON."""
    return f"resume:{offset}"


def held(path: str) -> str:
    """Return the answer to `fence` that lets a run write its checkpoint as long as this file is there."""
    return f"held:{path}"


def refuse(message: str) -> str:
    """Return the answer to `opened` or `fence` with which the query fails."""
    return f"refuse:{message}"


def fail(message: str) -> str:
    return f"fail:{message}"


def survey(handles: Iterable[int]) -> str:
    """Return the answer that asks for the latest offsets of these streams first."""
    return f"survey:{','.join(map(str, handles))}"


def wait(seconds: float) -> str:
    """Return the answer that has the shim ask again, in the same trigger, after so long."""
    return f"wait:{max(1, round(seconds * 1000))}"


def real_time(seconds: float) -> str:
    """Return the answer that has the batch run in real-time mode, for so long."""
    return f"realtime:{round(seconds * 1000)}"


def lease(leased: Lease, watched: Mapping[int, int | None]) -> str:
    """Return the answer that holds all streams of the query without a question.

    `watched` are looked at meanwhile: more unread records than that end it, or (`None`) anything new.
    """
    listed = ",".join(f"{handle}" if most is None else f"{handle}={most}" for handle, most in watched.items())
    return f"lease:{math.ceil(leased.seconds * 1000)}:{round(leased.look_seconds * 1000)}:{listed}"


def at_most(count: int, unit: str) -> str:
    """Return the answer that limits a batch to so many `rows`, `files` or `bytes`."""
    return f"{unit}:{count}"


def up_to(offset: str) -> str:
    """Return the answer that ends a batch at `offset`, the source's own JSON."""
    return f"offset:{offset}"
