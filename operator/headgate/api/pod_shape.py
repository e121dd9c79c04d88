"""What CEL cannot see in a pod template: its size, and whether a Pod has such fields.

The API server keeps the inner fields of a template as they are, and drops from a pod without a word what no Pod has:
a misspelt affinity would place pods anywhere. Names and types are those of the Kubernetes client.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from headgate.api.finding import Finding, Location, Severity
from headgate.api.rule import values_at
from headgate_contract.nearest import did_you_mean

LARGEST_TEMPLATE: Final = 32_768
"""Bytes as JSON. A driver gets that of its executors in one variable of its environment, of which Linux allows
128 KiB."""
DEEPEST: Final = 64
"""Objects and lists in one another: a Pod has some twenty."""
MOST_TOLD: Final = 20
"""Fields that are told of at once: to find what each was perhaps to be takes a millisecond."""
ROLES: Final = ("driver", "executor")

_LIST: Final = re.compile(r"[Ll]ist\[(.+)\]")
_MAP: Final = re.compile(r"[Dd]ict\(str, (.+)\)")
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "bool": (bool, "true or false"),
}
_OWNED_ELSEWHERE: Final = frozenset({"V1ObjectMeta"})
"""Their fields are declared here, or are of a claim's template."""


def size_findings(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield which templates of `manifest` are larger than anybody should look at.

    It takes no longer than to read them. The API server takes a megabyte of whatever somebody likes to write there,
    thousands of levels deep, and to judge that takes seconds, in which nobody else is served.
    """
    for role in ROLES:
        for location, template in values_at(f"spec.{role}.podTemplate", manifest):
            if (problem := _size_problem(template)) is not None:
                yield _error(location, problem)


def _size_problem(template: Any) -> str | None:
    level, count = [template], 0
    for _ in range(DEEPEST):
        level = [child for value in level for child in _inside(value)]
        count += len(level)
        if not level:
            break
    else:
        return f"has more than {DEEPEST} levels in one another, as no Pod has; take out what is not of a Pod"
    least = 2 * count  # a digit and a comma each
    size = (
        least if least > LARGEST_TEMPLATE else len(json.dumps(template, separators=(",", ":"), default=str))
    )
    if size <= LARGEST_TEMPLATE:
        return None
    has = f"has {'at least ' if size == least else ''}{size:,} bytes"
    return f"{has}, and a driver takes {LARGEST_TEMPLATE:,} at most; put what is long into ConfigMaps"


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, Mapping) else ()


def shape_findings(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what no Pod can have in the templates of `manifest`; what is malformed further out is passed over.

    Of many some: the others are told once these are corrected.
    """
    for role in ROLES:
        for location, template in values_at(f"spec.{role}.podTemplate", manifest):
            if isinstance(template, Mapping) and isinstance(spec := template.get("spec"), Mapping):
                yield from islice(_of_object((*location, "spec"), spec, "V1PodSpec"), MOST_TOLD)


def _of_value(location: Location, value: Any, kind: str) -> Iterator[Finding]:
    item = _LIST.fullmatch(kind)
    expected, words = _expected(kind)
    found: Any = value
    if value is None:
        return
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        yield _error(location, f"must be {words}")
    elif item is not None:
        for index, one in enumerate(found):
            yield from _of_value((*location, index), one, item[1])
    elif kind.startswith("V1") and kind not in _OWNED_ELSEWHERE:
        yield from _of_object(location, found, kind)


def _expected(kind: str) -> tuple[type, str]:
    """Return as what a value of a type is read, and that in words."""
    if _LIST.fullmatch(kind):
        return list, "a list"
    if kind.startswith("V1") or _MAP.fullmatch(kind):
        return Mapping, "an object"
    return _TYPES.get(kind, (object, "anything"))


def _of_object(location: Location, value: Mapping[str, Any], kind: str) -> Iterator[Finding]:
    types = _fields(kind)
    for name, child in value.items():
        if name in types:
            yield from _of_value((*location, name), child, types[name])
        elif len(location) > _OUTERMOST:  # further out an unknown field has a finding of its own
            hint = did_you_mean(name, types) or f"; remove it, or use one of {', '.join(types)}"
            yield _error((*location, name), f"no Pod has this field{hint}")


_QUANTITIES: Final = frozenset({"divisor", "sizeLimit"})
"""Fields that the client has as text, and that may be numbers as well."""
_OUTERMOST: Final = len(("spec", "driver", "podTemplate", "spec"))


def _fields(kind: str) -> dict[str, str]:
    from kubernetes.aio.client import models

    model = getattr(models, kind)
    fields = {model.attribute_map[name]: of for name, of in model.openapi_types.items()}
    return {name: "object" if name in _QUANTITIES else of for name, of in fields.items()}


def _error(location: Location, message: str) -> Finding:
    return Finding(Severity.ERROR, message, location, rule="pod-shape")
