"""What keeps a resource that one definition takes from being taken by a later one, and from meaning the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

LOWER = ("minimum", "minLength", "minItems", "minProperties")
UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
SAME = ("type", "format", "pattern", "default", "nullable", "x-kubernetes-int-or-string")
"""What is not to change; a pattern may be the narrower one, and nobody can tell. A default that changes is another
meaning of the same text."""
_ABOUT = re.compile(r"!\(has\(self\.(\w+)\) &&")
"""A rule that holds where this field is not there."""
OPEN = "x-kubernetes-preserve-unknown-fields"


def without_words(schema: Any) -> Any:
    """Return a schema without what people read: two that are equal so take the same."""
    if isinstance(schema, Mapping):
        return {
            key: without_words(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [without_words(value) for value in schema] if isinstance(schema, list) else schema


def breaks(old: Schema, new: Schema, path: str = "") -> Iterator[str]:
    """Yield, as sentences with the path of the field, what `new` refuses or means differently of what `old` takes.

    Rules (CEL) are compared by their text: one more may refuse what was taken, unless it is about a new field.
    """
    here = path or "the resource"
    for key in SAME:
        if old.get(key) != new.get(key):
            yield f"{here}: {key} was {old.get(key)!r}, and is {new.get(key)!r}"
    for key in LOWER:
        if new.get(key, float("-inf")) > old.get(key, float("-inf")):
            yield f"{here}: {key} was {old.get(key, 'not set')}, and is {new[key]}"
    for key in UPPER:
        if new.get(key, float("inf")) < old.get(key, float("inf")):
            yield f"{here}: {key} was {old.get(key, 'not set')}, and is {new[key]}"
    if "enum" in new:
        lost = "every other" if "enum" not in old else sorted(set(old["enum"]) - set(new["enum"]))
        if lost:
            yield f"{here}: enum takes no more: {lost}"
    for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
        yield f"{here}: {name} is required now"
    fields = old.get("properties", {})
    for rule in sorted(_rules(new) - _rules(old)):
        about = _ABOUT.match(rule)
        if about is not None and about[1] not in fields:
            continue
        yield f"{here}: one more rule: {rule}"
    if old.get(OPEN) and not new.get(OPEN):
        yield f"{here}: fields that it does not know were kept, and are dropped"
    yield from _children(old, new, path)


def _children(old: Schema, new: Schema, path: str) -> Iterator[str]:
    known: Schema = new.get("properties", {})
    for name, schema in old.get("properties", {}).items():
        if name in known:
            yield from breaks(schema, known[name], f"{path}.{name}".lstrip("."))
        else:
            yield f"{path}.{name}".lstrip(".") + ": is gone"
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        before, now = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from breaks(before, now, path + mark)
        elif before and not now:
            yield f"{path}{mark}: is gone"


def _rules(schema: Schema) -> set[str]:
    return {rule["rule"] for rule in schema.get("x-kubernetes-validations", ())}
