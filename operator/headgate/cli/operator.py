"""`headgate operator`: serves the applications of a cluster."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

PROMETHEUS, LEASE = "Prometheus", "High availability"
OPTIONS: tuple[tuple[str, ...], ...] = (
    ("namespaces", "A,B", "Namespaces to serve, separated by commas; default all."),
    ("default_image", "IMAGE", "Image where a resource names none; default none."),
    ("driver_service_account", "NAME", "Service account of driver pods; default headgate-driver."),
    ("driver_run_as_user", "UID", "User id of drivers and executors, 0: the namespace's; default 185."),
    ("workers", "N", "Applications reconciled at the same time; default 16."),
    ("tick", "DURATION", "Time between two looks at the metrics; default 5s."),
    ("resync", "DURATION", "Time between two comparisons with a listing; default 5m."),
    ("status_refresh", "DURATION", "How old the numbers in a status get; default 30m."),
    ("api_timeout", "DURATION", "Longest wait for an answer of the API server; default 15s."),
    ("drain_timeout", "DURATION", "Longest wait at the end for running reconciles; default 20s."),
    ("prometheus_url", "URL", "Prometheus to ask; default none.", PROMETHEUS),
    ("prometheus_bearer_token_file", "FILE", "File with a token.", PROMETHEUS),
    ("prometheus_username", "NAME", "User for basic authentication.", PROMETHEUS),
    ("prometheus_password_file", "FILE", "File with the password.", PROMETHEUS),
    ("prometheus_ca_file", "FILE", "Certificates to trust; default the system's.", PROMETHEUS),
    ("prometheus_matchers", "MATCHERS", "Label matchers for every query; default none.", PROMETHEUS),
    ("prometheus_timeout", "DURATION", "Longest wait for an answer; default 10s.", PROMETHEUS),
    (
        "prometheus_tenant_header",
        "NAME",
        "Header with the namespace of each backlog.query; default none.",
        PROMETHEUS,
    ),
    (
        "prometheus_namespace_label",
        "LABEL",
        "Label that keeps each backlog.query to its namespace; default none.",
        PROMETHEUS,
    ),
    ("backlog_queries_per_tick", "N", "Different backlog.query asked in a tick; default 20.", PROMETHEUS),
    ("leader_election", "", "Let a Lease decide which replica acts; default yes.", LEASE),
    ("lease_name", "NAME", "Name of the Lease; default headgate-operator.", LEASE),
    ("lease_namespace", "NAME", "Namespace of the Lease; default its own.", LEASE),
    ("lease_duration", "DURATION", "How long others wait before they take over; default 15s.", LEASE),
    (
        "lease_renew_deadline",
        "DURATION",
        "How long a leader goes on without a renewal; default 10s.",
        LEASE,
    ),
    ("lease_retry_period", "DURATION", "Time between two tries; default 2s.", LEASE),
    ("identity", "NAME", "Unique name of this process in the Lease; default a random one.", LEASE),
    ("metrics_bind_address", "ADDRESS", "Where own metrics are served; default :8080."),
    ("probe_bind_address", "ADDRESS", "Where probes are served; default :8081."),
    ("log_format", "FORMAT", "json or text; default json."),
    ("log_level", "LEVEL", "debug, info, warning or error; default info."),
)
"""Of each setting its name, what stands for its value (empty: it is a switch), its help, and the panel that it is in.

A value is passed on as it was written: the settings parse flags, variables and file alike.
"""


def operator(**options: Any) -> None:
    """Serve the SparkApplications of a cluster, until SIGTERM.

    Each option can also be given as HEADGATE_… in the environment, or in camelCase in the settings file.
    It connects by KUBECONFIG, else as its own pod, else by ~/.kube/config. Exit code 0: stopped as asked. 1: it
    lost its lease, or cannot go on; start it again. 2: the settings are refused, or there is no cluster.
    """
    import os

    from headgate.settings_sources import load_settings

    given = {name: value for name, value in options.items() if value is not None}
    file, only_print = given.pop("config", None), given.pop("print_settings")
    loaded = load_settings(given, os.environ, file)
    if only_print:
        typer.echo(loaded.render(), nl=False)
        return
    from headgate.handlers.process import run_operator

    raise typer.Exit(run_operator(loaded.settings))


def _parameters() -> Iterator[inspect.Parameter]:
    def option(
        name: str, kind: Any, help_: str, *flags: str, default: Any = None, **more: Any
    ) -> inspect.Parameter:
        annotation = Annotated[kind, typer.Option(*flags, help=help_, show_default=False, **more)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    file = "Settings file in YAML; default that of HEADGATE_CONFIG."
    yield option("config", Path | None, file, metavar="FILE")
    only = "Print the settings, each with where it is from, and exit."
    yield option("print_settings", bool, only, "--print-settings", default=False)
    for name, metavar, help_, *panel in OPTIONS:
        more = {"metavar": metavar} if metavar else {}
        yield option(
            name,
            str | None if metavar else bool | None,
            help_,
            rich_help_panel=next(iter(panel), None),
            **more,
        )


_SIGNATURE = inspect.Signature(list(_parameters()))
operator.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
operator.__annotations__ = {each.name: each.annotation for each in _SIGNATURE.parameters.values()}
