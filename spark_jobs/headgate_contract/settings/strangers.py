"""Names in properties that nothing of the job has: a setting that is said of nobody does nothing, and nobody tells.

It cannot be refused when a query starts: the one that is meant may start later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from headgate_contract.nearest import did_you_mean
from headgate_contract.settings.said import Given, Origin, source_and_setting
from headgate_contract.settings.table import BY_NAME, OF, PROPERTY, QUERIES, SOURCES, Scope


def named_query(key: str) -> str | None:
    """Return the query that a property is said of; `None`: of all, or it is none of ours."""
    if not key.startswith(PROPERTY + QUERIES):
        return None
    rest = key[len(PROPERTY + QUERIES) :]
    query, dot, behind = rest.partition(f".{SOURCES}")
    if dot and source_and_setting(SOURCES + behind) is not None:
        return query
    ends = [name for name in BY_NAME if rest.endswith(f".{name}")]
    own = [each.name for each in OF[Scope.QUERY] if each.name in ends]
    longest = max(own or ends, key=len, default=None)
    return rest[: -len(longest) - 1] if longest else rest.partition(".")[0]


def of_queries(properties: Mapping[str, str], queries: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each property of a query that is not one of `queries`."""
    for key in sorted(properties):
        query = named_query(key)
        if query is not None and query not in queries and not any(_begins(key, known) for known in queries):
            yield f"property {key}: the job has started no query {query}{_meant(query, queries)}"


def of_sources(query: str, said: Mapping[str, Given], sources: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each property of a source that is none of `sources`; `said` has what is said of each."""
    for name, given in said.items():
        for each in given.values():
            if name not in sources and each.origin is Origin.PROPERTY:
                yield f"{each.spelling}: query {query} has no source {name}{_meant(name, sources)}"


def _begins(key: str, query: str) -> bool:
    """Return whether it was read, and refused, as one of this query's: a setting that there is not."""
    return key.startswith(f"{PROPERTY}{QUERIES}{query}.") and not any(key.endswith(f".{n}") for n in BY_NAME)


def _meant(name: str, known: Collection[str]) -> str:
    others = f"; it has {', '.join(sorted(known)[:10])}" if known else ""
    return did_you_mean(name, known, 0.5) or others
