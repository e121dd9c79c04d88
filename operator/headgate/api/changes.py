"""What a change of the resource will do: field by field, with the update mode of each.

Compared are the resources as they were accepted, with defaults filled in, so that writing out a default or the same
duration in another unit is no change. `headgate explain --diff` shows the result before somebody applies it, the
operator and `headgate local` tell it afterwards, in the same words; but what goes into Events and logs has no values
of Spark properties and arguments, where jobs keep what is secret under names that nobody can list.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

from headgate.api.application import SparkApplication
from headgate.api.update_modes import POD_TEMPLATE, SETTINGS, UpdateMode, UpdateRule, setting_at
from headgate_contract.foreign import HIDDEN, NAMES_A_SECRET, scrubbed

LONGEST_SUMMARY: Final = 1000
"""Bytes; the message of an Event may have 1,024."""

_ORDER: Final = UpdateRule(
    UpdateMode.LIVE, "where several give a reason for a verdict, the first one is reported"
)
_WITHOUT_EFFECT: Final = "nothing: what holds in a backlog is the same as before"
_BACKLOG_PROPERTY: Final = "spec.duringBacklog.sparkConf["
_OF_THE_JOB: Final = ("spec.main.arguments", "spec.sparkConf", "spec.duringBacklog.sparkConf")
"""Their values are the job's own, and may be secrets."""
_SHOWN: Final = 80  # characters of a value in a sentence

Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two resources. Values are JSON types; None is "not set"."""

    path: str
    """As people write it: `spec.queries[delays].checkpoint.interval`."""
    before: Any
    after: Any
    update_mode: UpdateMode
    effect: str
    """What follows, as the end of a sentence."""

    @property
    def text(self) -> str:
        """Path and both values, on one line; of a query or a source that it comes or goes."""
        match self.before, self.after:
            case None, {"name": _}:
                return f"{self.path}: added"
            case {"name": _}, None:
                return f"{self.path}: removed"
        return f"{self.path}: {written(self.before)} -> {written(self.after)}"

    @property
    def public_text(self) -> str:
        """The same for everybody who reads Events and logs: of what is the job's own only that it has changed."""
        if not self.path.startswith(_OF_THE_JOB):
            return self.text
        match self.before, self.after:
            case None, _:
                return f"{self.path}: set"
            case _, None:
                return f"{self.path}: not set any more"
        return f"{self.path}: changed"


def changes(old: SparkApplication, new: SparkApplication) -> tuple[Change, ...]:
    """Return every difference between the `spec` of two resources, in the order of the new one.

    Empty only if nothing differs. Metadata is not compared: annotations are no part of what is declared.
    """
    before, after = (resource.to_manifest()["spec"] for resource in (old, new))
    return tuple(
        _without_effect(change, before, after) for change in _differences("spec", "spec", before, after)
    )


def summary(told: Sequence[Change]) -> str:
    """Return the changes as one sentence for an Event or a log, the dearest first, cut to a bounded length."""
    dearest_first = sorted(
        told, key=lambda change: (-tuple(UpdateMode).index(change.update_mode), change.effect)
    )
    parts = [
        f"{', '.join(change.public_text for change in alike)} ({effect})"
        for effect, alike in groupby(dearest_first, key=lambda change: change.effect)
    ]
    text = "; ".join(parts)
    kept = text.encode()[:LONGEST_SUMMARY].decode(errors="ignore")
    return text if kept == text else f"{kept}..."


