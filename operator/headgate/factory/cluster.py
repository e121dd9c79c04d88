"""The operator of a cluster, put together."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from headgate.adapters.address import Address, Located
from headgate.adapters.kubernetes.client import ApiServer, Manifest, connection
from headgate.adapters.kubernetes.events import EventRecorder, Outbox
from headgate.adapters.kubernetes.kubeconfig import DEFAULT_KUBECONFIG, UNREADABLE, kubeconfig_files, sentence
from headgate.adapters.kubernetes.pods import attempt_of, is_ended
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.adapters.kubernetes.writer import FRESH_SECONDS
from headgate.adapters.metrics.driver_poller import DriverPoller
from headgate.adapters.metrics.poller import ChosenPoller
from headgate.adapters.metrics.prometheus.client import PrometheusOptions
from headgate.adapters.metrics.prometheus.poller import PrometheusPoller
from headgate.controller.cluster import Controller
from headgate.controller.reconciliation import CLUSTER_WRITE_POLICY, ReconcileOptions
from headgate.errors import UsageError
from headgate.key import Key
from headgate.metrics import OperatorMetrics
from headgate.reconcile.loop import Outcome
from headgate.settings import Settings
from headgate_contract.listening import DEFAULT_PORT


@dataclass(frozen=True, slots=True)
class ClusterOperator:
    """The operator of a cluster: the loop of every application, and what it needs of the world."""

    api: ApiClient
    """The connection, for whoever watches."""
    cluster: ApiServer
    controller: Controller
    events: Outbox
    """Events that wait to be sent; somebody has to run it."""
    poller: ChosenPoller

    async def close(self) -> None:
        self.poller.close()
        await self.cluster.close()


async def cluster_operator(
    settings: Settings,
    metrics: OperatorMetrics,
    decided: Callable[[Key, Outcome], object],
    refused: Callable[[Key], object],
) -> ClusterOperator:
    """Return the operator that `settings` describe; `decided` is told of reconciles, `refused` of those that cannot
    act.

    Raises UsageError where nothing says which cluster.
    """
    api = await connect()
    cluster = _cluster(api, settings, metrics)
    options = ReconcileOptions(
        drivers=driver_defaults(settings),
        write_policy=replace(
            CLUSTER_WRITE_POLICY, small_changes_seconds=settings.status_refresh.total_seconds()
        ),
        fresh_seconds=fresh_seconds(settings),
    )
    drivers = DriverPoller(lambda key: located(controller.cache.pods(key)))
    asked = prometheus_options(settings)
    prometheus = None if asked is None else PrometheusPoller(asked, queried=metrics.queried)
    poller = ChosenPoller(prometheus, drivers)
    events = Outbox(EventRecorder(cluster, settings.identity))
    controller = Controller(cluster, poller, options, events, decided=decided, refused=refused)
    return ClusterOperator(api, cluster, controller, events, poller)


def driver_defaults(settings: Settings) -> DriverDefaults:
    """Return what drivers get whose resource says nothing about it."""
    return DriverDefaults(
        image=settings.default_image,
        service_account=settings.driver_service_account,
        run_as_user=settings.driver_run_as_user or None,
    )


def fresh_seconds(settings: Settings) -> float:
    """Return how old a decision may be when it is carried out: by then the lease is still this process's own."""
    return min(FRESH_SECONDS, settings.lease_renew_deadline.total_seconds())


async def connected(settings: Settings, metrics: OperatorMetrics) -> ApiServer:
    """Return one more connection, for an event loop of its own."""
    return _cluster(await connect(), settings, metrics)


def _cluster(api: ApiClient, settings: Settings, metrics: OperatorMetrics) -> ApiServer:
    return ApiServer(api, timeout_seconds=settings.api_timeout.total_seconds(), listener=metrics.called)


def prometheus_options(settings: Settings) -> PrometheusOptions | None:
    """Return how Prometheus is asked; `None`: there is none to ask."""
    if settings.prometheus_url is None:
        return None
    return PrometheusOptions(
        url=settings.prometheus_url,
        bearer_token_file=settings.prometheus_bearer_token_file,
        username=settings.prometheus_username,
        password_file=settings.prometheus_password_file,
        ca_file=settings.prometheus_ca_file,
        timeout_seconds=settings.prometheus_timeout.total_seconds(),
        matchers=settings.prometheus_matchers,
        expressions_per_tick=settings.backlog_queries_per_tick,
        tick_seconds=settings.tick.total_seconds(),
        tenant_header=settings.prometheus_tenant_header,
        namespace_label=settings.prometheus_namespace_label,
    )


async def connect() -> ApiClient:
    """Return a connection: that of KUBECONFIG, or of the pod, or of ~/.kube/config, in this order.

    Raises UsageError where there is none.
    """
    configuration = Configuration()
    named = os.environ.get("KUBECONFIG")
    try:
        if named:
            _require_file(named, f"KUBECONFIG is {named}, and there is no such file")
            await load_kube_config(named, client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            try:
                load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            except ConfigException:
                _require_file(DEFAULT_KUBECONFIG, f"there is no {DEFAULT_KUBECONFIG}, and this is not a pod")
                await load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return connection(configuration)
    except (ConfigException, *UNREADABLE) as error:
        what = sentence(error)
        raise UsageError(f"no cluster to connect to: {what}; set KUBECONFIG, or run in a pod") from None


def _require_file(files: str, otherwise: str) -> None:
    """Raise ConfigException where none of the files is there: the client would say what such a file lacks."""
    if not any(file.is_file() for file in kubeconfig_files(files)):
        raise ConfigException(otherwise)


def located(pods: Iterable[Manifest]) -> Located | None:
    """Return where the newest driver that has not ended is; `None` while none has an address."""
    found = [
        Located(attempt, Address(address, DEFAULT_PORT), _lineage(pod, attempt))
        for pod in pods
        if not is_ended(pod)
        and (attempt := attempt_of(pod)) is not None
        and (address := pod.get("status", {}).get("podIP"))
    ]
    return max(found, key=lambda one: one.attempt, default=None)


def _lineage(pod: Manifest, attempt: int) -> str | None:
    owners = pod["metadata"].get("ownerReferences", ())
    return next((f"{owner['uid']}/{attempt}" for owner in owners if owner.get("controller")), None)
