"""What is allowed, but seldom meant: the warnings of `headgate validate`.

Nothing here keeps a resource out. Each warning says what will happen and what would change it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import groupby, islice
from typing import Final

from headgate.api.annotations import PAUSED, paused_entries
from headgate.api.application import SparkApplication
from headgate.api.duration import ZERO, format_duration
from headgate.api.finding import Finding, Location, Severity
from headgate.api.query import LiveMode
from headgate.api.source import Alignment, Source
from headgate.api.wording import listed
from headgate_contract.settings.said import in_properties
from headgate_contract.triggers import TRIGGER_BASE_SECONDS

TRIGGER_BASE: Final = timedelta(seconds=TRIGGER_BASE_SECONDS)
SHORTEST_INTERVAL: Final = timedelta(milliseconds=10)
"""What is shorter is refused by a rule, and needs no warning."""
MOST_IN_VAIN: Final = 10
"""Entries of an annotation that are told of: it may have a hundred thousand."""


def advice(application: SparkApplication) -> Iterator[Finding]:
    for check in _CHECKS:
        for message, location in check(application):
            yield Finding(Severity.WARNING, message, location)
    for message in pauses_in_vain(application):
        yield Finding(Severity.WARNING, message, ("metadata", "annotations", PAUSED))


Advice = Iterator[tuple[str, Location]]


def _main_is_no_script(application: SparkApplication) -> Advice:
    if application.spec.main.file.endswith(".jar"):
        yield (
            "names a jar, but drivers run a Python script. Start a job in Java or Scala by "
            "spark-submit with the jar of Headgate, or from a script",
            ("spec", "main", "file"),
        )


def _property_is_refused_by_the_query(application: SparkApplication) -> Advice:
    spec = application.spec
    places: tuple[tuple[Location, Mapping[str, str]], ...] = (
        (("spec", "sparkConf"), spec.spark_conf),
        (("spec", "duringBacklog", "sparkConf"), spec.during_backlog.spark_conf),
    )
    for location, conf in places:
        names = [query.name for query in spec.queries] or [""]
        problems = (problem for name in names for problem in in_properties(conf, name).problems)
        for problem in dict.fromkeys(problems):
            yield f"the query would fail at its start: {problem.what}", (*location, problem.name)


def _grace_period_is_shorter_than_a_batch(application: SparkApplication) -> Advice:
    grace = application.spec.stop.grace_period
    for index, query in enumerate(application.spec.queries):
        checkpoint, live = query.checkpoint, query.live
        lengths: dict[str, str] = {}
        longest = max(checkpoint.interval or ZERO, checkpoint.interval_during_backlog or ZERO)
        if checkpoint.one_batch_spans_backlog:
            lengths["checkpoint"] = "as long as the backlog takes, since intervalDuringBacklog is 0s"
        elif grace < longest:
            lengths["checkpoint"] = f"up to {format_duration(longest)}"
        if live.mode is LiveMode.REAL_TIME and grace < live.batch:
            lengths["live"] = f"{format_duration(live.batch)} in real-time mode, since live.batch is so long"
        for member, length in lengths.items():
            yield (
                f"stop.gracePeriod is {format_duration(grace)}, but a batch may take {length}; a stop would then "
                "kill it and repeat it later. Raise stop.gracePeriod if that matters",
                ("spec", "queries", index, member),
            )


def _interval_is_below_the_trigger_base(application: SparkApplication) -> Advice:
    for index, query in enumerate(application.spec.queries):
        interval = query.checkpoint.interval
        if interval is not None and SHORTEST_INTERVAL <= interval < TRIGGER_BASE:
            yield (
                f"the trigger base of {format_duration(TRIGGER_BASE)} holds instead of {format_duration(interval)}",
                ("spec", "queries", index, "checkpoint", "interval"),
            )


def _group_has_different_drifts(application: SparkApplication) -> Advice:
    for group, members in _groups(application):
        smallest = min(alignment.max_drift for _, alignment in members)
        for location, alignment in members:
            if alignment.max_drift > smallest:
                yield (
                    f"group {group} also has a member with maxDrift {format_duration(smallest)}; the smallest holds",
                    (*location, "alignment", "maxDrift"),
                )


def _group_has_one_member(application: SparkApplication) -> Advice:
    for group, members in _groups(application):
        if len(members) == 1:
            yield (
                f"group {group} has no other source here: only the partitions of this one are kept together",
                (*members[0][0], "alignment", "group"),
            )


def _backlog_is_never_entered(application: SparkApplication) -> Advice:
    for index, query in enumerate(application.spec.queries):
        if query.checkpoint.interval_during_backlog is not None and not any(map(_votes, query.sources)):
            yield (
                "no source of the query says what its backlog is, so intervalDuringBacklog never holds; set "
                "backlog.watermarkLag, backlog.pendingRecords or backlog.query of a source",
                ("spec", "queries", index, "checkpoint", "intervalDuringBacklog"),
            )


def _rate_is_lost_between_commits(application: SparkApplication) -> Advice:
    """Warn of a bucket that is full long before the next batch may take anything out of it."""
    for at, query in enumerate(application.spec.queries):
        pause = max(query.checkpoint.interval or ZERO, query.checkpoint.min_pause)
        for index, source in enumerate(query.sources):
            limit = source.rate_limit
            if limit is None or limit.records_per_second is None or pause <= limit.max_burst:
                continue
            apart, rate = format_duration(pause), limit.records_per_second
            reached = rate * (limit.max_burst / pause)
            yield (
                f"live, batches are {apart} apart, but only {format_duration(limit.max_burst)} of the rate are saved "
                f"up meanwhile: at most {reached:,.6g} of the {rate:,.6g} records per second are read. Set maxBurst "
                f"to {apart} for the whole rate",
                ("spec", "queries", at, "sources", index, "rateLimit"),
            )


def pauses_in_vain(application: SparkApplication) -> Iterator[str]:
    """Yield what to say of a pause that pauses nothing: nobody refuses an annotation, and the source is read on.

    Of many some: the others are told once these are corrected.
    """
    return islice(_pauses_in_vain(application), MOST_IN_VAIN)


def _pauses_in_vain(application: SparkApplication) -> Iterator[str]:
    queries = {query.name: [source.name for source in query.sources] for query in application.spec.queries}
    for entry in dict.fromkeys(paused_entries(application.metadata.annotations)):
        query, slash, source = entry.partition("/")
        if not slash:
            yield f"{entry} pauses nothing; write query/source, separated by commas"
        elif query not in queries:
            yield f"{entry} pauses nothing: there is no query {query}{_those(queries)}"
        elif source not in queries[query]:
            yield f"{entry} pauses nothing: query {query} has no source {source}{_those(queries[query])}"


_CHECKS: Final[tuple[Callable[[SparkApplication], Advice], ...]] = (
    _main_is_no_script,
    _property_is_refused_by_the_query,
    _grace_period_is_shorter_than_a_batch,
    _interval_is_below_the_trigger_base,
    _group_has_different_drifts,
    _group_has_one_member,
    _backlog_is_never_entered,
    _rate_is_lost_between_commits,
)


def _those(names: Iterable[str]) -> str:
    known = listed(names)
    return f"; the resource lists {known}" if known else ", since the resource lists none"


def _votes(source: Source) -> bool:
    backlog = source.backlog
    thresholds = (
        backlog.watermark_lag,
        backlog.pending_records,
        backlog.snapshot,
        backlog.query,
        source.after,
    )
    return any(threshold is not None for threshold in thresholds)


def _groups(application: SparkApplication) -> Iterator[tuple[str, list[tuple[Location, Alignment]]]]:
    members: list[tuple[Location, Alignment]] = [
        (("spec", "queries", at, "sources", index), source.alignment)
        for at, query in enumerate(application.spec.queries)
        for index, source in enumerate(query.sources)
        if source.alignment is not None
    ]
    by_group = sorted(members, key=lambda member: member[1].group)
    for group, found in groupby(by_group, key=lambda member: member[1].group):
        yield group, list(found)
