"""`headgate pause` and `headgate unpause`: read nothing from a source for a while, the others going on."""

from typing import Annotated, TypeAlias

import typer

from headgate.cli.cluster.options import Context, Kubeconfig, Name, Namespace, Where

Sources: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="QUERY/SOURCE...", help="Sources, as the resource lists them.")
]


def pause(
    name: Name,
    sources: Sources,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Read nothing more from sources of an application; its other sources go on, and nothing restarts.

    It adds to the annotation headgate.dev/paused, which Git does not own.

    Exit code 0: done. 1: there is no such application or source, or the cluster did not do it. 2: a bad option or
    kubeconfig.
    """
    from headgate.api.annotations import PAUSED, paused_text
    from headgate.cli.cluster.annotating import annotate, named_sources

    with Where(namespace, context, kubeconfig).connect() as cluster:
        before = annotate(
            cluster,
            name,
            PAUSED,
            lambda found: paused_text(found.paused_by_annotation | named_sources(found, sources)),
        )
    for query, source in sorted(named_sources(before, sources)):
        was = (query, source) in before.paused_by_annotation
        typer.echo(f"{query}/{source} {'was paused already' if was else 'is paused from its next batch on'}")


def unpause(
    name: Name,
    sources: Sources,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Read again from sources of an application that headgate pause has paused.

    It takes them out of the annotation headgate.dev/paused. It cannot undo a pause that the resource itself declares.

    Exit code 0: done. 1: there is no such application or source, the cluster did not do it, or the resource declares
    the pause. 2: a bad option or kubeconfig.
    """
    from headgate.api.annotations import PAUSED, paused_text
    from headgate.cli.cluster.annotating import annotate, named_sources
    from headgate.errors import InvalidInputError

    with Where(namespace, context, kubeconfig).connect() as cluster:
        before = annotate(
            cluster,
            name,
            PAUSED,
            lambda found: paused_text(
                found.paused_by_annotation - named_sources(found, sources, found.paused_by_annotation)
            ),
        )
    asked = named_sources(before, sources, before.paused_by_annotation)
    declared = sorted(f"{query}/{source}" for query, source in asked & before.paused_by_declaration)
    for query, source in sorted(asked - before.paused_by_declaration):
        was = (query, source) in before.paused_by_annotation
        typer.echo(f"{query}/{source} {'is read again' if was else 'was not paused'}")
    if declared:
        raise InvalidInputError(
            f"{', '.join(declared)}: paused in the spec of {name}, which only a change of it undoes; set paused: "
            "false where it is declared"
        )
