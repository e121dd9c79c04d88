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
    from headgate.cli.generated import compare, write
    from headgate.errors import UsageError

    if out and check:
        raise UsageError("--out writes and --check compares; give one of the two")
    name, text = _rendered(reference)
    if check:
        compare(check / name, text, remedy=f"headgate crd{' --reference' if reference else ''} --out {check}")
    elif out:
        write(out / name, text)
    else:
        typer.echo(text, nl=False)


def _rendered(reference: bool) -> tuple[str, str]:
    if reference:
        from headgate.api.reference import FILE_NAME, render_reference

        return FILE_NAME, render_reference()
    from headgate.api.crd import FILE_NAME as CRD_FILE_NAME
    from headgate.api.crd import render_crd

    return CRD_FILE_NAME, render_crd()
