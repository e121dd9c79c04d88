"""What is found of a cluster before any application is looked at: API server, CRD, operator, its lease, its rights.

The operator is found by the labels of the chart. What the caller may not see is told as unknown, with the right that
is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from headgate import __version__
from headgate.adapters.kubernetes.client import APPLICATIONS, DEPLOYMENTS, LEASES, Manifest
from headgate.api.application import API_VERSION
from headgate.cli.checks import Finding, Level
from headgate.cli.checks.applications import check_application, check_prometheus
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.errors import ApiNotFound, ApiRefused, HeadgateError
from headgate.handlers.definition import difference, listed
from headgate.handlers.rights import not_granted, rights_to
from headgate.key import key_of
from headgate.reconcile.times import duration_text

LEAST_KUBERNETES: Final = (1, 29)
"""As in the chart; a test compares the two."""
PART_OF: Final = "app.kubernetes.io/part-of=headgate"
VERSION: Final = "app.kubernetes.io/version"
INSTALL_CRD: Final = "install this version's: headgate crd | kubectl apply --server-side -f -"
LEASES_LATE: Final = 3
"""By how many of its own durations a lease may be old before nobody can be said to hold it."""


def of_cluster(cluster: Cluster, listed: Callable[[], Sequence[Manifest]]) -> Iterator[Finding]:
    """Yield what is found of the cluster, and then of the applications that `listed` returns.

    Raises `ApiUnavailable` where the API server does not answer.
    """
    now = time.time()
    yield from check_cluster(cluster, now)
    try:
        applications = [ClusterApplication(manifest) for manifest in listed()]
    except (ApiNotFound, ApiRefused) as error:
        remedy = "install the CRD where there is none; else give a name that is there, or -n"
        yield Finding("applications", "cluster", Level.PROBLEM, str(error), remedy)
        return
    yield from check_prometheus(applications)
    for application in applications:
        yield from check_application(application, now)


def check_cluster(cluster: Cluster, now: float) -> Iterator[Finding]:
    """Yield what is found of the cluster. `now` is Unix time.

    Raises `ApiUnavailable` where the API server does not answer at all: nothing else could be said then.
    """
    yield from _api_server(cluster)
    yield from _may_see("crd", lambda: _definition(cluster))
    yield from _may_see("operator", lambda: _operators(cluster, now))


def _may_see(check: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except ApiRefused as error:
        remedy = "have somebody look who may, or be granted that right"
        yield Finding(check, "cluster", Level.UNKNOWN, f"it may not be looked at: {error}", remedy)


def _api_server(cluster: Cluster) -> Iterator[Finding]:
    version = cluster.ask(lambda api: api.version())
    numbers = tuple(
        int("".join(filter(str.isdigit, str(version.get(part, ""))))[:6] or 0) for part in ("major", "minor")
    )
    named = version.get("gitVersion", "of no known version")
    if numbers < LEAST_KUBERNETES:
        least = ".".join(map(str, LEAST_KUBERNETES))
        says = f"the API server is {named}, and the CRD needs {least}"
        yield Finding("api-server", "cluster", Level.PROBLEM, says, "upgrade Kubernetes")
    else:
        yield Finding("api-server", "cluster", Level.OK, f"the API server answers, {named}")


def _definition(cluster: Cluster) -> Iterator[Finding]:
    try:
        found = difference(cluster.ask(lambda api: api.describe(APPLICATIONS)))
    except ApiNotFound:
        found = None
    if found is None:
        says = f"the cluster has no SparkApplication of {API_VERSION}"
        yield Finding(
            "crd", "cluster", Level.PROBLEM, says, "install the chart, or headgate crd | kubectl apply -f -"
        )
    elif found.lacking:
        says = f"the CRD is older than this command ({__version__}): it lacks {listed(found.lacking)}"
        is_in_the_way = any(path.startswith("status.") for path in found.lacking)
        level = Level.PROBLEM if is_in_the_way else Level.WARNING
        yield Finding("crd", "cluster", level, says, INSTALL_CRD)
    elif found.unheard_of:
        says = f"the CRD is newer than this command ({__version__}): it has {listed(found.unheard_of)}"
        yield Finding("crd", "cluster", Level.WARNING, says, "update this command")
    else:
        yield Finding("crd", "cluster", Level.OK, f"the CRD is that of this version, {__version__}")


def _operators(cluster: Cluster, now: float) -> Iterator[Finding]:
    deployments = cluster.ask(lambda api: api.list(DEPLOYMENTS, labels=PART_OF))
    if not deployments:
        yield Finding(
            "operator",
            "cluster",
            Level.WARNING,
            f"there is no Deployment with the label {PART_OF}",
            "install the chart; nothing is to be done where the operator runs in another way",
        )
    for deployment in deployments:
        yield from _deployment(deployment)
        yield from _may_see("lease", lambda: _lease(cluster, deployment, now))  # noqa: B023  it is called at once
        yield from _may_see("rights", lambda: _rights(cluster, deployment))  # noqa: B023


def _deployment(deployment: Manifest) -> Iterator[Finding]:
    of, status = str(key_of(deployment)), deployment.get("status") or {}
    ready, wanted = status.get("readyReplicas", 0), (deployment["spec"].get("replicas", 1))
    namespace, _, name = of.partition("/")
    if ready == 0:
        says = f"no replica of the operator is ready, of {wanted}"
        remedy = f"read its log: kubectl logs -n {namespace} deploy/{name}"
        yield Finding("operator", of, Level.PROBLEM, says, remedy)
    elif ready < wanted:
        says = f"{ready} of {wanted} replicas are ready"
        remedy = f"see what the others wait for: kubectl describe pods -n {namespace}"
        yield Finding("operator", of, Level.WARNING, says, remedy)
    else:
        yield Finding("operator", of, Level.OK, f"{ready} of {wanted} replicas are ready")
    version = (deployment["metadata"].get("labels") or {}).get(VERSION)
    if version is not None and version != __version__:
        says = f"the operator is of version {version}, this command of {__version__}"
        yield Finding("operator", of, Level.WARNING, says, "use the command of the operator's version")


def _lease(cluster: Cluster, deployment: Manifest, now: float) -> Iterator[Finding]:
    try:
        spec = cluster.ask(lambda api: api.get(LEASES, key_of(deployment)))["spec"]
    except HeadgateError as error:
        if isinstance(error, ApiRefused):
            raise
        says, remedy = (
            f"its lease cannot be read: {error}",
            "nothing is to be done where it runs without an election",
        )
        yield Finding("lease", str(key_of(deployment)), Level.UNKNOWN, says, remedy)
        return
    holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    late = float("inf") if renewed is None else now - datetime.fromisoformat(renewed).timestamp()
    if not holder or late > LEASES_LATE * float(spec.get("leaseDurationSeconds", 15)):
        since = (
            "" if renewed is None else f", last by {holder or 'somebody'} {duration_text(round(late))} ago"
        )
        says = f"no replica leads: the lease was not renewed{since}"
        remedy = "see that a replica is ready, and that clocks agree"
        yield Finding("lease", str(key_of(deployment)), Level.PROBLEM, says, remedy)
    else:
        yield Finding("lease", str(key_of(deployment)), Level.OK, f"{holder} leads")


def _rights(cluster: Cluster, deployment: Manifest) -> Iterator[Finding]:
    """Yield whether the operator may do its work where the caller is."""
    pod = deployment["spec"]["template"]["spec"]
    account = pod.get("serviceAccountName", "default")
    user = f"system:serviceaccount:{deployment['metadata']['namespace']}:{account}"
    missing = cluster.ask(lambda api: not_granted(api, rights_to(cluster.namespace), user))
    of = str(key_of(deployment))
    if missing:
        says = (
            f"{account} may not {listed([str(right) for right in missing])} in namespace {cluster.namespace}"
        )
        remedy = "let the chart serve that namespace (namespaces), or bind its Role there"
        yield Finding("rights", of, Level.PROBLEM, says, remedy)
    else:
        says = f"{account} has all rights that it needs in namespace {cluster.namespace}"
        yield Finding("rights", of, Level.OK, says)