def written(value: Any) -> str:
    """Return a value as a person would write it in the resource, shortened if it is long."""
    match value:
        case None:
            return "not set"
        case str():
            text = value
        case float() if value == int(value):
            text = str(int(value))
        case Mapping():
            text = f"{{{', '.join(f'{name}: {written(member)}' for name, member in value.items())}}}"
        case _:
            text = json.dumps(value)
    text = scrubbed(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def shown_property(name: str, value: str | None) -> str | None:
    """Return the value of a Spark property, without what its name or its form says is a secret."""
    if value is None:
        return None
    return HIDDEN if NAMES_A_SECRET.search(name) else scrubbed(value)


def _differences(path: str, setting: str, before: Any, after: Any) -> Iterator[Change]:
    """Yield the differences at `path`; `setting` is the same path without the names of items."""
    if before == after:
        return
    if path.endswith(f".{POD_TEMPLATE}"):
        yield from _of_template(path, before or {}, after or {})
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        find = _properties if setting in SETTINGS else _members
        yield from find(path, setting, before, after)
    elif _is_list_of_named(before, after):
        yield from _items(path, setting, _by_name(before), _by_name(after))
    else:
        yield _change(path, setting_at(setting), before, after)


def _members(path: str, setting: str, before: Values, after: Values) -> Iterator[Change]:
    for name in dict.fromkeys((*after, *before)):
        yield from _differences(f"{path}.{name}", f"{setting}.{name}", before.get(name), after.get(name))


def _properties(path: str, setting: str, before: Values, after: Values) -> Iterator[Change]:
    """Yield the differences of a map, whose keys are the user's own."""
    for name in dict.fromkeys((*after, *before)):
        if before.get(name) != after.get(name):
            shown = (shown_property(name, values.get(name)) for values in (before, after))
            yield _change(f"{path}[{name}]", setting_at(setting), *shown)


def _of_template(path: str, before: Values, after: Values) -> Iterator[Change]:
    """Yield which fields of a pod template differ. Their values are large, and environments hold what is secret."""
    for part in ("metadata", "spec"):
        old, new = before.get(part) or {}, after.get(part) or {}
        for name in dict.fromkeys((*new, *old)):
            if old.get(name) != new.get(name):
                told = (_named_by_digest(values.get(name)) for values in (old, new))
                yield _change(f"{path}.{part}.{name}", setting_at(path), *told)


def _named_by_digest(value: Any) -> str | None:
    if not value:
        return None
    return f"(sha256 {hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]})"


def _items(
    path: str, setting: str, before: Mapping[str, Values], after: Mapping[str, Values]
) -> Iterator[Change]:
    """Yield the differences of a list whose items are told apart by name, and one if their order changed."""
    for name in dict.fromkeys((*after, *before)):
        item = f"{path}[{name}]"
        if name in before and name in after:
            yield from _members(item, setting, before[name], after[name])
        else:
            yield _change(item, setting_at(setting), before.get(name), after.get(name))
    stayed = [[name for name in one if name in other] for one, other in ((before, after), (after, before))]
    if stayed[0] != stayed[1]:
        yield _change(path, _ORDER, list(before), list(after))


def _change(path: str, setting: UpdateRule, before: Any, after: Any) -> Change:
    return Change(
        path=path,
        before=before,
        after=after,
        update_mode=setting.update_mode,
        effect=setting.effect_of(after),
    )


def _without_effect(change: Change, before: Values, after: Values) -> Change:
    """Say so where a property for a backlog has changed to or from what holds anyway."""
    if not change.path.startswith(_BACKLOG_PROPERTY):
        return change
    name = change.path[len(_BACKLOG_PROPERTY) : -1]
    if _in_backlog(before, name) != _in_backlog(after, name):
        return change
    return replace(change, update_mode=UpdateMode.OPERATOR, effect=_WITHOUT_EFFECT)


def _in_backlog(spec: Values, name: str) -> str | None:
    value: str | None = spec["duringBacklog"]["sparkConf"].get(name, spec["sparkConf"].get(name))
    return value


def _is_list_of_named(*values: Any) -> bool:
    """Whether both are lists of queries or sources, whose items are told apart by name."""
    items = [item for value in values if isinstance(value, list) for item in value]
    return bool(items) and all(isinstance(value, list) for value in values) and isinstance(items[0], Mapping)


def _by_name(items: Sequence[Values]) -> dict[str, Values]:
    return {item["name"]: item for item in items}
