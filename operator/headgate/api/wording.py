"""Sentences for what pydantic refuses: what is wrong, and what to do.

Pydantic's own messages speak to a programmer ("Input should be a valid string"). A person who wrote a resource wants
to know what the field is for and what to write, so the field's description, which says both, is quoted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from pydantic_core import ErrorDetails

from headgate.api.application import application_schema
from headgate.api.finding import Location
from headgate.api.model import NAME_FORM
from headgate.api.pod_template import REFUSED
from headgate.api.schema import Schema, below
from headgate_contract.nearest import did_you_mean

_SHOWN: Final = 60  # characters of a refused value
_LISTED: Final = 5  # names of those that there are
_MOST_LISTED: Final = 20


def sentence(details: ErrorDetails, location: Location) -> str:
    """Return what is wrong at `location` and what to do about it."""
    kind = details["type"]
    if kind == "extra_forbidden":
        return _unknown_field(location)
    if kind == "missing":
        return f"is required: {_purpose(location)}"
    if word := _WORDINGS.get(kind):
        return word(details)
    return f"is not accepted: {details['msg']}"


def no_such_name(value: Any, names: Sequence[str]) -> str:
    """Say that a value is none of some names, and which of them may have been meant."""
    if not names:
        return f"{_shown(value)} is not listed"
    return f"{_shown(value)} is not one of {listed(names, _LISTED)}{did_you_mean(value, names, 0.5)}"


def listed(names: Iterable[str], most: int = _MOST_LISTED) -> str:
    """Return names with commas between them, and of many how many more there are."""
    names = tuple(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _unknown_field(location: Location) -> str:
    """Say which field may have been meant: a similar one here, or one of this name somewhere else."""
    name = str(location[-1])
    fields = (_schema_at(location[:-1]) or {}).get("properties", {})
    known = [field for field, schema in fields.items() if not is_refused(schema)]
    if hint := did_you_mean(name, known):
        return f"unknown field{hint}"
    if elsewhere := [path for path in _all_paths() if path.rpartition(".")[2] == name]:
        return f"unknown field here; did you mean {' or '.join(elsewhere[:3])}?"
    return (
        f"unknown field; remove it, or use one of {', '.join(known)}" if known else "unknown field; remove it"
    )


def _purpose(location: Location) -> str:
    description = str((_schema_at(location) or {}).get("description", "set it"))
    return description.partition(". ")[0].rstrip(".")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _not_text(details: ErrorDetails) -> str:
    value = details["input"]
    if isinstance(value, bool | int | float):  # what was written, `on` or `4.0`, is not known any more
        return f"must be text, and is read as {_kind_of(value)}; write it in quotes"
    return f"must be text, not {_kind_of(value)}"


def _not_one_of(details: ErrorDetails) -> str:
    expected = details.get("ctx", {}).get("expected", "")
    choices = expected.replace("'", "").replace(" or ", ", ").split(", ")
    hint = did_you_mean(details["input"], choices, 0.5)
    return f"{_shown(details['input'])} is not one of {', '.join(choices)}{hint}"


def _bound(words: str, limit: str) -> Callable[[ErrorDetails], str]:
    return lambda details: (
        f"{_shown(details['input'])} is refused: must be {words} {_number(details.get('ctx', {})[limit])}"
    )


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)


def _must_be(what: str, form: str = "(?!)") -> Callable[[ErrorDetails], str]:
    """Say what a value must be; text of that `form` is one in quotes."""

    def said(details: ErrorDetails) -> str:
        value = details["input"]
        quoted = isinstance(value, str) and re.fullmatch(form, value)
        return f"must be {what}, not {_kind_of(value)}{'; write it without quotes' if quoted else ''}"

    return said


def _form(details: ErrorDetails) -> str:
    location = details["loc"]
    pattern = details.get("ctx", {})["pattern"]
    if pattern == NAME_FORM:
        return f"{_shown(details['input'])} has a comma, a slash or a blank, as no name may: {_purpose(location)}"
    return f"{_shown(details['input'])} does not have the form {pattern}: {_purpose(location)}"


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "empty; remove the line or give a value"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {_shown(value)}"
        case str():
            return f"the text {_shown(value)}"
        case Mapping():
            return "an object" if value else "an empty one"
        case _:
            return "a list"


_WORDINGS: Final[Mapping[str, Callable[[ErrorDetails], str]]] = {
    "duration": lambda details: details["msg"],
    "string_type": _not_text,
    "string_pattern_mismatch": _form,
    "string_too_short": lambda _: "is empty; give it a value",
    "string_too_long": lambda details: (
        f"is too long: at most {details.get('ctx', {})['max_length']} characters"
    ),
    "too_long": lambda details: f"has too many items: at most {details.get('ctx', {})['max_length']}",
    "enum": _not_one_of,
    "literal_error": _not_one_of,
    "greater_than": _bound("greater than", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "int_type": _must_be("a whole number", r"-?\d+"),
    "int_from_float": _must_be("a whole number"),
    "float_type": _must_be("a number", r"-?\d+(\.\d+)?"),
    "finite_number": _must_be("a finite number"),
    "bool_type": _must_be("true or false", "true|false"),
    "model_type": _must_be("an object"),
    "model_attributes_type": _must_be("an object"),
    "dict_type": _must_be("an object"),
    "tuple_type": _must_be("a list"),
    "limits": _must_be("Unlimited, or an object with recordsPerSecond or recordsPerCheckpoint"),
}


def _schema_at(location: Location) -> Schema | None:
    node: Schema | None = application_schema()
    for step in location:
        if node is None:
            return None
        node = node.get("items") if isinstance(step, int) else below(node, step)
    return node


def is_refused(schema: Schema) -> bool:
    """Whether a field is declared only to be refused by name."""
    return str(schema.get("description", "")).startswith(REFUSED)


@cache
def _all_paths() -> tuple[str, ...]:
    """Every field of the spec, as `spec.queries[].checkpoint.interval`."""
    return tuple(_paths("spec", application_schema()["properties"]["spec"]))


def _paths(prefix: str, node: Schema) -> Iterator[str]:
    for name, child in node.get("properties", {}).items():
        if is_refused(child):
            continue
        path = f"{prefix}.{name}"
        yield path
        yield from _paths(path, child)
        yield from _paths(f"{path}[]", child.get("items", {}))
