"""What is found of a cluster before any application is looked at: API server, CRD, operator, its lease, its rights.

The operator is found by the labels of the chart. What the caller may not see is told as unknown, with the right that
is missing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from headgate import __version__
from headgate.adapters.kubernetes.client import APPLICATIONS, DEPLOYMENTS, LEASES, Manifest
from headgate.api.application import API_VERSION
from headgate.api.wording import listed
from headgate.cli.checks import CheckResult, Level, Said, found
from headgate.cli.checks.applications import check_application, check_prometheus
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.errors import ApiNotFound, ApiRefused, HeadgateError
from headgate.handlers.definition import INSTALL_CRD, difference, shown
from headgate.handlers.rights import not_granted, rights_to
from headgate.key import key_of
from headgate.reconcile.times import duration_text

LEAST_KUBERNETES: Final = (1, 29)
"""As in the chart; a test compares the two."""
PART_OF: Final = "app.kubernetes.io/part-of=headgate"
VERSION: Final = "app.kubernetes.io/version"
LEASES_LATE: Final = 3
"""By how many of its own durations a lease may be old before nobody can be said to hold it."""


def of_cluster(cluster: Cluster, listed: Callable[[], Sequence[Manifest]]) -> Iterator[CheckResult]:
    """Yield what is found of the cluster, and then of the applications that `listed` returns.

    Raises `ApiUnavailable` where the API server does not answer.
    """
    now = time.time()
    yield from check_cluster(cluster, now)
    try:
        applications = [ClusterApplication(manifest) for manifest in listed()]
    except (ApiNotFound, ApiRefused) as error:
        remedy = "install the CRD where there is none; else give a name that is there, or -n"
        yield CheckResult("applications", "cluster", Level.PROBLEM, str(error), remedy)
        return
    yield from check_prometheus(applications)
    for application in applications:
        yield from check_application(application, now)


def check_cluster(cluster: Cluster, now: float) -> Iterator[CheckResult]:
    """Yield what is found of the cluster. `now` is Unix time.

    Raises `ApiUnavailable` where the API server does not answer at all: nothing else could be said then.
    """
    yield from found("api-server", "cluster", _api_server(cluster))
    yield from found("crd", "cluster", _may_see(_definition(cluster)))
    try:
        operators = cluster.ask(lambda api: api.list(DEPLOYMENTS, labels=PART_OF))
    except ApiRefused as error:
        yield CheckResult("operator", "cluster", *_not_seen(error))
        return
    if not operators:
        says = f"there is no Deployment with the label {PART_OF}"
        remedy = "install the chart; nothing is to be done where the operator runs in another way"
        yield CheckResult("operator", "cluster", Level.WARNING, says, remedy)
    for operator in operators:
        of = str(key_of(operator))
        yield from found("operator", of, _deployment(operator))
        yield from found("lease", of, _may_see(_lease(cluster, operator, now)))
        yield from found("rights", of, _may_see(_rights(cluster, operator)))


def _may_see(said: Said) -> Said:
    try:
        yield from said
    except ApiRefused as error:
        yield _not_seen(error)


def _not_seen(error: ApiRefused) -> tuple[Level, str, str]:
    remedy = "have somebody look who may, or be granted that right"
    return Level.UNKNOWN, f"it may not be looked at: {error}", remedy


def _api_server(cluster: Cluster) -> Said:
    version = cluster.ask(lambda api: api.version())
    numbers = tuple(
        int("".join(filter(str.isdigit, str(version.get(part, ""))))[:6] or 0) for part in ("major", "minor")
    )
    named = version.get("gitVersion", "of no known version")
    if numbers < LEAST_KUBERNETES:
        least = ".".join(map(str, LEAST_KUBERNETES))
        yield Level.PROBLEM, f"the API server is {named}, and the CRD needs {least}", "upgrade Kubernetes"
    else:
        yield Level.OK, f"the API server answers, {named}"


def _definition(cluster: Cluster) -> Said:
    try:
        differs = difference(cluster.ask(lambda api: api.describe(APPLICATIONS)))
    except ApiNotFound:
        differs = None
    if differs is None:
        says = f"the cluster has no SparkApplication of {API_VERSION}"
        yield Level.PROBLEM, says, "install the chart, or headgate crd | kubectl apply -f -"
    elif differs.lacking:
        says = f"the CRD is older than this command ({__version__}): it lacks {shown(differs.lacking)}"
        yield Level.PROBLEM if differs.in_the_way(__version__) else Level.WARNING, says, INSTALL_CRD
    elif differs.unheard_of:
        says = f"the CRD is newer than this command ({__version__}): it has {shown(differs.unheard_of)}"
        yield Level.WARNING, says, "update this command"
    else:
        yield Level.OK, f"the CRD is that of this version, {__version__}"


def _deployment(deployment: Manifest) -> Said:
    namespace, name = key_of(deployment)
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    ready = status.get("readyReplicas", 0)
    if ready == 0:
        remedy = f"read its log: kubectl logs -n {namespace} deploy/{name}"
        yield Level.PROBLEM, f"no replica of the operator is ready, of {wanted}", remedy
    elif ready < wanted:
        remedy = f"see what the others wait for: kubectl describe pods -n {namespace}"
        yield Level.WARNING, f"{ready} of {wanted} replicas are ready", remedy
    else:
        yield Level.OK, f"{ready} of {wanted} replicas are ready"
    version = (deployment["metadata"].get("labels") or {}).get(VERSION)
    if version is not None and version != __version__:
        says = f"the operator is of version {version}, this command of {__version__}"
        yield Level.WARNING, says, "use the command of the operator's version"


def _lease(cluster: Cluster, deployment: Manifest, now: float) -> Said:
    try:
        spec = cluster.ask(lambda api: api.get(LEASES, key_of(deployment)))["spec"]
    except ApiRefused:
        raise
    except HeadgateError as error:
        remedy = "nothing is to be done where it runs without an election"
        yield Level.UNKNOWN, f"its lease cannot be read: {error}", remedy
        return
    holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    late = float("inf") if renewed is None else now - datetime.fromisoformat(renewed).timestamp()
    if not holder or late > LEASES_LATE * float(spec.get("leaseDurationSeconds", 15)):
        since = (
            "" if renewed is None else f", last by {holder or 'somebody'} {duration_text(round(late))} ago"
        )
        remedy = "see that a replica is ready, and that clocks agree"
        yield Level.PROBLEM, f"no replica leads: the lease was not renewed{since}", remedy
    else:
        yield Level.OK, f"{holder} leads"


def _rights(cluster: Cluster, deployment: Manifest) -> Said:
    """Yield whether the operator may do its work where the caller is."""
    account = deployment["spec"]["template"]["spec"].get("serviceAccountName", "default")
    user = f"system:serviceaccount:{deployment['metadata']['namespace']}:{account}"
    missing = cluster.ask(lambda api: not_granted(api, rights_to(cluster.namespace), user))
    if missing:
        what = listed([str(right) for right in missing])
        remedy = "let the chart serve that namespace (namespaces), or bind its Role there"
        yield Level.PROBLEM, f"{account} may not {what} in namespace {cluster.namespace}", remedy
    else:
        yield Level.OK, f"{account} has all rights that it needs in namespace {cluster.namespace}"
