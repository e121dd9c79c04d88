"""`headgate explain`: what a resource will do, or what a change of it will, in words."""

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.cluster.options import Context, Kubeconfig, Namespace, Where

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.api.application import SparkApplication


def explain(  # noqa: PLR0913, PLR0917  each is an option of the command
    resource: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="File with resources; - reads standard input; app/NAME is the one in the cluster.",
        ),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="OLD NEW", help="What the change from OLD to NEW does; each is a FILE or app/NAME."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the changes as JSON.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Metrics of the job's driver, such as http://localhost:8090/metrics, which say whose word holds.",
        ),
    ] = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Say in words what a resource will do, setting by setting, and how a change of each takes effect.

    Each line starts with its update mode: operator (it alone acts on the setting), live (the running job acts on it
    from its next batch on), executors (some come or go, the query goes on), restart (the driver is stopped at the
    end of a batch and started again). With --diff app/NAME FILE it says what kubectl apply would do.

    The last lines say where the value in force comes from: the resource (document), an option in the job, a
    property, or the default. Options are known only if --metrics names the driver; that works without a FILE, too.

    Exit code 0: explained. 1: a resource is refused, the cluster does not have it, or the driver does not tell its
    metrics. 2: a bad option, or a file that cannot be read.
    """
    from headgate.errors import UsageError

    if (resource is None and diff is None and metrics is None) or (resource is not None and diff is not None):
        raise UsageError("give a FILE, --diff OLD NEW to compare two, or --metrics URL of a driver")
    if diff is not None and metrics is not None:
        raise UsageError("--metrics goes with a FILE or alone, not with --diff")
    if as_json and diff is None:
        raise UsageError("--json writes changes; give --diff OLD NEW with it")
    where = Where(namespace, context, kubeconfig)
    if diff is not None:
        from headgate.cli.differences import differences, print_differences

        old, new = (applications_of(each, where) for each in diff)
        print_differences(list(differences(old, new)), as_json=as_json)
    else:
        from headgate.cli.holding import Told, of_driver, of_resource, told_by
        from headgate_contract.foreign import printable

        told = None if metrics is None else told_by(metrics)
        blocks = []
        if resource is None:
            blocks.append(_holding(of_driver(told or Told())) or "the job says nothing of itself")
        else:
            for application in applications_of(resource, where):
                blocks += [text(application), _holding(of_resource(application, told))]
        typer.echo(printable("\n\n".join(filter(None, blocks)), lines=True))


def _holding(lines: "Iterable[str]") -> str:
    """Return the block that says whose word holds; empty where there is nothing to say it of."""
    import textwrap

    wrapped = [
        line
        for each in lines
        for line in textwrap.wrap(
            each, _width(), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    ]
    head = "whose word holds (document, then option, then property, then default)"
    return "\n".join([head, *wrapped]) if wrapped else ""


def _width() -> int:
    import shutil

    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))


def applications_of(resource: str, where: Where) -> "list[SparkApplication]":
    """Return the applications of a file, of standard input or, for `app/NAME`, the one of a cluster.

    A file that is refused is reported, and ends the command with exit code 1.
    """
    from pathlib import Path

    from headgate.cli.validate import read, report
    from headgate.errors import UsageError

    kind, _, name = resource.partition("/")
    if kind == "app" and name and not Path(resource).exists():
        return [_in_cluster(name, where)]
    loaded = read(resource)
    if loaded.is_refused:
        report(loaded)
        raise typer.Exit(1)
    if not loaded.resources:
        raise UsageError(f"{loaded.file}: {loaded.without_resources}")
    return [found.application for found in loaded.resources if found.application]


def _in_cluster(name: str, where: Where) -> "SparkApplication":
    from headgate.api.finding import Severity
    from headgate.errors import InvalidInputError

    with where.connect() as cluster:
        application, findings = cluster.validated(cluster.application(name))
    if application is None:
        refused = [each.text(f"app/{name}") for each in findings if each.severity is Severity.ERROR]
        raise InvalidInputError("\n".join(["this version refuses what is in the cluster:", *refused]))
    return application


def text(application: "SparkApplication") -> str:
    """Return the explanation of one application, wrapped for the terminal."""
    import textwrap

    from headgate.api.explanation import explain as sections_of

    width = _width()
    blocks = []
    for section in sections_of(application):
        lines = [section.title]
        for sentence in section.sentences:
            first = f"  {sentence.update_mode.lower():<11}"
            lines += textwrap.wrap(
                sentence.text, width, initial_indent=first, subsequent_indent=" " * len(first)
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
