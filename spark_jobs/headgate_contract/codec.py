"""Frozen dataclasses to JSON and back, by their annotations.

A driver must survive whatever it is handed, so decoding checks every type and names the member that is wrong
by its path. Members that the reader does not know are ignored: that is what lets two versions speak to each
other. Written by hand because the contract may import nothing but the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from headgate_contract.nearest import nearest

T = TypeVar("T")
_LONGEST = 60  # characters of a name that is told

LARGEST_WHOLE = 2**53 - 1
"""Up to here every reader of JSON keeps a whole number as it is."""


class DecodingError(ValueError):
    """A value does not have the form that is asked for; the message begins with its path."""


class UnknownMember(NamedTuple):
    """A member that would be ignored; as text, a phrase with the name that may have been meant."""

    path: str
    meant: str | None

    def __str__(self) -> str:
        return self.path if self.meant is None else f"{self.path}; did you mean {self.meant}?"


def encode(value: Any) -> Any:
    """Return `value` as JSON types. Members that are `None` are left out."""
    kind = type(value)
    if kind in _WORDS:
        return value
    if is_dataclass(kind):
        members = ((member.key, getattr(value, member.name)) for member in _members(kind))
        return {key: encode(v) for key, v in members if v is not None}
    if isinstance(value, Mapping):
        return {key: encode(v) for key, v in value.items()}
    return sorted(value) if kind is frozenset else value


def decode(kind: type[T], value: Any, path: str = "") -> T:
    """Return `value` (as `json.loads` gives it) as the dataclass `kind`.

    Raises `DecodingError` that names the path of what is missing, of a wrong type, or out of bounds.
    """
    if not isinstance(value, dict):
        raise DecodingError(f"{path or 'document'}: expected an object, got {_shown(value)}")
    arguments: dict[str, Any] = {}
    for member in _members(kind):  # type: ignore[arg-type]  # a class is hashable
        if (given := value.get(member.key)) is not None:
            arguments[member.name] = _value(member.hint, given, _join(path, member.key))
        elif member.is_required:
            raise DecodingError(f"{_join(path, member.key)}: is missing")
    try:
        return kind(**arguments)
    except ValueError as error:
        raise DecodingError(f"{path}: {error}" if path else str(error)) from error


def unknown(kind: Any, value: Any, path: str = "") -> Iterator[UnknownMember]:
    """Yield each member of `value`, which can be decoded as `kind`, that would be ignored.

    Nobody takes a name that begins with `x-` for one of ours: it is a note of the writer's. No value is told, which
    may be a secret, and of a name no more than its beginning.
    """
    if get_origin(kind) is Mapping:
        for key, inner in value.items():
            yield from unknown(get_args(kind)[1], inner, f"{path}[{key[:_LONGEST]}]")
    elif is_dataclass(kind) and isinstance(value, dict):
        hints = {member.key: member.hint for member in _members(kind)}  # type: ignore[arg-type]
        for key, inner in value.items():
            if key not in hints and not key.startswith("x-"):
                yield UnknownMember(_join(path, key[:_LONGEST]), nearest(key, hints))
            elif key in hints and inner is not None:
                yield from unknown(hints[key], inner, _join(path, key))


@lru_cache
def member_name(name: str) -> str:
    """`interval_seconds` is `intervalSeconds`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


class _Member(NamedTuple):
    """One member of a dataclass."""

    name: str
    key: str
    """Its name in JSON."""
    hint: Any
    """What it is, where it is given."""
    is_required: bool


@lru_cache
def _members(kind: type) -> tuple[_Member, ...]:
    # of `X | None` it is X where it is given; Python 3.9 cannot evaluate the other
    given = SimpleNamespace(__annotations__={f.name: f.type.replace(" | None", "") for f in fields(kind)})
    hints = get_type_hints(given, vars(sys.modules[kind.__module__]))
    return tuple(
        _Member(
            f.name,
            member_name(f.name),
            hints[f.name],
            is_required=f.default is MISSING and f.default_factory is MISSING,
        )
        for f in fields(kind)
    )


def _value(hint: Any, value: Any, path: str) -> Any:
    if hint in _WORDS:
        return _scalar(hint, value, path)
    if hint == frozenset[str]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise DecodingError(f"{path}: expected a list of strings, got {_shown(value)}")
        return frozenset(value)
    if get_origin(hint) is not Mapping:
        return decode(hint, value, path)
    if not isinstance(value, dict):
        raise DecodingError(f"{path}: expected an object, got {_shown(value)}")
    kind = get_args(hint)[1]
    return {key: _value(kind, v, f"{path}[{key}]") for key, v in value.items()}


_WORDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a string"}


def _scalar(hint: Any, value: Any, path: str) -> Any:
    if hint is float and type(value) in (int, float):
        if abs(value) <= sys.float_info.max:
            return float(value)
    elif type(value) is hint and (hint is not int or abs(value) <= LARGEST_WHOLE):
        return value
    elif hint is int and type(value) is int and value > 0:
        raise DecodingError(f"{path} is {_shown(value)}; it must be at most {LARGEST_WHOLE}")
    raise DecodingError(f"{path}: expected {_WORDS[hint]}, got {_shown(value)}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
