"""`headgate status`: how an application in a cluster is doing, or all of a namespace."""

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.cluster.options import AllNamespaces, Context, Kubeconfig, Namespace, Where

if TYPE_CHECKING:
    from headgate.adapters.kubernetes.client import Manifest
    from headgate.cli.cluster.application import ClusterApplication
    from headgate.cli.cluster.client import Cluster


def status(  # noqa: PLR0913, PLR0917  each is an option of the command
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the application; without it, all of them.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON: the object, or a list of them.")
    ] = False,
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show an application of a cluster in full, or one line for each of them, worst first.

    Of one application it shows state, conditions and the last Events; for each query the verdict, interval, grant,
    rate and estimate; for each source its lag, its votes and what holds it; and whose word holds for the settings
    that the resource gives, in fields or in properties. A dash is a value that nobody knows.

    Exit code 0: shown. 1: there is no such application, or the cluster did not answer. 2: a bad option or kubeconfig.
    """
    with Where(namespace, context, kubeconfig).connect() as cluster:
        if name is None:
            _show_all(cluster, everywhere=all_namespaces, as_json=as_json)
        else:
            _show(cluster, name, as_json=as_json)


def _show(cluster: "Cluster", name: str, *, as_json: bool) -> None:
    import time

    from headgate.cli.cluster.application import ClusterApplication
    from headgate.cli.terminal import print_json, print_lines
    from headgate.cli.view.application import describe
    from headgate.errors import HeadgateError

    application = ClusterApplication(cluster.application(name))
    if as_json:
        print_json(application.manifest)
        return
    events: list[Manifest] | str
    try:
        events = cluster.events(application.manifest)
    except HeadgateError as error:
        events = f"not shown: {error}"
    print_lines(describe(application, events, time.time(), _holding(cluster, application)))


def _holding(cluster: "Cluster", application: "ClusterApplication") -> list[str]:
    """Return whose word holds as far as the resource tells, and who knows the rest; none for one that is refused."""
    from headgate.cli.holding import of_resource

    resource, _ = cluster.validated(application.manifest)
    if resource is None or not resource.spec.queries:
        return []
    rest = (
        "any other: an option of the job, which holds against a property, or the default; "
        f"headgate explain app/{application.name} --metrics URL asks the driver"
    )
    return [*of_resource(resource, is_brief=True), rest]


def _show_all(cluster: "Cluster", *, everywhere: bool, as_json: bool) -> None:
    import time

    from headgate.cli.terminal import print_json, print_lines
    from headgate.cli.view.overview import overview

    applications = worst_of(cluster, everywhere=everywhere)
    if as_json:
        print_json([application.manifest for application in applications])
    elif applications:
        print_lines(overview(applications, time.time(), everywhere=everywhere))
    else:
        typer.echo(nothing_in(cluster, everywhere=everywhere), err=True)


def worst_of(cluster: "Cluster", *, everywhere: bool) -> "list[ClusterApplication]":
    """Return the applications of the namespace or of all, in the order in which they deserve a look."""
    from headgate.cli.cluster.application import ClusterApplication, worst_first

    return worst_first(map(ClusterApplication, cluster.applications(everywhere=everywhere)))


def nothing_in(cluster: "Cluster", *, everywhere: bool) -> str:
    """Say that there is nothing to show, and where it was looked for."""
    return f"no applications in {'any namespace' if everywhere else f'namespace {cluster.namespace}'}"
