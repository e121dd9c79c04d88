"""Conditions over the fields of an object that can be written in CEL and computed here.

A rule of the resource is declared once and holds in two places: in the API server, as a CEL expression of the CRD,
and in `headgate validate`. So it is built from a few forms that know both: their text in CEL, and their value over
plain JSON. A comparison is false where a field in it is not set, as in SQL; `rules` says what is refused.

Asked for its value, a condition answers with the places that make it true, so that a finding can point at
the one source of ten that is wrong.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headgate.api.finding import Location
from headgate_contract.durations import nanoseconds

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


def _guarded(guards: Iterable[str], *cel: str) -> str:
    return " && ".join([*dict.fromkeys(guards), *cel])


@dataclass(frozen=True)
class Value:
    """A field read as a duration, number or text, ready to be compared; or a constant."""

    cel: str
    guards: tuple[str, ...]
    read: Callable[[Scope], Any]

    def __lt__(self, other: "Value") -> Predicate:
        return self._compared("<", operator.lt, other)

    def __gt__(self, other: "Value") -> Predicate:
        return self._compared(">", operator.gt, other)

    def equals(self, other: "Value") -> Predicate:
        return self._compared("==", operator.eq, other)

    def _compared(self, sign: str, compare: Callable[[Any, Any], bool], other: "Value") -> Predicate:
        def places(scope: Scope) -> tuple[Location, ...]:
            left, right = self.read(scope), other.read(scope)
            is_so = left is not None and right is not None and compare(left, right)
            return HERE if is_so else NOWHERE

        cel = f"{self.cel} {sign} {other.cel}"
        return Predicate(_guarded((*self.guards, *other.guards), cel), places)

    @property
    def trimmed(self) -> "Value":
        """The value, a text, without the blanks at its ends."""

        def read(scope: Scope) -> str | None:
            value: str | None = self.read(scope)
            return None if value is None else value.strip()

        return replace(self, cel=f"{self.cel}.trim()", read=read)

    def starts_with(self, beginning: str) -> Predicate:
        """Return the condition that the value, a text, begins so; `beginning` must not hold a quote."""

        def places(scope: Scope) -> tuple[Location, ...]:
            value = self.read(scope)
            return HERE if value is not None and value.startswith(beginning) else NOWHERE

        return Predicate(_guarded(self.guards, f"{self.cel}.startsWith('{beginning}')"), places)


@dataclass(frozen=True)
class Field:
    """A field of the object that `variable` stands for; `field["a.b"]` is a field below it."""

    variable: str
    path: tuple[str, ...] = ()
    is_untyped: bool = False

    def __getitem__(self, path: str) -> "Field":
        return Field(self.variable, (*self.path, *path.split(".")))

    @property
    def is_set(self) -> Predicate:
        """Whether the field has a value, given or by default."""
        return Predicate(_guarded(self.guards), lambda scope: NOWHERE if self.find(scope) is None else HERE)

    @property
    def is_given(self) -> Predicate:
        """Whether the field has a value; true there, and not at the object that it is a field of."""
        return Predicate(
            _guarded(self.guards), lambda scope: NOWHERE if self.find(scope) is None else (self.path,)
        )

    @property
    def duration(self) -> Value:
        return Value(f"duration({self.cel})", self.guards, lambda scope: _duration(self.find(scope)))

    @property
    def number(self) -> Value:
        return Value(self.cel, self.guards, lambda scope: _typed(self.find(scope), int, float))

    @property
    def text(self) -> Value:
        types = (object,) if self.is_untyped else (str,)
        return Value(self.cel, self.guards, lambda scope: _typed(self.find(scope), *types))

    def entry(self, key: str) -> "Entry":
        """Return what `key` leads to in this map of texts; it must not hold a quote."""
        return Entry(self, key)

    def any_entry(self, beginning: str, end: str, value: str) -> Predicate:
        """Return the condition that a key of this map of texts begins and ends so, and leads to `value`.

        None of the three must hold a quote.
        """

        def places(scope: Scope) -> tuple[Location, ...]:
            return tuple(
                (*self.path, key)
                for key, found in self.entries(scope).items()
                if key.startswith(beginning) and key.endswith(end) and found == value
            )

        matches = f"key.startsWith('{beginning}') && key.endsWith('{end}')"
        exists = f"{self.cel}.exists(key, {matches} && {self.cel}[key] == '{value}')"
        return Predicate(_guarded(self.guards, exists), places)

    def entries(self, scope: Scope) -> Mapping[str, Any]:
        """Return this map of texts; empty where it is not set."""
        found = self.find(scope)
        if not isinstance(found, Mapping | None):
            raise MalformedError
        return found or {}

    @property
    def untyped(self) -> "Field":
        """The field, where the schema leaves its type open: CEL then sees it through `dyn`, and only as a whole."""
        return replace(self, is_untyped=True)

    @property
    def cel(self) -> str:
        if self.is_untyped:
            return f"dyn({_dotted(self.variable, self.path[:-1])}).{self.path[-1]}"
        return _dotted(self.variable, self.path)

    @property
    def guards(self) -> tuple[str, ...]:
        """What has to be true in CEL before the field may be read: `has` for each step of the way."""
        above = (_dotted(self.variable, self.path[:end]) for end in range(1, len(self.path)))
        return tuple(f"has({step})" for step in [*above, self.cel]) if self.path else ()

    def find(self, scope: Scope) -> Any:
        """Return the value of the field, or None where it is not set."""
        value = scope[self.variable]
        for step in self.path:
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise MalformedError
            value = value.get(step)
        return value

    def any(self, item: "Field", condition: Predicate) -> Predicate:
        """Return the condition that `condition` holds for an item of this list, which `item` stands for."""

        def places(scope: Scope) -> tuple[Location, ...]:
            items = self.find(scope)
            if not isinstance(items, list | None):
                raise MalformedError
            return tuple(
                (*self.path, index, *place)
                for index, each in enumerate(items or [])
                for place in condition.places({**scope, item.variable: each})
            )

        exists = f"{self.cel}.exists({item.variable}, {condition.cel})"
        return Predicate(_guarded(self.guards, exists), places)


@dataclass(frozen=True)
class Entry:
    """One entry of a map of texts."""

    map: Field
    key: str

    @property
    def is_there(self) -> Predicate:
        place = (*self.map.path, self.key)
        return Predicate(
            _guarded(self.guards), lambda scope: NOWHERE if self.read(scope) is None else (place,)
        )

    @property
    def text(self) -> Value:
        return Value(f"{self.map.cel}['{self.key}']", self.guards, self.read)

    @property
    def guards(self) -> tuple[str, ...]:
        return (*self.map.guards, f"'{self.key}' in {self.map.cel}")

    def read(self, scope: Scope) -> Any:
        """Return the text, or None where the map does not have the key."""
        return _typed(self.map.entries(scope).get(self.key), str)


def duration(text: str) -> Value:
    constant = nanoseconds(text)
    return Value(f"duration('{text}')", (), lambda _: constant)


def text(value: str) -> Value:
    """Return the constant text; it must not hold a quote."""
    return Value(f"'{value}'", (), lambda _: value)


def _dotted(variable: str, path: tuple[str, ...]) -> str:
    return ".".join([variable, *path])


def _typed(value: Any, *types: type) -> Any:
    if value is None or (isinstance(value, types) and not isinstance(value, bool)):
        return value
    raise MalformedError


def _duration(value: Any) -> int | None:
    if (written := _typed(value, str)) is None:
        return None
    try:
        return nanoseconds(written)
    except ValueError:
        raise MalformedError from None
