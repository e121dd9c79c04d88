"""Whose word holds of each setting: the resource's, an option's, a property's, or nobody's.

A resource and its `sparkConf` tell of the document and of properties. What a job says by options is in its code; the
metrics of its driver tell of that.
"""

import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException, HTTPResponse, InvalidURL
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from headgate.adapters.metrics.scrape import LARGEST_BYTES
from headgate.api.application import SparkApplication
from headgate.cli.view.words import whose
from headgate.errors import TransientError, UsageError
from headgate.reconcile.document import next_document
from headgate_contract.metrics import QUERY_ACTIVE, QUERY_OWNER, SETTING_INFO
from headgate_contract.settings.layers import Job, held
from headgate_contract.settings.said import in_properties
from headgate_contract.settings.table import OF, Scope

SECONDS = 10.0
CHUNK_BYTES = 65536


class ToldSetting(NamedTuple):
    """What a driver tells of one setting; `source` is empty for one of the query."""

    query: str
    source: str
    setting: str
    origin: str


class Told(NamedTuple):
    """What a driver tells of its queries."""

    settings: Sequence[ToldSetting] = ()
    owners: Mapping[str, str] = {}
    """By query the user of Spark Connect who started it, and so gave it its options."""

    def title(self, query: str, source: str) -> str:
        named = whose(query, self.owners.get(query))
        return f"source {source} of query {named}" if source else f"query {named}"


def told_by(url: str, seconds: float = SECONDS) -> Told:
    """Return what the driver at `url` tells within so long.

    Raises UsageError where `url` is no address, TransientError where no page of metrics comes from there.
    """
    no_address = UsageError(f"--metrics {url}: give an address such as http://localhost:8090/metrics")
    if not url.startswith(("http://", "https://")):
        raise no_address
    try:
        with urllib.request.urlopen(url, timeout=seconds) as page:  # noqa: S310 -- see above
            families = text_string_to_metric_families(_lines_of_queries(page, seconds))
            samples = [sample for family in families for sample in family.samples]
            settings = [each.labels for each in samples if each.name == SETTING_INFO.name]
            return Told(
                [ToldSetting(*(each[member] for member in ToldSetting._fields)) for each in settings],
                {
                    each.labels["query"]: each.labels["user"]
                    for each in samples
                    if each.name == QUERY_OWNER.name
                },
            )
    except InvalidURL:
        raise no_address from None
    except (OSError, ValueError, KeyError, HTTPException) as error:
        reason = getattr(error, "reason", error)  # `urllib` wraps what the system says in words of its own
        said = (isinstance(reason, OSError) and reason.strerror) or " ".join(str(reason).split())
        raise TransientError(
            f"--metrics {url}: no metrics are read there ({said}); see that the driver runs"
        ) from None


def _lines_of_queries(page: HTTPResponse, seconds: float) -> str:
    """Return the lines that say something of a setting or an owner.

    Raises ValueError for a page that nobody would serve, TransientError where there is no query yet.

    What is served there is in the hands of a job, so a page has a largest size and a time, as for the operator.
    """
    deadline, body = time.monotonic() + seconds, bytearray()
    while chunk := page.read1(CHUNK_BYTES):
        body += chunk
        if len(body) > LARGEST_BYTES:
            raise ValueError(f"it is larger than {LARGEST_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise ValueError(f"it has not come within {seconds:g} s")
    if b"headgate_" not in body:
        raise ValueError("its page has no metric of Headgate")
    lines = body.decode().splitlines(keepends=True)
    if not any(line.startswith(QUERY_ACTIVE.name) for line in lines):
        raise TransientError(
            "the job has started no query yet, so nobody knows what it says; ask again in a moment"
        )
    return "".join(line for line in lines if line.startswith((SETTING_INFO.name, QUERY_OWNER.name)))


def of_resource(
    application: SparkApplication, told: Told | None = None, *, is_brief: bool = False
) -> Iterator[str]:
    """Yield a line for each query and source of a resource; `told` is what its driver tells, if that was asked.

    Brief, it is of those alone of which the resource, by itself or by a property, says something, and of no default.
    """
    asked = told is not None
    told = told or Told()
    for query, names, origins in _by_query(application):
        for each in told.settings:
            if each.query == query:
                origins[each.source, each.setting] = each.origin
        for name in ("", *sorted(names | {source for source, _ in origins if source})):
            said = {setting: word for (at, setting), word in origins.items() if at == name}
            if said or not is_brief:
                scope = None if is_brief else Scope.SOURCE if name else Scope.QUERY
                yield _line(told.title(query, name), scope, said, asked=asked)


def _by_query(application: SparkApplication) -> Iterator[tuple[str, set[str], dict[tuple[str, str], str]]]:
    """Yield each query with its sources and, by source (empty: the query) and setting, whose word holds."""
    documents = next_document(application, {}, published=None, last_generation=0).queries
    for query in application.spec.queries:
        properties = in_properties(application.spec.spark_conf, query.name)
        names = {source.name for source in query.sources} | properties.sources.keys()
        job = Job(properties.query, {name: properties.of_source(name) for name in sorted(names)})
        origins: dict[tuple[str, str], str] = {}
        for (source, setting), origin in held(documents[query.name], job).items():
            given = job.sources.get(source, {}) if source else job.query
            is_named = origin.value == "property" and setting in given
            origins[source, setting] = given[setting].spelling if is_named else origin.value
        yield query.name, names, origins


def of_driver(told: Told) -> Iterator[str]:
    """Yield a line for each query and source of which the job says something."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for each in told.settings:
        found.setdefault((each.query, each.source), {})[each.setting] = each.origin
    for (query, source), origins in sorted(found.items()):
        yield _line(told.title(query, source), None, origins, asked=True)


def _line(title: str, scope: Scope | None, origins: Mapping[str, str], *, asked: bool) -> str:
    by_word: dict[str, list[str]] = {}
    for setting, word in sorted(origins.items()):
        by_word.setdefault(word, []).append(setting)
    parts = [f"{', '.join(settings)}: {word}" for word, settings in sorted(by_word.items())]
    if scope is not None and len(origins) < len(OF[scope]):
        rest = "default" if asked else "default, unless an option of the job says it (--metrics shows it)"
        parts.append(f"{'all others' if parts else 'all'}: {rest}")
    return f"{title}: {'; '.join(parts)}"
