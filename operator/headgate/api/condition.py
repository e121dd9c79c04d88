"""What is true or false of an object, in CEL and here, and how such conditions are combined.

Asked for its value, a condition answers with the places that make it true. Those over fields are in `expression`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.finding import Location

Scope = Mapping[str, Any]
"""What the variables of an expression stand for: `self`, and the item of each `any` around it."""

HERE: Final[tuple[Location, ...]] = ((),)
NOWHERE: Final[tuple[Location, ...]] = ()


class MalformedError(Exception):
    """A value does not have the type that the expression needs; a finding of its own says so."""


class Condition(ABC):
    """True or false of an object; combined with `&`, `|` and `~`."""

    @abstractmethod
    def cel(self) -> str:
        """Return the condition in CEL."""

    @abstractmethod
    def places(self, scope: Scope) -> tuple[Location, ...]:
        """Return where it is true, relative to `self`; nothing where it is false. Raises MalformedError."""

    def __and__(self, other: "Condition") -> "Condition":
        return _All(self, other)

    def __or__(self, other: "Condition") -> "Condition":
        return _Either(self, other)

    def __invert__(self) -> "Condition":
        return _Not(self)


@dataclass(frozen=True)
class _All(Condition):
    first: Condition
    second: Condition

    def cel(self) -> str:
        return f"{_grouped(self.first)} && {_grouped(self.second)}"

    def places(self, scope: Scope) -> tuple[Location, ...]:
        first = self.first.places(scope)
        second = self.second.places(scope) if first else NOWHERE
        return (first if second == HERE else second) if second else NOWHERE


@dataclass(frozen=True)
class _Either(Condition):
    first: Condition
    second: Condition

    def cel(self) -> str:
        return f"{self.first.cel()} || {self.second.cel()}"

    def places(self, scope: Scope) -> tuple[Location, ...]:
        return self.first.places(scope) or self.second.places(scope)


@dataclass(frozen=True)
class _Not(Condition):
    condition: Condition

    def __invert__(self) -> Condition:
        return self.condition

    def cel(self) -> str:
        return f"!({self.condition.cel()})"

    def places(self, scope: Scope) -> tuple[Location, ...]:
        return NOWHERE if self.condition.places(scope) else HERE


def _grouped(condition: Condition) -> str:
    return f"({condition.cel()})" if isinstance(condition, _Either) else condition.cel()
