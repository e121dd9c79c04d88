"""What can be set about the operator itself. What can be set about an application is in the resource.

Read once, at the start: a process whose settings change under it can be in states that nobody has tested, and a new
pod is cheap. `settings_sources.py` brings the values together from flags, environment and a file.

The docstring under a setting is its description in `docs/operations.md`, so it is written once. A Service called
`headgate-metrics` makes Kubernetes set `HEADGATE_METRICS_PORT` in every pod of the namespace; so no setting is called
like that, and addresses are `…_bind_address`.
"""

import os
import re
import secrets
import socket
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Le
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel

from headgate.api.duration import Duration, format_duration

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds who it is."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TEXT = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`"""
_MATCHER = rf"""\s*(?:[a-zA-Z_][a-zA-Z0-9_]*|{_TEXT})\s*(?:=~|!~|!=|=)\s*(?:{_TEXT})\s*"""
_MATCHERS = re.compile(rf"(?:{_MATCHER}(?:,{_MATCHER})*,?\s*)?", re.DOTALL)
_ADDRESS = re.compile(r"(?P<host>.*):(?P<port>[0-9]{1,5})")


class LogFormat(StrEnum):
    """How a line of the log is written."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _names(value: Any) -> Any:
    """Take `a, b` for a list, as a flag or a variable has to write it."""
    if isinstance(value, str):
        return tuple(name for part in value.split(",") if (name := part.strip()))
    return value


def _namespace(name: str) -> str:
    if not _LABEL.fullmatch(name):
        raise ValueError(f"{name!r} is not a namespace: lower-case letters, digits and dashes, at most 63")
    return name


def _url(text: str) -> str:
    if not re.match(r"https?://[^/]", text):
        raise ValueError("must be a URL that starts with http:// or https://")
    return text.rstrip("/")


def _matchers(text: str) -> str:
    if not _MATCHERS.fullmatch(text):
        raise ValueError(
            f'must be label matchers without braces, as cluster="a", separated by commas, not {text!r}'
        )
    return text


def _address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(
            "must be an address and a port, as 127.0.0.1:8080 or [::1]:8080, or :8080 for every address"
        )
    return text


def address_parts(address: str) -> tuple[str, int]:
    """Return host and port of a bind address; the host of `:8080` is empty, which means every address."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _at_least(least: timedelta) -> AfterValidator:
    def check(value: timedelta) -> timedelta:
        if value < least:
            raise ValueError(f"must be at least {format_duration(least)}, not {format_duration(value)}")
        return value

    return AfterValidator(check)


