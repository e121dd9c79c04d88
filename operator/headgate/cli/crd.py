"""`headgate crd`: the files that are generated from the models."""

from pathlib import Path
from typing import Annotated

import typer


def crd(
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the file there.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Compare with the file there; exit code 1 if it differs."),
    ] = None,
    reference: Annotated[
        bool, typer.Option(help="The reference page of the resource instead of its CRD.")
    ] = False,
) -> None:
    """Print the CustomResourceDefinition, write it, or compare it with a committed one."""
    from headgate.api import crd as definition
    from headgate.api import reference as page
    from headgate.cli.generated import compare, write
    from headgate.errors import UsageError

    if out and check:
        raise UsageError("--out writes and --check compares; give one of the two")
    if reference:
        name, text = page.FILE_NAME, page.render_reference()
    else:
        name, text = definition.FILE_NAME, definition.render_crd()
    if check:
        compare(check / name, text, remedy=f"headgate crd{' --reference' if reference else ''} --out {check}")
    elif out:
        write(out / name, text)
    else:
        typer.echo(text, nl=False)
