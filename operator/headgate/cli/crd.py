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
    from headgate.errors import UsageError

    if out and check:
        raise UsageError("--out writes and --check compares; give one of the two")
    name, text = _rendered(reference)
    if check:
        _compare(check / name, text)
    elif out:
        _write(out / name, text)
    else:
        typer.echo(text, nl=False)


def _rendered(reference: bool) -> tuple[str, str]:
    if reference:
        from headgate.api.reference import FILE_NAME, render_reference

        return FILE_NAME, render_reference()
    from headgate.api.crd import FILE_NAME as CRD_FILE_NAME
    from headgate.api.crd import render_crd

    return CRD_FILE_NAME, render_crd()


def _write(path: Path, text: str) -> None:
    from headgate.errors import UsageError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give a directory that can be written") from None
    typer.echo(f"wrote {path}")


def _compare(path: Path, text: str) -> None:
    import difflib

    from headgate.errors import UsageError

    try:
        committed = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; run headgate crd --out {path.parent}") from None
    if committed == text:
        typer.echo(f"{path} is up to date")
        return
    before, after = committed.splitlines(keepends=True), text.splitlines(keepends=True)
    typer.echo("".join(difflib.unified_diff(before, after, str(path), "generated")), nl=False)
    typer.echo(f"error: {path} differs from the models; run headgate crd --out {path.parent}", err=True)
    raise typer.Exit(1)
