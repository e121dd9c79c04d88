"""What is said of a query and its sources by options and by properties, and what is wrong with it.

An option is of one stream (`.option("headgate.interval", "5s")` on `writeStream`). A property is

    spark.headgate.queries.<query>.<setting>
    spark.headgate.queries.<query>.sources.<source>.<setting>
    spark.headgate.<setting>                                    of all queries, or all sources
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from headgate_contract.settings.forms import Value, as_here
from headgate_contract.settings.table import (
    BY_NAME,
    BY_OPTION,
    EVERY,
    OF,
    OF_THE_OPERATOR,
    OPTION,
    OWN_OPTIONS,
    PROCESS,
    PROPERTY,
    QUERIES,
    SOURCES,
    Scope,
    Setting,
)


class Origin(Enum):
    """Where a setting is said. Each holds against those that follow it."""

    DOCUMENT = "document"
    OPTION = "option"
    PROPERTY = "property"


@dataclass(frozen=True)
class Said:
    """A setting as somebody has said it."""

    value: Value
    text: str
    """As it was written."""
    spelling: str
    """How whoever wrote it calls it: `option headgate.interval`."""
    origin: Origin


class SettingProblem(NamedTuple):
    """What is wrong with an option or a property; as text, a sentence that names it."""

    origin: Origin
    name: str
    """As it was written."""
    what: str

    def __str__(self) -> str:
        return f"{self.origin.value} {self.name}: {self.what}"


Given = Mapping[str, Said]
"""What is said of one query, or of one source, by the names of settings."""


@dataclass(frozen=True)
class Properties:
    """What the properties of a session say of one query."""

    query: Given
    sources: Mapping[str, Given]
    """Of those that are named."""
    every_source: Given
    problems: tuple[SettingProblem, ...]

    def of_source(self, name: str) -> Given:
        return over(self.sources.get(name, {}), self.every_source)


def is_option(name: str) -> bool:
    """Return whether an option of a stream is none of its source or sink, but ours."""
    lower = name.lower()
    return lower not in OWN_OPTIONS and (lower.startswith(OPTION) or lower in BY_OPTION)


def in_options(options: Mapping[str, str], scope: Scope) -> tuple[Given, list[SettingProblem]]:
    """Return what is said by the options of `readStream` or `writeStream`, and what is wrong with it."""
    reading = _Reading(Origin.OPTION)
    given: dict[str, Said] = {}
    for name in sorted(filter(is_option, options), key=str.lower):
        setting = BY_OPTION.get(name.lower())
        if setting is None or setting.scope is not scope:
            reading.complain(name, _no_option(name, setting, scope))
        elif setting.name in given:
            reading.complain(name, f"{given[setting.name].spelling} says it too; leave one of them out")
        else:
            is_flinks = not name.lower().startswith(OPTION)
            reading.take(given, setting, options[name], name, is_flinks=is_flinks)
    return given, reading.problems


def in_properties(properties: Mapping[str, str], query: str) -> Properties:
    """Return what `spark.headgate.*` says of a query, and what is wrong with it."""
    reading = _Reading(Origin.PROPERTY)
    own: dict[str, Said] = {}
    of_all: dict[str, Said] = {}
    sources: dict[str, dict[str, Said]] = {}
    every_source: dict[str, Said] = {}
    for key in sorted(properties):
        rest = key[len(PROPERTY) :] if key.startswith(PROPERTY) else ""
        if not rest or rest in PROCESS:
            continue
        text = properties[key]
        if not rest.startswith(QUERIES):
            setting = BY_NAME.get(rest)
            if setting is None or not setting.has_default:
                reading.complain(key, _no_property(rest, setting))
            else:
                given = of_all if setting.scope is Scope.QUERY else every_source
                reading.take(given, setting, text, key)
        elif rest.startswith(f"{QUERIES}{query}."):  # another query's is told when that one starts
            rest = rest[len(QUERIES) + len(query) + 1 :]
            setting = BY_NAME.get(rest)
            if setting is not None and setting.scope is Scope.QUERY:
                reading.take(own, setting, text, key)
            elif (found := source_and_setting(rest)) is not None:
                reading.take(sources.setdefault(found[0], {}), found[1], text, key)
            elif setting is not None or rest.startswith(SOURCES) or not _is_of_longer_name(rest):
                reading.complain(key, _no_property_of_query(query, rest, setting))
    return Properties(over(own, of_all), sources, every_source, tuple(reading.problems))


def over(*layers: Given) -> Given:
    """Return what is said by several: each holds against those after it, setting by setting."""
    merged: Given = {}
    for upper in reversed(layers):
        units = {BY_NAME[name].unit for name in upper} - {""}
        kept = {name: said for name, said in merged.items() if BY_NAME[name].unit not in units}
        merged = {**kept, **upper}
    return merged


@dataclass
class _Reading:
    """Takes in what is said in one place."""

    origin: Origin
    problems: list[SettingProblem] = field(default_factory=list)

    def complain(self, name: str, what: str) -> None:
        self.problems.append(SettingProblem(self.origin, name, what))

    def take(
        self, given: dict[str, Said], setting: Setting, text: str, name: str, *, is_flinks: bool = False
    ) -> None:
        """Note a value, or what is wrong with it."""
        text = text.strip()
        is_duration = bool(setting.path) and setting.path[-1].endswith("_seconds")
        try:
            value = setting.form.parse(as_here(text) if is_flinks and is_duration else text)
        except ValueError as error:
            self.complain(name, str(error))
            return
        given[setting.name] = Said(value, text, f"{self.origin.value} {name}", self.origin)


def source_and_setting(rest: str) -> tuple[str, Setting] | None:
    """Return source and setting of `sources.<source>.<setting>`. A source's name may have dots of its own."""
    if not rest.startswith(SOURCES):
        return None
    rest = rest[len(SOURCES) :]
    ends = [
        each for each in OF[Scope.SOURCE] if rest.endswith(f".{each.name}") and len(rest) > len(each.name) + 1
    ]
    if not ends:
        return None
    setting = max(ends, key=lambda each: len(each.name))
    return rest[: -len(setting.name) - 1], setting


