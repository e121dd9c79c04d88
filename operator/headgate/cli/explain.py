"""`headgate explain`: what a resource will do, in words."""

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.validate import read, report, require_resources

if TYPE_CHECKING:
    from headgate.api.application import SparkApplication


def explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File with resources; - reads standard input.")],
) -> None:
    """Say in words what a resource will do, setting by setting, and how a change of each reaches the job.

    Each line starts with its lane: live (in force at the next batch), executors (some come or go, the query goes
    on), restart (the driver is stopped at the end of a batch and started anew).
    """
    loaded = read(file)
    if loaded.is_refused:
        report(loaded)
        raise typer.Exit(1)
    require_resources([loaded])
    applications = [resource.application for resource in loaded.resources if resource.application]
    typer.echo("\n\n".join(map(text, applications)))


def text(application: "SparkApplication") -> str:
    """Return the explanation of one application, wrapped for the terminal."""
    import shutil
    import textwrap

    from headgate.api.explanation import explain as sections_of

    width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))
    blocks = []
    for section in sections_of(application):
        lines = [section.title]
        for sentence in section.sentences:
            first = f"  {sentence.lane.lower():<11}"
            lines += textwrap.wrap(
                sentence.text, width, initial_indent=first, subsequent_indent=" " * len(first)
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
