"""What is wrong between the items of a list: names given twice, and sources that wait for each other.

The API server refuses names given twice by itself, since the lists are keyed by name. Cycles of `after` it
cannot see, because a CEL expression cannot follow references; a resource that has one becomes `Stalled`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.api.finding import Finding, Location, Severity
from headgate.api.rule import values_at
from headgate_contract import chains


def reference_findings(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is refused in `manifest`; what is malformed is passed over."""
    for pattern in ("spec.queries", "spec.queries[].sources"):
        for location, items in values_at(pattern, manifest):
            yield from _twice(location, items)
    for location, sources in values_at("spec.queries[].sources", manifest):
        yield from _cycles(location, sources)


def _twice(location: Location, items: Any) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, name in _named(items, "name"):
        if name in seen:
            yield Finding(
                Severity.ERROR,
                f"the name {name} stands twice; merge the two entries, or correct one of the names",
                (*location, index, "name"),
                rule="name-twice",
            )
        seen.add(name)


def _cycles(location: Location, sources: Any) -> Iterator[Finding]:
    """Yield one finding for each cycle of more than one source; a source after itself breaks a rule of its
    own."""
    names = dict(_named(sources, "name"))
    places = {name: index for index, name in reversed(names.items())}
    after = {names[index]: target for index, target in _named(sources, "after") if index in names}
    for cycle in chains.cycles(after):
        if len(cycle) > 1:
            yield Finding(
                Severity.ERROR,
                chains.told(cycle),
                (*location, places[cycle[0]], "after"),
                rule="after-cycle",
            )


def _named(items: Any, field: str) -> Iterator[tuple[int, str]]:
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, Mapping) and isinstance(value := item.get(field), str):
            yield index, value
