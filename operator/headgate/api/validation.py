"""Judges a manifest: its shape by the models, what crosses fields by the rules.

Both are asked every time, so that a person sees everything that is wrong at once. The operator calls this
for what the API server let through under an older CRD, and the file loader for everything that it reads;
neither gets a model out of a manifest that is refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from headgate.api.advice import advice
from headgate.api.application import SparkApplication, application_schema
from headgate.api.finding import Finding, Location, Severity, path_of
from headgate.api.pod_shape import shape_findings, size_findings
from headgate.api.rule import values_at
from headgate.api.rules import RULES
from headgate.api.schema import with_defaults, without_empty
from headgate.api.wording import no_such_name, sentence
from headgate_contract import chains


def validate(manifest: Mapping[str, Any]) -> tuple[SparkApplication | None, tuple[Finding, ...]]:
    """Return the application that `manifest` declares, or None, and the findings. Raises nothing.

    `manifest` is what JSON can hold, as read from a file or from the API server.
    """
    if findings := too_large(manifest):
        return None, findings
    given = without_empty(manifest, application_schema())
    application, findings = validate_given(given)
    advised = () if application is None else _placed(advice(application), given)
    return application, findings + advised


def too_large(manifest: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return what is too large to be judged, or even copied; all else of such a manifest is left unread."""
    return _placed(size_findings(manifest), manifest)


def validate_given(manifest: Mapping[str, Any]) -> tuple[SparkApplication | None, tuple[Finding, ...]]:
    """`validate` a manifest that has no empty fields, and in which nothing is too large; advice is left out."""
    application, findings = _parsed(manifest)
    findings += [
        *_broken_rules(with_defaults(manifest, application_schema())),
        *reference_findings(manifest),
        *shape_findings(manifest),
    ]
    placed = _placed(findings, manifest)
    refused = any(finding.severity is Severity.ERROR for finding in placed)
    return (None if refused else application), placed


def _placed(findings: Iterable[Finding], manifest: Mapping[str, Any]) -> tuple[Finding, ...]:
    return tuple(replace(finding, path=path_of(finding.location, manifest)) for finding in findings)


def _parsed(manifest: Mapping[str, Any]) -> tuple[SparkApplication | None, list[Finding]]:
    # JSON is where strict models take text for enums and lists for tuples, as they come from a file. Only the
    # names of the CRD count: the attributes' own would pass the rules unseen, and an API server drops them.
    text = to_json(manifest, fallback=str, inf_nan_mode="constants")
    try:
        return SparkApplication.model_validate_json(text, by_alias=True, by_name=False), []
    except ValidationError as error:
        refused = [
            (details, _present(details["loc"], manifest)) for details in error.errors(include_url=False)
        ]
        return None, [Finding(Severity.ERROR, sentence(details, at), at) for details, at in refused]


def _broken_rules(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    found = {on: tuple(values_at(on, manifest)) for on in dict.fromkeys(rule.on for rule in RULES)}
    for rule in RULES:
        for location in rule.places(found[rule.on]):
            told = f"{rule.message}: {_misnamed(location, manifest)}" if rule.names_item else rule.message
            yield Finding(Severity.ERROR, told, location, rule=rule.id)


def _misnamed(location: Location, manifest: Mapping[str, Any]) -> str:
    """Say of a field of an item of a list what it names, and which other items there are."""
    *way, own, field = location
    items: Any = manifest
    for step in way:
        items = items[step]
    others = (item.get("name") for i, item in enumerate(items) if i != own and isinstance(item, Mapping))
    return no_such_name(items[own][field], [name for name in others if isinstance(name, str)])


def _present(location: Location, manifest: Mapping[str, Any]) -> Location:
    """Drop the steps that name a branch of a union, which the manifest does not have."""
    kept: list[str | int] = []
    value: Any = manifest
    for position, step in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(value, Mapping) and (step in value or is_last):
            kept.append(step)
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            kept.append(step)
            value = value[step]
    return tuple(kept)


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
    """Yield one finding for each cycle of more than one source; a source after itself breaks a rule of its own."""
    names = dict(_named(sources, "name"))
    places = {name: index for index, name in reversed(names.items())}
    after = {names[index]: target for index, target in _named(sources, "after") if index in names}
    for cycle in chains.cycles(after):
        if len(cycle) > 1:
            yield Finding(
                Severity.ERROR,
                chains.problem(cycle),
                (*location, places[cycle[0]], "after"),
                rule="after-cycle",
            )


def _named(items: Any, field: str) -> Iterator[tuple[int, str]]:
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, Mapping) and isinstance(value := item.get(field), str):
            yield index, value
