"""One refusal, and what rules are written with: where they hold, and conditions that several of them need."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from headgate.api.expression import Field, MalformedError, Predicate, duration, text
from headgate.api.finding import Location

THIS: Final = Field("self")
SOURCE: Final = Field("source")
OTHER: Final = Field("other")
ITEM: Final = Field("item")

SPEC: Final = "spec"
QUERY: Final = "spec.queries[]"
EACH_SOURCE: Final = "spec.queries[].sources[]"


@dataclass(frozen=True)
class Rule:
    """One refusal: `refused` is judged for every object or value at `on`.

    `at` is the field below it that a finding points at. Where it leads through a list (`sources[].after`),
    each item that makes the condition true is pointed at, and so is the entry of a map; the API server can
    only name the object at `on` then.
    """

    id: str
    on: str
    refused: Predicate
    message: str
    at: str = ""
    names_item: bool = False
    """The value at `at`, a field of an item of a list, is to be the name of another item: `validate` says which it
    is, and which there are. The API server can say `message` alone."""

    @property
    def cel(self) -> str:
        return (~self.refused).cel

    @property
    def cel_field_path(self) -> str | None:
        """The field below `on` that the API server names, if one is meant that is not in a list."""
        return f".{self.at}" if self.at and "[]" not in self.at else None

    def places(self, values: Iterable[tuple[Location, Any]]) -> Iterator[Location]:
        """Yield where the rule is broken; `values` are those at `on` in a manifest with defaults filled in.

        Where a value that the rule needs is malformed there is nothing to judge; the value has its own finding.
        """
        for location, value in values:
            try:
                places = self.refused.places({"self": value})
            except MalformedError:
                continue
            yield from dict.fromkeys((*location, *self._pointed_at(place)) for place in places)

    def _pointed_at(self, place: Location) -> Location:
        if not self.at:
            return place
        _, is_item, field = self.at.rpartition("[].")
        return (*(place if is_item else ()), *(field.split(".") if field else ()))


def values_at(pattern: str, manifest: Any) -> Iterator[tuple[Location, Any]]:
    """Yield every value that is set at `pattern`, such as `spec.queries[].checkpoint`, with its location."""
    found: list[tuple[Location, Any]] = [((), manifest)]
    for step in pattern.replace("[]", ".[]").split("."):
        if step == "[]":
            found = [
                ((*location, index), item)
                for location, value in found
                if isinstance(value, list)
                for index, item in enumerate(value)
            ]
        else:
            found = [
                ((*location, step), child)
                for location, value in found
                if isinstance(value, Mapping) and (child := value.get(step)) is not None
            ]
    yield from found


def at_least(least: str, on: str, remedy: str) -> Rule:
    refused = THIS.duration < duration(least)
    return Rule(f"{owned(on)}-short", on, refused, f"{_name(on)} must be at least {least}; {remedy}")


def positive(on: str, remedy: str) -> Rule:
    refused = ~(THIS.duration > duration("0s"))
    return Rule(f"{owned(on)}-zero", on, refused, f"{_name(on)} must be greater than 0s; {remedy}")


def _name(on: str) -> str:
    return on.rpartition(".")[2]


def owned(on: str) -> str:
    """Return what a rule on this is called by: the last two fields of its path."""
    return "-".join(on.replace("[]", "").split(".")[-2:])


def any_key(keys: tuple[str, ...]) -> Predicate:
    return reduce(or_, (THIS.entry(key).is_there for key in keys))


def any_field(*names: str) -> Predicate:
    """Return whether an object gives one of these fields, be it empty."""
    return reduce(or_, (THIS[name].untyped.is_given for name in names))


def any_name(names: tuple[str, ...], field: str = "name") -> Predicate:
    """Return whether an item is called by one of these names."""
    return reduce(or_, (ITEM[field].text.equals(text(name)) for name in names))
