"""From what a person typed to queries and sources that an application lists."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from headgate.api.annotations import SourceId
from headgate.cli.cluster.application import ClusterApplication
from headgate.errors import InvalidInputError


def named_sources(
    application: ClusterApplication, typed: Sequence[str], also: Collection[SourceId] = ()
) -> frozenset[SourceId]:
    """Return the sources that `typed` names as `query/source`; those in `also` need not be listed any more.

    Raises InvalidInputError for one that the resource does not list, with those that it does.
    """
    known = {f"{query}/{source}": (query, source) for query, source in (*application.sources, *also)}
    for name in typed:
        if name not in known:
            raise InvalidInputError(_unknown(application, "source", name, known))
    return frozenset(known[name] for name in typed)


def named_query(application: ClusterApplication, typed: str) -> str:
    """Return `typed` if the resource lists such a query; else raise InvalidInputError with those that it does."""
    if typed not in application.queries:
        raise InvalidInputError(_unknown(application, "query", typed, application.queries))
    return typed


def _unknown(application: ClusterApplication, kind: str, typed: str, known: Collection[str]) -> str:
    complaint = f"{application.name} lists no {kind} {typed}"
    if not known:
        return f"{complaint}, nor any other; list it under spec.queries to govern it"
    close = difflib.get_close_matches(typed, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{complaint}{hint or ';'} it has: {', '.join(sorted(known))}"
