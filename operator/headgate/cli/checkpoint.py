"""`headgate checkpoint`: a commit before it is due."""

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.cluster.options import Context, Kubeconfig, Name, Namespace, Where

if TYPE_CHECKING:
    from headgate.cli.cluster.application import ClusterApplication


def checkpoint(
    name: Name,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="The query; all of them without it.")
    ] = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Ask queries of an application to commit now instead of when their interval is over.

    The next batch is due at once; a running batch is not cut short. The command writes the moment into the
    annotation headgate.dev/checkpoint.

    Exit code 0: asked. 1: there is no such application or query, or the cluster did not do it. 2: a bad option or
    kubeconfig.
    """
    from datetime import UTC, datetime

    from headgate.api.annotations import ALL_QUERIES, CHECKPOINT, checkpoint_requests, checkpoint_text
    from headgate.cli.cluster.annotating import annotate, named_query

    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def asked(application: "ClusterApplication") -> str:
        if query is None:
            return checkpoint_text({ALL_QUERIES: moment})
        requests = checkpoint_requests(application.annotations)
        return checkpoint_text(requests | {named_query(application, query): moment})

    with Where(namespace, context, kubeconfig).connect() as cluster:
        before = annotate(cluster, name, CHECKPOINT, asked)
    typer.echo(f"{name}: the next batch of {query or 'every query'} is due at once")
    if before.state is not None and before.state != "Running":
        typer.echo(f"note: {name} is {before.state}, so that no query can commit now", err=True)
