"""Changes an annotation that several people, and nobody's repository, write to.

Read, change, write, on condition that nobody was there in between; else once more. The operator's own writes of the
status count as somebody, so a conflict is nothing unusual.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Final

from headgate.api.annotations import SourceId
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.errors import ApiConflict, InvalidInputError
from headgate_contract.nearest import did_you_mean


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
    return f"{complaint}{did_you_mean(typed, known) or ';'} it has: {', '.join(sorted(known))}"


TRIES: Final = 5


def annotate(
    cluster: Cluster, name: str, annotation: str, text_for: Callable[[ClusterApplication], str | None]
) -> ClusterApplication:
    """Make the annotation what `text_for` says of the application, None removes it; return it as it was before."""
    for _ in range(TRIES - 1):
        with suppress(ApiConflict):
            return _annotate_once(cluster, name, annotation, text_for)
    return _annotate_once(cluster, name, annotation, text_for)


def _annotate_once(
    cluster: Cluster, name: str, annotation: str, text_for: Callable[[ClusterApplication], str | None]
) -> ClusterApplication:
    application = ClusterApplication(cluster.application(name))
    text = text_for(application)
    if text != application.annotations.get(annotation):
        version = application.manifest["metadata"]["resourceVersion"]
        cluster.patch(name, {"metadata": {"resourceVersion": version, "annotations": {annotation: text}}})
    return application
