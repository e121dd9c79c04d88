"""What settings must not say together, in words that are those of the resource's own rules as well."""

from __future__ import annotations

from collections.abc import Iterator

from headgate_contract.settings.said import Given

_CUT = "rateLimit.recordsPerCheckpoint"

BELOW_INTERVAL = "intervalDuringBacklog must be 0s or at least interval; raise it, or lower interval"
LIMITS_NOTHING = (
    "rateLimit limits nothing; set recordsPerSecond, recordsPerCheckpoint or duringBacklog, or leave rateLimit "
    "out"
)
SLOWS_BACKLOG = (
    "recordsPerCheckpoint would slow a backlog down, since intervalDuringBacklog is longer than interval; set "
    "rateLimit.duringBacklog to Unlimited or to limits of its own"
)
CUTS_SINGLE_BATCH = (
    "a rate limit cannot hold while one batch spans the backlog (intervalDuringBacklog is 0s); set "
    "rateLimit.duringBacklog: Unlimited, or a longer intervalDuringBacklog"
)


def below_threshold(above: str, threshold: str) -> str:
    return (
        f"{above} must not be below the {threshold} of any source of the query; raise it, or leave it out for twice "
        "the threshold"
    )


def not_in_real_time(what: str) -> str:
    return f"{what} cannot hold inside a batch of real-time mode (live.mode is RealTime); leave one of the two out"


def problems_of_query(query: Given) -> Iterator[str]:
    """Yield what a query's settings must not say together. Each is well-formed."""
    interval, during = _intervals(query)
    if interval is not None and during is not None and 0 < during < interval:
        yield _problem(query, "intervalDuringBacklog", BELOW_INTERVAL)


def problems_of_source(query: Given, source: Given) -> Iterator[str]:
    """Yield what the settings of a source must not say together, or beside those of its query."""
    for name, message in (*_contradictions(query, source), *_beside_real_time(query, source)):
        yield _problem(source, name, message)


def _problem(given: Given, name: str, message: str) -> str:
    return f"{given[name].spelling}: {message}"


def _intervals(query: Given) -> tuple[float | None, float | None]:
    interval, during = query.get("interval"), query.get("intervalDuringBacklog")
    return (
        None if interval is None else float(interval.value),
        None if during is None else float(during.value),
    )


def _contradictions(query: Given, source: Given) -> Iterator[tuple[str, str]]:
    interval, during = _intervals(query)
    limits = [name for name in source if name.startswith("rateLimit.")]
    live = [
        name for name in limits if name in ("rateLimit.recordsPerSecond", "rateLimit.recordsPerCheckpoint")
    ]
    instead = [name for name in limits if name.startswith("rateLimit.duringBacklog")]
    if limits and not live and not instead:
        yield limits[0], LIMITS_NOTHING
    if len(instead) > 1 and "rateLimit.duringBacklog" in instead:
        yield (
            "rateLimit.duringBacklog",
            "duringBacklog is Unlimited, and has limits of its own too; leave one of the two out",
        )
    if interval is not None and during is not None and during > interval and _CUT in live and not instead:
        yield _CUT, SLOWS_BACKLOG
    if during == 0 and (live or instead) and "rateLimit.duringBacklog" not in instead:
        yield (live or instead)[0], CUTS_SINGLE_BATCH
    for name, above in _REENTRY.items():
        if name in source and above in query and float(source[name].value) > float(query[above].value):
            yield name, below_threshold(above, name.rpartition(".")[2])
    aligned = [name for name in source if name.startswith("alignment.")]
    for name, purpose in _REQUIRED.items():
        if aligned and name not in source:
            yield aligned[0], f"{name} is required: {purpose}"


def _beside_real_time(query: Given, source: Given) -> Iterator[tuple[str, str]]:
    mode = query.get("live.mode")
    if mode is None or not mode.value:
        return
    for what, settings in _NOT_IN_REAL_TIME.items():
        if (name := next((name for name in source if name.startswith(settings)), None)) is not None:
            yield name, not_in_real_time(what)


_NOT_IN_REAL_TIME = {
    "a rate limit": ("rateLimit.recordsPerSecond", "rateLimit.recordsPerCheckpoint"),
    "an alignment": ("alignment.",),
}
_REENTRY = {
    "backlog.watermarkLag": "backlog.reentry.above",
    "backlog.pendingRecords": "backlog.reentry.pendingRecordsAbove",
}
_REQUIRED = {
    "alignment.group": "Name of the group",
    "alignment.maxDrift": "How far a member may be planned ahead of the slowest one, in event time",
}
