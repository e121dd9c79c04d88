"""All checks of a cluster, in the order in which a person reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from headgate.cli.checks import Finding
from headgate.cli.checks.applications import check_application, check_prometheus
from headgate.cli.checks.cluster import check_cluster
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster, Manifest


def of_cluster(cluster: Cluster, listed: Callable[[], Sequence[Manifest]]) -> Iterator[Finding]:
    """Yield what is found of the cluster, and then of the applications that `listed` returns.

    It is called last: what it raises where there is no CRD, has been told by then.
    """
    now = time.time()
    yield from check_cluster(cluster, now)
    applications = [ClusterApplication.of(manifest) for manifest in listed()]
    yield from check_prometheus(applications)
    for application in applications:
        yield from check_application(application, now)
