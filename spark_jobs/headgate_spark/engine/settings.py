"""What the job itself says of one query, and what holds of it beside the control document.

A query whose options or properties make no sense is refused when its sources are opened: it would run, and not do
what somebody has written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import structlog

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_contract.settings.contradictions import problems_of_query, problems_of_source
from headgate_contract.settings.layers import SAYS_NOTHING, Job, circles, held, merged
from headgate_contract.settings.said import Origin, in_options, in_properties, over
from headgate_contract.settings.strangers import of_sources
from headgate_contract.settings.table import BY_NAME, OF_THE_JOB, OPTION, Scope
from headgate_spark.engine.bounded import News
from headgate_spark.engine.forbearance import Forbearance
from headgate_spark.engine.sources import Descriptor
from headgate_spark.planner.model import ReadLimit

log = structlog.get_logger("headgate")


class SettingsError(ValueError):
    """What the job says of a query makes no sense; the message names each setting, and the remedy."""


@dataclass(frozen=True)
class OfJob:
    """What is told of a query: the options of its `writeStream` that are ours, and the properties of its session."""

    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def read(self, query: str, sources: Mapping[str, Mapping[str, str]]) -> Job:
        """Return what is said of a query and its sources; `sources` has their options by name.

        Raises `SettingsError` with all that is wrong.
        """
        said, problems = in_options(self.options, Scope.QUERY)
        properties = in_properties(self.properties, query)
        of_query = over(said, properties.query)
        told = [str(problem) for problem in (*problems, *properties.problems)]
        try:
            Forbearance().said_by(self.properties)
        except ValueError as error:
            told.append(str(error))
        of_sources = dict(properties.sources)
        for name, options in sources.items():
            given, problems = in_options(options, Scope.SOURCE)
            of_sources[name] = over(given, properties.of_source(name))
            told += [f"source {name}: {problem}" for problem in problems]
        told += problems_of_query(of_query)
        for name, given in of_sources.items():
            told += [f"source {name}: {problem}" for problem in problems_of_source(of_query, given)]
        job = Job(of_query, {name: given for name, given in of_sources.items() if given})
        told += circles(job)
        if told:
            raise SettingsError(f"query {query}: {'; '.join(dict.fromkeys(told))}")
        return job


class QuerySettings:
    """What holds of one query: what a document says, put before what the job says."""

    def __init__(self, query: str) -> None:
        self.query = query
        self._told: tuple[str, ...] = ()
        self._origins: tuple[tuple[str, str, str], ...] | None = None
        self._document: QueryControl | None = None
        self._job = SAYS_NOTHING
        self._unheeded: News[str] = News()
        self._strange: News[str] = News()
        self.control: QueryControl | None = None
        """What the query is to do; `None`: nobody says anything of it."""
        self.unmatched: tuple[str, ...] = ()
        """Properties of sources that the query does not have, each as a sentence."""

    def document_says(self, control: QueryControl | None) -> None:
        """There is a new document; `None`: the query is not in it."""
        self._document = control
        self._merge()

    def job_says(self, job: Job) -> None:
        self._job = job
        self._merge()

    def _merge(self) -> None:
        self._origins = None
        self.control = merged(self._document, self._job)

    @property
    def sources(self) -> Mapping[str, SourceControl]:
        """What is said of sources, by name; they need not be there."""
        return {} if self.control is None else self.control.sources

    def of_source(self, name: str) -> SourceControl:
        return self.sources.get(name, SourceControl())

    @property
    def origins(self) -> Iterable[tuple[str, str, str]]:
        """Of each setting that the job says: its source (empty: the query), its name, and whose word holds."""
        if self._origins is None:
            self._origins = tuple(self._found()) if self._job.says_something else ()
        return self._origins

    def _found(self) -> Iterator[tuple[str, str, str]]:
        holding = held(self._document, self._job)
        for source, given in (("", self._job.query), *sorted(self._job.sources.items())):
            for name in given:
                origin = holding.get((source, name))
                if origin is None:
                    origin = given[name].origin if BY_NAME[name] in OF_THE_JOB else Origin.DOCUMENT
                yield source, name, origin.value

    def tell(self, sources: Mapping[str, Descriptor], *, at_once: bool = False) -> None:
        """Log what holds, if that is new, and what comes to nothing; `sources` are those of the job by name.

        `at_once`: the run is one batch of everything.
        """
        unmatched = tuple(of_sources(self.query, self._job.sources, sources))
        for problem in self._strange.among(unmatched):
            log.warning("a setting is said of a source that the query does not have", problem=problem)
        self.unmatched = unmatched
        told = tuple(self._words(*each) for each in self.origins if not each[0] or each[0] in sources)
        if told != self._told:
            self._told = told
            log.info("settings of the job", query=self.query, holds=list(told))
        for problem in self._unheeded.among(unheeded(self.control, sources, at_once=at_once)):
            log.warning("a setting is not heeded", query=self.query, problem=problem)
        histories = {
            name: each.after for name, each in self.sources.items() if name in sources and each.after
        }
        unknown = sorted({*self.sources, *histories.values()} - set(sources))
        if unknown:
            log.warning("the job has no such source", query=self.query, unknown=unknown, known=[*sources])
        waiting = sorted(name for name, history in histories.items() if history in unknown)
        if waiting:
            log.warning(
                "what comes after a source that the job does not have is not read; correct `after` or the name",
                query=self.query,
                waiting=waiting,
            )

    def _words(self, source: str, name: str, origin: str) -> str:
        given = self._job.sources[source] if source else self._job.query
        at = f" of source {source}" if source else ""
        if origin == "document":
            return f"{OPTION}{name}{at}: the document's, not {given[name].text}"
        return f"{OPTION}{name}{at}: {given[name].text}, by {given[name].spelling}"


WHOLE = "is read whole or not at all (read limit: gate), so no batch of it can be cut"

CAPS = ("maxOffsetsPerTrigger", "maxFilesPerTrigger", "maxBytesPerTrigger")
"""Options by which a job itself bounds the batches of a source."""


def unheeded(
    control: QueryControl | None, sources: Mapping[str, Descriptor], *, at_once: bool = False
) -> list[str]:
    """Return what is not done, each with the remedy. `sources` are those of the job by name; `at_once`: of a run that
    is one batch of everything."""
    if control is None:
        return []
    of_sources = [
        problem
        for name, source in control.sources.items()
        if name in sources
        for problem in _of_source(name, source, sources[name])
    ]
    if at_once:
        return [*of_sources, *_bounds_in_vain(control, sources)]
    whole = sorted(name for name, described in sources.items() if described.read_limit is ReadLimit.GATE)
    if whole and control.batch.max_records != BatchControl().max_records:
        is_read = WHOLE if len(whole) == 1 else WHOLE.replace("is read", "are read", 1)
        of_sources.append(f"batch.maxRecords does not bound {', '.join(whole)}, which {is_read}")
    return [*of_sources, *_caps_in_vain(control, sources)]


def _bounds_in_vain(control: QueryControl, sources: Mapping[str, Descriptor]) -> Iterator[str]:
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
    if control.batch.max_records != BatchControl().max_records:
        given.append("batch.maxRecords")
    if given:
        yield (
            f"{', '.join(given)} {'does' if len(given) == 1 else 'do'} nothing: trigger(once=True) is one batch of "
            "all there is; use trigger(availableNow=True) instead"
        )


def _caps_in_vain(control: QueryControl, sources: Mapping[str, Descriptor]) -> Iterator[str]:
    """Yield the caps that a job gives its sources, unless somebody has set what stands for them."""
    if control.batch.max_records != BatchControl().max_records:
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


def _of_source(name: str, control: SourceControl, described: Descriptor) -> Iterator[str]:
    if control.publish_group is not None and described.format != "kafka":
        yield (
            f"kafka.publishGroup of source {name} does nothing: its format is {described.format}, and only positions "
            "in Kafka can be published; leave it out"
        )
    by_pending = control.backlog is not None and control.backlog.pending_records is not None
    if by_pending and described.read_limit is not ReadLimit.OFFSETS:
        yield (
            f"backlog.pendingRecords of source {name} starts no backlog: its format, {described.format}, does not "
            "tell how many records wait; set backlog.watermarkLag, for which the job needs withWatermark(), or "
            "backlog.query in a resource"
        )
    limits = (control.rate_limit, control.rate_limit_during_backlog)
    is_whole = described.read_limit is ReadLimit.GATE
    if is_whole and any(limit and limit.records_per_checkpoint for limit in limits):
        yield (
            f"rateLimit.recordsPerCheckpoint of source {name} does nothing: it {WHOLE}; use recordsPerSecond, which "
            "holds in the long run, or the source's own limit in the job"
        )
