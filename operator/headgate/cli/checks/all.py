"""All checks of a cluster, in the order in which a person reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from headgate.adapters.kubernetes.client import Manifest
from headgate.cli.checks import Finding, Level
from headgate.cli.checks.applications import check_application, check_prometheus
from headgate.cli.checks.cluster import check_cluster
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.errors import ApiNotFound, ApiRefused


def of_cluster(cluster: Cluster, listed: Callable[[], Sequence[Manifest]]) -> Iterator[Finding]:
    """Yield what is found of the cluster, and then of the applications that `listed` returns.

    Raises `ApiUnavailable` where the API server does not answer.
    """
    now = time.time()
    yield from check_cluster(cluster, now)
    try:
        applications = [ClusterApplication.of(manifest) for manifest in listed()]
    except (ApiNotFound, ApiRefused) as error:
        remedy = "install the CRD where there is none; else give a name that is there, or -n"
        yield Finding("applications", "cluster", Level.PROBLEM, str(error), remedy)
        return
    yield from check_prometheus(applications)
    for application in applications:
        yield from check_application(application, now)
