"""What holds of a setting that is said in several places: document, then option, then property, then default.

A pure function of all that is said, so it does not matter in which order that became known, and what a document has
taken over comes back when it no longer says it.

A document does not tell what somebody has declared from what is filled in for them: an API server writes defaults
into each resource. So it says a setting where its value is another than the default. What belongs together it says as
a whole: the limits of a source, its alignment, where its event time is, by which lag it is in backlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from headgate_contract import chains
from headgate_contract.document import (
    PAYLOAD_FORMATS,
    AlignmentControl,
    BacklogControl,
    BatchControl,
    EventTimeControl,
    LiveControl,
    QueryControl,
    RateControl,
    ReentryControl,
    SourceControl,
)
from headgate_contract.settings.said import Given, Origin
from headgate_contract.settings.table import TABLE, UNLIMITED, Scope, Setting

_QUERY = (("interval_seconds",), ("interval_during_backlog_seconds",), ("min_pause_seconds",))
_SOURCE = (
    ("paused",),
    ("after",),
    ("max_future_seconds",),
    ("rate_limit", "rate_limit_during_backlog"),
    ("alignment",),
    ("event_time",),
    ("publish_group",),
    ("backlog",),
    ("snapshot",),
)
"""Members of a query and of a source, those together that a document says as a whole."""


@dataclass(frozen=True)
class Job:
    """What the options and properties of a job say of one query; each of them well-formed."""

    query: Given
    sources: Mapping[str, Given]

    @property
    def says_something(self) -> bool:
        return bool(self.query) or any(self.sources.values())


SAYS_NOTHING = Job({}, {})


def merged(document: QueryControl | None, job: Job) -> QueryControl | None:
    """Return what a query is to do; `None`: nobody says anything of it, so it runs as if nobody could.

    Where a document and the job together would have sources wait for each other in a circle, the document's word
    holds.
    """
    if not job.says_something:
        return document
    upper = QueryControl() if document is None else document
    lower = _query(job.query)
    sources = {
        name: _over(upper.sources.get(name, SourceControl()), _source(job.sources.get(name, {})), _SOURCE)
        for name in {**upper.sources, **job.sources}
    }
    if any(chains.cycles({name: each.after for name, each in sources.items() if each.after is not None})):
        declared = {name: upper.sources[name].after if name in upper.sources else None for name in sources}
        sources = {name: replace(source, after=declared[name]) for name, source in sources.items()}
    query: QueryControl = replace(
        _over(upper, lower, _QUERY),
        batch=_over(upper.batch, lower.batch),
        reentry=_over(upper.reentry, lower.reentry),
        live=_over(upper.live, lower.live),
        sources=sources,
    )
    return query


def circles(job: Job) -> list[str]:
    """Return what is wrong with `after` in what the job itself says."""
    after = {name: str(given["after"].value) for name, given in job.sources.items() if "after" in given}
    return [chains.problem(cycle) for cycle in chains.cycles(after)]


def held(document: QueryControl | None, job: Job) -> dict[tuple[str, str], Origin]:
    """Return whose word holds, by source (empty: the query) and setting, of all that is not left at its default."""
    upper = QueryControl() if document is None else document
    found = dict(_held("", Scope.QUERY, upper, QueryControl(), job.query))
    for name in sorted({**upper.sources, **job.sources}):
        source = upper.sources.get(name, SourceControl())
        found |= _held(name, Scope.SOURCE, source, SourceControl(), job.sources.get(name, {}))
    return found


def _held(
    source: str, scope: Scope, upper: Any, default: Any, given: Given
) -> Iterator[tuple[tuple[str, str], Origin]]:
    for setting in TABLE:
        if setting.scope is not scope:
            continue
        if _is_said(upper, default, setting):
            if _is_set(upper, default, setting):
                yield (source, setting.name), Origin.DOCUMENT
        elif setting.name in given:
            yield (source, setting.name), given[setting.name].origin


def _is_said(upper: Any, default: Any, setting: Setting) -> bool:
    """Return whether the document says it, or what it belongs to."""
    if setting.path[:1] in (("batch",), ("reentry",), ("live",)):
        return _is_set(upper, default, setting)
    member = setting.path[0] if setting.path else "rate_limit_during_backlog"
    together = next((each for each in _SOURCE if member in each), (member,))
    return any(getattr(upper, each) != getattr(default, each) for each in together)


def _is_set(upper: Any, default: Any, setting: Setting) -> bool:
    if not setting.path:  # `Unlimited`
        return upper.rate_limit is not None and upper.rate_limit_during_backlog is None
    if setting.path[0] == "rate_limit_during_backlog" and upper.rate_limit_during_backlog == upper.rate_limit:
        return False  # as live
    value, otherwise = upper, default
    for member in setting.path:
        value, otherwise = getattr(value, member), getattr(otherwise, member, None)
        if value is None:
            return False
    return bool(value != otherwise)


def _over(upper: Any, lower: Any, together: Sequence[tuple[str, ...]] = ()) -> Any:
    """Return what a document says, with what the job says of all that the document leaves at its default.

    `together` are the members that count, those in one place as a whole; by default all, each by itself.
    """
    default, every = type(upper)(), together or [(each.name,) for each in fields(upper)]
    unsaid = [members for members in every if all(getattr(upper, m) == getattr(default, m) for m in members)]
    return replace(upper, **{member: getattr(lower, member) for members in unsaid for member in members})


def _query(given: Given) -> QueryControl:
    return QueryControl(
        **_own(given, Scope.QUERY),
        batch=BatchControl(**_below(given, "batch")),
        reentry=ReentryControl(**_below(given, "reentry")),
        live=LiveControl(**_below(given, "live")),
    )


def _source(given: Given) -> SourceControl:
    live, during = _below(given, "rate_limit"), _below(given, "rate_limit_during_backlog")
    alignment, event_time = _below(given, "alignment"), _below(given, "event_time")
    backlog = _below(given, "backlog")
    is_unlimited = "rateLimit.duringBacklog" in given and given["rateLimit.duringBacklog"].value == UNLIMITED
    burst = {name: value for name, value in live.items() if name == "max_burst_seconds"}
    limit = RateControl(**live) if live.keys() - burst.keys() else None
    instead = RateControl(**during, **burst) if during else None if is_unlimited else limit
    return SourceControl(
        **_own(given, Scope.SOURCE),
        rate_limit=limit,
        rate_limit_during_backlog=instead,
        alignment=AlignmentControl(**alignment)
        if {"group", "max_drift_seconds"} <= alignment.keys()
        else None,
        event_time=EventTimeControl(**{"format": PAYLOAD_FORMATS[0], **event_time})
        if "column" in event_time
        else None,
        backlog=BacklogControl(**backlog) if backlog else None,
    )


def _own(given: Given, scope: Scope) -> dict[str, Any]:
    return {
        each.path[0]: given[each.name].value
        for each in TABLE
        if each.scope is scope and len(each.path) == 1 and each.name in given
    }


def _below(given: Given, member: str) -> dict[str, Any]:
    return {
        each.path[1]: given[each.name].value
        for each in TABLE
        if len(each.path) == 2 and each.path[0] == member and each.name in given
    }
