"""`headgate operator`: serves the applications of a cluster."""

from pathlib import Path
from typing import Annotated, Any

import typer

Text = str | None  # as it was written: the settings parse flags, variables and file alike


def _option(help_: str, metavar: str = "TEXT", panel: str | None = None) -> Any:
    return typer.Option(help=help_, metavar=metavar, rich_help_panel=panel, show_default=False)


PROMETHEUS, LEASE = "Prometheus", "High availability"


def operator(  # noqa: PLR0913, PLR0917  each is an option of the command
    config: Annotated[
        Path | None, _option("Settings file in YAML; default that of HEADGATE_CONFIG.", "FILE")
    ] = None,
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print the settings, each with where it is from, and exit."),
    ] = False,
    namespaces: Annotated[
        Text, _option("Namespaces to serve, separated by commas; default all.", "A,B")
    ] = None,
    default_image: Annotated[
        Text, _option("Image where a resource names none; default none.", "IMAGE")
    ] = None,
    driver_service_account: Annotated[
        Text, _option("Service account of driver pods; default headgate-driver.", "NAME")
    ] = None,
    driver_run_as_user: Annotated[
        Text, _option("User id of drivers and executors, 0: the namespace's; default 185.", "UID")
    ] = None,
    workers: Annotated[Text, _option("Applications worked on at the same time; default 16.", "N")] = None,
    tick: Annotated[Text, _option("Time between two looks at the metrics; default 5s.", "DURATION")] = None,
    resync: Annotated[
        Text, _option("Time between two comparisons with what is there; default 5m.", "DURATION")
    ] = None,
    status_refresh: Annotated[
        Text, _option("How old the numbers in a status get; default 30m.", "DURATION")
    ] = None,
    api_timeout: Annotated[
        Text, _option("Longest wait for an answer of the API server; default 15s.", "DURATION")
    ] = None,
    drain_timeout: Annotated[
        Text, _option("Longest wait at the end for what is running; default 20s.", "DURATION")
    ] = None,
    prometheus_url: Annotated[Text, _option("Prometheus to ask; default none.", "URL", PROMETHEUS)] = None,
    prometheus_bearer_token_file: Annotated[Text, _option("File with a token.", "FILE", PROMETHEUS)] = None,
    prometheus_username: Annotated[
        Text, _option("User for basic authentication.", "NAME", PROMETHEUS)
    ] = None,
    prometheus_password_file: Annotated[Text, _option("File with the password.", "FILE", PROMETHEUS)] = None,
    prometheus_ca_file: Annotated[
        Text, _option("Certificates to trust; default the system's.", "FILE", PROMETHEUS)
    ] = None,
    prometheus_matchers: Annotated[
        Text, _option("Label matchers for every query; default none.", "MATCHERS", PROMETHEUS)
    ] = None,
    prometheus_timeout: Annotated[
        Text, _option("Longest wait for an answer; default 10s.", "DURATION", PROMETHEUS)
    ] = None,
    prometheus_tenant_header: Annotated[
        Text, _option("Header with the namespace of each backlog.query; default none.", "NAME", PROMETHEUS)
    ] = None,
    backlog_queries_per_tick: Annotated[
        Text, _option("Different backlog.query asked in a tick; default 20.", "N", PROMETHEUS)
    ] = None,
    leader_election: Annotated[
        bool | None,
        typer.Option(
            help="Let a Lease decide which replica acts; default yes.",
            show_default=False,
            rich_help_panel=LEASE,
        ),
    ] = None,
    lease_name: Annotated[
        Text, _option("Name of the Lease; default headgate-operator.", "NAME", LEASE)
    ] = None,
    lease_namespace: Annotated[
        Text, _option("Namespace of the Lease; default its own.", "NAME", LEASE)
    ] = None,
    lease_duration: Annotated[
        Text, _option("How long others wait before they take over; default 15s.", "DURATION", LEASE)
    ] = None,
    lease_renew_deadline: Annotated[
        Text, _option("After so long without a renewal the leader ends; default 10s.", "DURATION", LEASE)
    ] = None,
    lease_retry_period: Annotated[
        Text, _option("Time between two tries; default 2s.", "DURATION", LEASE)
    ] = None,
    identity: Annotated[
        Text, _option("Name in the Lease, unlike any other; default made up.", "NAME", LEASE)
    ] = None,
    metrics_bind_address: Annotated[
        Text, _option("Where own metrics are served; default :8080.", "ADDRESS")
    ] = None,
    probe_bind_address: Annotated[Text, _option("Where probes are served; default :8081.", "ADDRESS")] = None,
    log_format: Annotated[Text, _option("json or text; default json.", "FORMAT")] = None,
    log_level: Annotated[Text, _option("debug, info, warning or error; default info.", "LEVEL")] = None,
) -> None:
    """Serve the SparkApplications of a cluster, until SIGTERM.

    Each option can also be given as HEADGATE_… in the environment, or in camelCase in the settings file.
    Outside a cluster the connection is that of kubeconfig. Exit code 0: stopped as asked. 1: it lost its
    lease, or cannot go on; start it again. 2: the settings are refused.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    import os

    from headgate.settings_sources import load_settings

    file, only_print = given.pop("config", None), given.pop("print_settings")
    loaded = load_settings(given, os.environ, file)
    if only_print:
        typer.echo(loaded.render(), nl=False)
        return
    from headgate.handlers.process import run_operator

    raise typer.Exit(run_operator(loaded.settings))
