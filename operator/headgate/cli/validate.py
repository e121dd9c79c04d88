"""`headgate validate`: is a resource good, and if not, all that is wrong with it."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headgate.api.load import LoadedFile


def validate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files with resources; - reads standard input.")
    ],
) -> None:
    """Check resources without a cluster, by the rules that the API server applies and some that it cannot.

    Exit code 0: all good, warnings allowed. 1: something is refused. 2: a file cannot be read, or none holds a
    SparkApplication.
    """
    from headgate.api.application import API_VERSION, KIND
    from headgate.errors import HeadgateError, UsageError
    from headgate_contract.foreign import printable

    loaded = []
    unreadable: HeadgateError | None = None
    for file in files:
        try:
            loaded.append(read(file))
        except HeadgateError as error:
            unreadable = error
            typer.echo(f"error: {printable(str(error))}", err=True)
    for result in loaded:
        report(result)
    if unreadable:
        raise typer.Exit(unreadable.exit_code)
    if any(result.is_refused for result in loaded):
        raise typer.Exit(1)
    if not any(result.resources for result in loaded):  # what checked nothing must not look like a success
        read_files = ", ".join(result.file for result in loaded)
        raise UsageError(f"no {KIND} of {API_VERSION} in {read_files}; give a file that holds one")


def read(file: str) -> "LoadedFile":
    """Read a file, or standard input for `-`; raise UsageError where there is nothing to read."""
    from pathlib import Path

    from headgate.api.load import MOST_BYTES, load_bytes, load_file

    if file != "-":
        return load_file(Path(file))
    return load_bytes(typer.get_binary_stream("stdin").read(MOST_BYTES + 1), "-")


def report(result: "LoadedFile") -> None:
    """Print what was found in a file, one line each, and a last one that sums it up."""
    from headgate.api.finding import Severity

    for finding in result.all_findings:
        typer.echo(finding.text(result.file))
    counts = [
        f"{count} {severity}{'s' if count > 1 else ''}"
        for severity in (Severity.ERROR, Severity.WARNING)
        if (count := sum(finding.severity is severity for finding in result.all_findings))
    ]
    verdict = "refused" if result.is_refused else "good" if result.resources else "nothing to check"
    typer.echo(f"{result.file}: {verdict}" + (f" ({', '.join(counts)})" if counts else ""))
