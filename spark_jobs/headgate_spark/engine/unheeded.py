"""What is asked of a source that it cannot do, and what is done about it.

Where a query begins with a setting that protects something, and a source cannot obey it, the query ends: it would run
without. Where it runs already, a document must not end it; it goes on as before. What only paces ends no query,
unless the job is to be governed as it says or fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_contract.newer import dataclass
from headgate_contract.settings.table import PROPERTY
from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import ReadLimit

ON_FAILURE = PROPERTY + "onFailure"
"""What becomes of a query that cannot be governed as it is to be. `OnFailure.java` reads it too."""
CONTINUE, FAIL = "continue", "fail"

WHOLE = "is read whole or not at all (read limit: gate), so no batch of it can be cut"

CAPS = ("maxOffsetsPerTrigger", "maxFilesPerTrigger", "maxBytesPerTrigger")
"""Options by which a job itself bounds the batches of a source."""


@dataclass(frozen=True, slots=True)
class Unheeded:
    """A setting that is not obeyed."""

    sentence: str
    """Names setting, source, reason and remedy."""
    protects: bool = False
    """Whether it keeps something from a source or from others, rather than setting a pace."""


def goes_on(properties: Mapping[str, str]) -> bool:
    """Tell whether a query is to run where it cannot be governed as it is to be."""
    return properties.get(ON_FAILURE) == CONTINUE


def refusal(query: str, found: Iterable[Unheeded], properties: Mapping[str, str]) -> str | None:
    """Return why a query that begins cannot be run with what is not obeyed of it; `None`: it can.

    `properties` are those of its session.
    """
    fails = properties.get(ON_FAILURE) == FAIL
    ends = [one.sentence for one in found if fails or one.protects]
    if not ends or goes_on(properties):
        return None
    return f"query {query}: {'; '.join(dict.fromkeys(ends))}; with {ON_FAILURE}={CONTINUE} it runs without"


def unheeded(
    control: QueryControl | None, sources: Mapping[str, Descriptor], *, at_once: bool = False
) -> list[Unheeded]:
    """Return what its sources do not do, by what they are.

    `sources` are those of the job by name; `at_once`: the run is one batch of everything.
    """
    if control is None:
        return []
    found = [
        problem
        for name, source in control.sources.items()
        if name in sources
        for problem in _of_source(name, source, sources[name])
    ]
    if at_once:
        return [*found, *_bounds_in_vain(control, sources)]
    whole = sorted(name for name, described in sources.items() if described.read_limit is ReadLimit.GATE)
    if whole and _bounds_batches(control):
        is_read = WHOLE if len(whole) == 1 else WHOLE.replace("is read", "are read", 1)
        found.append(Unheeded(f"batch.maxRecords does not bound {', '.join(whole)}, which {is_read}"))
    return found


def _bounds_in_vain(control: QueryControl, sources: Mapping[str, Descriptor]) -> Iterator[Unheeded]:
    """Yield what would bound batches, of a run that is one batch of everything."""
    given = [
        f"{setting} of source {name}"
        for name, source in control.sources.items()
        for setting, value in (
            ("rateLimit", source.rate_limit or source.rate_limit_during_backlog),
            ("alignment", source.alignment),
        )
        if name in sources and value is not None
    ]
    if _bounds_batches(control):
        given.append("batch.maxRecords")
    if given:
        yield Unheeded(
            f"{', '.join(given)} {'does' if len(given) == 1 else 'do'} nothing: trigger(once=True) is one batch of "
            "all there is; use trigger(availableNow=True) instead"
        )


def caps_in_vain(control: QueryControl | None, sources: Mapping[str, Descriptor]) -> Iterator[str]:
    """Yield the caps that a job gives its sources, unless somebody has set what stands for them."""
    if control is None or _bounds_batches(control):
        return
    for name, described in sources.items():
        source = control.sources.get(name, SourceControl())
        limits = (source.rate_limit, source.rate_limit_during_backlog)
        caps = [cap for cap in CAPS if cap.lower() in described.options]
        is_planned = described.read_limit in {ReadLimit.OFFSETS, ReadLimit.FILES}
        if caps and is_planned and not any(limit and limit.records_per_checkpoint for limit in limits):
            yield (
                f"{' and '.join(caps)} of source {name} {'does' if len(caps) == 1 else 'do'} nothing, since Headgate "
                "sizes the batches of the query; to bound them, set batch.maxRecords of the query, or "
                "rateLimit.recordsPerCheckpoint of the source"
            )


def _of_source(name: str, control: SourceControl, described: Descriptor) -> Iterator[Unheeded]:
    if control.publish_group is not None and described.format != "kafka":
        yield Unheeded(
            f"kafka.publishGroup of source {name} does nothing: its format is {described.format}, and only positions "
            "in Kafka can be published; leave it out"
        )
    by_pending = control.backlog is not None and control.backlog.pending_records is not None
    if by_pending and described.read_limit is not ReadLimit.OFFSETS:
        yield Unheeded(
            f"backlog.pendingRecords of source {name} starts no backlog: its format, {described.format}, does not "
            "tell how many records wait; set backlog.watermarkLag, for which the job needs withWatermark(), or "
            "backlog.query in a resource"
        )
    limits = (control.rate_limit, control.rate_limit_during_backlog)
    is_whole = described.read_limit is ReadLimit.GATE
    if is_whole and any(limit and limit.records_per_checkpoint for limit in limits):
        yield Unheeded(
            f"rateLimit.recordsPerCheckpoint of source {name} does nothing: it {WHOLE}; use recordsPerSecond, which "
            "holds in the long run, or the source's own limit in the job",
            protects=True,
        )


def _bounds_batches(control: QueryControl) -> bool:
    return control.batch.max_records != BatchControl().max_records
