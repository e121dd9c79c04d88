"""What the job itself says of one query, and what holds of it beside the control document.

A query whose options or properties make no sense is refused when its sources are opened: it would run, and not do
what somebody has written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from headgate_contract import QueryControl, SourceControl
from headgate_contract.settings.contradictions import problems_of_query, problems_of_source
from headgate_contract.settings.layers import SAYS_NOTHING, Job, circles, held, merged
from headgate_contract.settings.said import Origin, in_options, in_properties, over
from headgate_contract.settings.strangers import of_sources
from headgate_contract.settings.table import BY_NAME, OF_THE_JOB, OPTION, Scope
from headgate_spark.engine.bounded import News
from headgate_spark.engine.forbearance import Forbearance
from headgate_spark.engine.refusals import refused_afters
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.unheeded import Unheeded, caps_in_vain, unheeded

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
        self._not_waited_for: list[Unheeded] = []
        self.control: QueryControl | None = None
        """What the query is to do; `None`: nobody says anything of it."""
        self.unmatched: tuple[str, ...] = ()
        """Properties of sources that the query does not have, each as a sentence."""
        self.unheeded: tuple[str, ...] = ()
        """What is not done of what it is told, each as a sentence."""

    def document_says(self, control: QueryControl | None) -> None:
        """There is a new document; `None`: the query is not in it."""
        self._document = control
        self._merge()

    def job_says(self, job: Job) -> None:
        self._job = job
        self._merge()

    def _merge(self) -> None:
        self._origins = None
        self._not_waited_for = []
        self.control = merged(self._document, self._job)

    def keep_afters(
        self,
        sources: Mapping[str, Descriptor],
        watermarks_below_union: int,
        before: QueryControl | None = None,
    ) -> None:
        """Let sources that cannot wait as they are told wait for what they waited for `before`, if for anything.

        Where nothing would ever start by that, they wait for nothing.
        """
        refused = refused_afters(self.control, sources, watermarks_below_union)
        if self.control is None or not refused:
            return
        kept = {} if before is None else before.sources
        free = {name: replace(self.control.sources[name], after=None) for name in refused}
        waiting = {
            name: replace(source, after=kept[name].after) for name, source in free.items() if name in kept
        }
        self.control = replace(self.control, sources={**self.control.sources, **free})
        with suppress(ValueError):
            self.control = replace(self.control, sources={**self.control.sources, **waiting})
        self._not_waited_for = list(dict.fromkeys(refused.values()))

    def found_unheeded(
        self, sources: Mapping[str, Descriptor], unaligned: Iterable[Unheeded] = ()
    ) -> list[Unheeded]:
        """Return what is not done of what it is told; `unaligned` is what alignment has left out."""
        return [*unheeded(self.control, sources), *self._not_waited_for, *unaligned]

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

    def tell(self, sources: Mapping[str, Descriptor], unaligned: Iterable[Unheeded] = ()) -> None:
        """Log what holds, if that is new, and what comes to nothing.

        `sources` are those of the job by name; `unaligned` is what alignment has left out, and has said.
        """
        unmatched = tuple(of_sources(self.query, self._job.sources, sources))
        for problem in self._strange.among(unmatched):
            log.warning("a setting is said of a source that the query does not have", problem=problem)
        self.unmatched = unmatched
        told = tuple(self._words(*each) for each in self.origins if not each[0] or each[0] in sources)
        if told != self._told:
            self._told = told
            log.info("settings of the job", query=self.query, holds=list(told))
        told_of = [each.sentence for each in self.found_unheeded(sources)]
        self.unheeded = (*told_of, *(each.sentence for each in unaligned))
        for problem in self._unheeded.among([*told_of, *caps_in_vain(self.control, sources)]):
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
