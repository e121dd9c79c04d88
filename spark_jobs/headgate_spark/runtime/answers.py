"""What the planner's process answers to `headgate-run`, as JSON: written there and read here by the same names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stopping:
    """What there is to stop."""

    queries: Sequence[str] = ()
    end_by_themselves: bool = False
    """Whether all that the job has run ends by itself: then the script's own end is the end of its work."""
    some_are_cut: bool = False
    """Whether one of those that run would have ended by itself."""


@dataclass(frozen=True)
class End:
    """What is to be said of the end of a driver."""

    has_seen_query: bool = False
    unread: Sequence[str] = ()
    explanations: Sequence[str] = ()
    checkpoint_in_use: str | None = None
    gave_up: bool = False
    too_large: Sequence[str] = ()
    unnoted_memory: Sequence[str] = ()
    cut_short: Sequence[str] = ()


def written(answer: Stopping | End) -> str:
    return json.dumps(asdict(answer))


def read(form: type[T], text: str | None) -> T:
    """Return the answer of a form in its JSON. Raises ValueError and TypeError for what is none."""
    return form(**json.loads(text or "{}"))
