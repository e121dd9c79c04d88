"""Changes an annotation that several people, and nobody's repository, write to.

Read, change, write, on condition that nobody was there in between; else once more. The operator's own writes of the
status count as somebody, so a conflict is nothing unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.errors import ApiConflict

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
