"""Changes an annotation that several people, and nobody's repository, write to.

Read, change, write, on condition that nobody was there in between; else once more. The operator's own writes of the
status count as somebody, so a conflict is nothing unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.errors import ApiConflict

TRIES: Final = 5


def annotate(
    cluster: Cluster, name: str, annotation: str, text_for: Callable[[ClusterApplication], str | None]
) -> ClusterApplication:
    """Make the annotation what `text_for` says of the application, None removes it; return it as it was before."""
    for tries_left in reversed(range(TRIES)):
        application = ClusterApplication.of(cluster.application(name))
        text = text_for(application)
        if text == application.annotations.get(annotation):
            return application
        version = application.manifest["metadata"]["resourceVersion"]
        try:
            cluster.patch(name, {"metadata": {"resourceVersion": version, "annotations": {annotation: text}}})
        except ApiConflict:
            if not tries_left:
                raise
        else:
            return application
    raise AssertionError("the last try returns or raises")