def _is_of_longer_name(rest: str) -> bool:
    """Return whether what follows a query's name is the rest of a longer one: `flights` and `flights.eu`."""
    if any(rest.endswith(f".{each.name}") for each in OF[Scope.QUERY]):
        return True
    _, dot, behind = rest.partition(f".{SOURCES}")
    return bool(dot) and source_and_setting(SOURCES + behind) is not None


def _no_option(name: str, setting: Setting | None, scope: Scope) -> str:
    """Say what is wrong with an option of a stream; `setting` is the one of that name, which is of something else."""
    if setting is not None and setting.scope is Scope.QUERY:
        return "is a setting of the query; give it to writeStream"
    if setting is not None:
        return "is a setting of a source; give it to readStream"
    here = [each for known in OF[scope] for each in known.options]
    return _close(name, OPTION, here, [each for known in EVERY for each in known.options])


def _no_property(rest: str, setting: Setting | None) -> str:
    """Say what is wrong with `spark.headgate.<rest>`."""
    if setting is not None:
        return f"cannot be given for all sources; write {PROPERTY}{QUERIES}<query>.{SOURCES}<source>.{rest}"
    known = [*(each.name for each in EVERY if each.has_default), *sorted(PROCESS)]
    return _close(PROPERTY + rest, PROPERTY, [PROPERTY + each for each in known])


def _no_property_of_query(query: str, rest: str, setting: Setting | None) -> str:
    """Say what is wrong with `spark.headgate.queries.<query>.<rest>`."""
    at = f"{PROPERTY}{QUERIES}{query}."
    if setting is not None:
        return f"is a setting of a source; write {at}{SOURCES}<source>.{rest}"
    scope = Scope.QUERY
    if rest.startswith(SOURCES):
        ends = (each.name for each in OF[Scope.QUERY] if rest.endswith(f".{each.name}"))
        if (of_the_query := max(ends, key=len, default=None)) is not None:
            return f"is a setting of the query; write {at}{of_the_query}"
        source, _, rest = rest[len(SOURCES) :].partition(".")
        at, scope = f"{at}{SOURCES}{source}.", Scope.SOURCE
    return _close(at + rest, at, [at + each.name for each in OF[scope]])


def _close(name: str, prefix: str, here: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """Say which may have been meant: a similar one, or one whose last part this is. The prefix tells nothing."""
    bare = name[len(prefix) :]
    if bare in OF_THE_OPERATOR:
        return "an expression of Prometheus is judged by the operator; declare it in a SparkApplication"
    for known in (here, elsewhere):
        by_name = {each[len(prefix) :].lower(): each for each in known if each.startswith(prefix)}
        close = difflib.get_close_matches(bare.lower(), by_name, n=1, cutoff=0.6)
        close = close or [each for each in by_name if each.rpartition(".")[2] == bare.lower()]
        if close:
            return f"unknown setting; did you mean {by_name[close[0]]}?"
    return f"unknown setting; remove it, or use one of {', '.join(here)}"