def _own_namespace() -> str:
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _own_identity() -> str:
    """Return a name that no other process has: two of one name would both hold the lease."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


Namespace = Annotated[str, AfterValidator(_namespace)]
Namespaces = Annotated[tuple[Namespace, ...], BeforeValidator(_names)]
Url = Annotated[str, AfterValidator(_url)]
BindAddress = Annotated[str, AfterValidator(_address)]
RunAs = Annotated[int, Ge(0), Le(2**31 - 1)]
Timeout = Annotated[Duration, _at_least(timedelta(milliseconds=100))]


class Settings(BaseModel):
    """The settings of one operator process; durations are written `5s`, `2m`, `1h30m`."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=False,
        extra="forbid",
        frozen=True,
        validate_default=True,
        use_attribute_docstrings=True,
    )

    namespaces: Namespaces = ()
    """Namespaces to serve, separated by commas. Default: all of the cluster, which needs a ClusterRole."""
    default_image: str | None = None
    """Image of drivers and executors whose resource names none. Default: a resource has to name one."""
    driver_service_account: Namespace = "headgate-driver"
    """Service account of driver pods, in the namespace of the application: it must be allowed to manage
    executor pods there. Default `headgate-driver`, which the chart makes."""
    driver_run_as_user: RunAs = 185
    """User id of drivers and executors, and group of their volumes, from 1 on. With `0` pods ask for no user, and the
    namespace gives one: OpenShift's `restricted` SCC admits no other. A pod template overrides this. Default 185, as
    in Spark's own images."""
    workers: Annotated[int, Ge(1), Le(256)] = 16
    """Applications that are reconciled at the same time. A reconcile waits for the API server nearly all of its time,
    so more workers mean more requests in flight, not more processors. Namespaces take turns, and from four workers on
    one namespace leaves a quarter of them to the others. Default 16."""
    tick: Timeout = timedelta(seconds=5)
    """Time between two looks at the metrics. Default 5s: a third of the usual scrape interval, so that
    little is added to it."""
    resync: Annotated[Duration, _at_least(timedelta(seconds=1))] = timedelta(minutes=5)
    """Time between two comparisons of the watches with a listing, which find what a watch has missed. Only metadata
    is listed. Default 5m."""
    status_refresh: Timeout = timedelta(minutes=30)
    """How old the numbers in a status get while none has moved by more than a factor of two. An application may get
    up to half of it more or less, so that they take turns. Verdicts, states and conditions are written at once. What
    comes and goes with the pace of a job (`Throttled`, `Aligned`, the voter of a backlog, sources out of reach) is
    written six times an hour while it goes on changing. Default 30m: two writes an hour for a quiet application."""
    api_timeout: Timeout = timedelta(seconds=15)
    """Longest wait for one answer of the API server. Default 15s."""
    drain_timeout: Duration = timedelta(seconds=20)
    """Longest wait, on SIGTERM, for running reconciles. Default 20s, so that the process ends within the 30s that
    Kubernetes gives a pod."""
    prometheus_url: Url | None = None
    """Prometheus to ask, as `http://prometheus.monitoring:9090`. Default: none, and only applications with
    `metrics.source: Driver` have metrics."""
    prometheus_bearer_token_file: FilePath | None = None
    """File with a token for Prometheus, read again for each tick, so it may be rotated. Default: none."""
    prometheus_username: str | None = None
    """User for basic authentication. Default: none."""
    prometheus_password_file: FilePath | None = None
    """File with the password for basic authentication. Default: none."""
    prometheus_ca_file: FilePath | None = None
    """Certificates that Prometheus is trusted by. Default: those of the system."""
    prometheus_matchers: Annotated[str, AfterValidator(_matchers)] = ""
    """Label matchers that are added to every query of the operator, as `cluster="a"`: for a Prometheus that knows
    several clusters, and against foreign series with the name of a driver's. Default: none; if the chart makes the
    PodMonitor, its job, which matchers of your own should repeat."""
    prometheus_timeout: Timeout = timedelta(seconds=10)
    """Longest wait for one answer of Prometheus. Default 10s."""
    prometheus_tenant_header: Annotated[str, Field(pattern=r"^([A-Za-z][A-Za-z0-9-]{0,63})?$")] = ""
    """Header that carries the namespace of the resource with each `backlog.query`, as `X-Scope-OrgID`: for a
    server or a proxy that keeps tenants apart by it. The operator's own queries go without it. Default: none, and an
    expression reads whatever the operator may read."""
    prometheus_namespace_label: Annotated[str, Field(pattern=r"^([a-zA-Z_][a-zA-Z0-9_]{0,63})?$")] = ""
    """Label that keeps each `backlog.query` to the series of its own namespace, as `namespace`: each selector of an
    expression gets it as a matcher. An expression that cannot be kept to them is not asked, and its application says
    so. Default: none, since what measures a lag often runs in another namespace, and an expression reads whatever the
    operator may read."""
    backlog_queries_per_tick: Annotated[int, Ge(1), Le(1000)] = 20
    """Most different `backlog.query` that are asked in one tick, shared equally by all namespaces. Each is asked
    within five minutes, so there may be 1,200 with the defaults. Those beyond are not asked, and their applications
    say so. Default 20."""
    leader_election: bool = True
    """Whether a Lease decides which replica acts. Without it there must be one process only. Default true."""
    lease_name: Namespace = "headgate-operator"
    """Name of the Lease. Default `headgate-operator`."""
    lease_namespace: Namespace = Field(default_factory=_own_namespace)
    """Namespace of the Lease. Default: that of the operator's pod; outside a cluster, `default`."""
    lease_duration: Annotated[Duration, _at_least(timedelta(seconds=1))] = timedelta(seconds=15)
    """How long others wait after the last renewal before they take over. Default 15s."""
    lease_renew_deadline: Timeout = timedelta(seconds=10)
    """After so long without a renewal the leader ends itself. Shorter than `leaseDuration`, so that it is
    gone before another one acts. Default 10s."""
    lease_retry_period: Timeout = timedelta(seconds=2)
    """Time between two tries to renew the lease or to take it. Default 2s."""
    identity: Annotated[str, Field(min_length=1, max_length=253)] = Field(default_factory=_own_identity)
    """Name of this process in the Lease, unlike that of any other. The name of the pod is a good one: after a crash
    its container takes its own lease again without a wait. Default: host name, pid and random digits."""
    metrics_bind_address: BindAddress = ":8080"
    """Where the operator's own metrics are served, at `/metrics`. Port 0 is any free one. Default `:8080`."""
    probe_bind_address: BindAddress = ":8081"
    """Where the probes `/healthz` and `/readyz` are served. Port 0 is any free one. Default `:8081`."""
    log_format: LogFormat = LogFormat.JSON
    """`json`, one object a line, or `text`. Default `json`."""
    log_level: LogLevel = LogLevel.INFO
    """`debug`, `info`, `warning` or `error`. Default `info`: one line for each decision."""

    @field_validator("prometheus_username")
    @classmethod
    def _one_way_to_authenticate(cls, username: str | None, others: ValidationInfo) -> str | None:
        if username and others.data.get("prometheus_bearer_token_file"):
            raise ValueError("cannot be given with a bearer token; give one of the two")
        return username

    @field_validator("prometheus_password_file")
    @classmethod
    def _a_password_belongs_to_a_user(cls, file: Path | None, others: ValidationInfo) -> Path | None:
        if file and not others.data.get("prometheus_username", True):
            raise ValueError("is for basic authentication; give the user name too")
        return file

    @field_validator("lease_renew_deadline")
    @classmethod
    def _ends_before_others_act(cls, deadline: timedelta, others: ValidationInfo) -> timedelta:
        if (duration := others.data.get("lease_duration")) and deadline >= duration:
            raise ValueError(f"must be shorter than the lease's duration of {duration.total_seconds():g}s")
        return deadline

    @field_validator("lease_retry_period")
    @classmethod
    def _tries_more_than_once(cls, period: timedelta, others: ValidationInfo) -> timedelta:
        if (deadline := others.data.get("lease_renew_deadline")) and period * 2 > deadline:
            raise ValueError(
                f"must fit twice into the renew deadline of {deadline.total_seconds():g}s, "
                "or one lost request ends the leader"
            )
        return period
