"""What is true or false of an object, in CEL and here, and how such conditions are combined.

Those over fields are in `expression`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.finding import Location

Scope = Mapping[str, Any]
"""What the variables of an expression stand for: `self`, and the item of each `any` around it."""

HERE: Final[tuple[Location, ...]] = ((),)
NOWHERE: Final[tuple[Location, ...]] = ()


class MalformedError(Exception):
    """A value does not have the type that the expression needs; a finding of its own says so."""


@dataclass(frozen=True)
class Predicate:
    """True or false of an object; combined with `&`, `|` and `~`."""

    cel: str
    """It in CEL."""
    places: Callable[[Scope], tuple[Location, ...]]
    """Returns where it is true, relative to `self`; nothing where it is false. Raises MalformedError."""
    is_either: bool = False
    """Whether it needs brackets beside `&&`."""
    opposite: "Predicate | None" = None
    """What it is the negation of."""

    def __and__(self, other: "Predicate") -> "Predicate":
        def places(scope: Scope) -> tuple[Location, ...]:
            first = self.places(scope)
            second = other.places(scope) if first else NOWHERE
            return (first if second == HERE else second) if second else NOWHERE

        both = (f"({each.cel})" if each.is_either else each.cel for each in (self, other))
        return Predicate(" && ".join(both), places)

    def __or__(self, other: "Predicate") -> "Predicate":
        cel = f"{self.cel} || {other.cel}"
        return Predicate(cel, lambda scope: self.places(scope) or other.places(scope), is_either=True)

    def __invert__(self) -> "Predicate":
        if self.opposite is not None:
            return self.opposite
        negated = f"!({self.cel})"
        return Predicate(negated, lambda scope: NOWHERE if self.places(scope) else HERE, opposite=self)
