"""Files that are generated and committed: written by `make generate`, compared by `make lint`."""

import difflib
from pathlib import Path

import typer

from headgate.errors import UsageError


def keep(path: Path, text: str, *, check: bool) -> None:
    """Write a file that `make generate` makes, or compare it with the one that is there."""
    if check:
        compare(path, text, remedy="make generate")
    else:
        write(path, text)


def write(path: Path, text: str) -> None:
    """Write the file and its folder; raise UsageError if that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give a directory that can be written") from None
    typer.echo(f"wrote {path}")


def compare(path: Path, text: str, *, remedy: str) -> None:
    """Say that the file is up to date, or show how it differs, name the remedy, and exit with 1."""
    try:
        committed = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; run {remedy}") from None
    if committed == text:
        typer.echo(f"{path} is up to date")
        return
    before, after = committed.splitlines(keepends=True), text.splitlines(keepends=True)
    typer.echo("".join(difflib.unified_diff(before, after, str(path), "generated")), nl=False)
    typer.echo(f"error: {path} differs from what is generated; run {remedy}", err=True)
    raise typer.Exit(1)
