"""`headgate local`: the whole loop on one machine, without a cluster."""

from pathlib import Path
from typing import Annotated

import typer


def local(  # noqa: PLR0913, PLR0917  each is an option of the command
    file: Annotated[Path, typer.Argument(help="The resource: a YAML file with a SparkApplication.")],
    name: Annotated[str | None, typer.Option(help="Which application, if the file has several.")] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="Folder for log, control document and memory [.headgate/NAME].")
    ] = None,
    tick: Annotated[float, typer.Option(min=0.05, max=3600, help="Seconds between two reconciles.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object a line.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write all samples and events here at the end.")] = None,
    driver_output: Annotated[
        bool, typer.Option("--driver-output", help="Show what the driver prints, on stderr.")
    ] = False,
    launcher: Annotated[
        str | None,
        typer.Option(
            help="Command that starts the driver, for a job of another environment "
            "[headgate-run of this environment]."
        ),
    ] = None,
) -> None:
    """Run an application on this machine, govern it, and show what happens.

    Ctrl-C stops it at the end of the running batch; a second Ctrl-C stops it at once. Exit code 0: completed, or
    stopped as asked. 1: the resource is refused. 2: a bad option, or no such file. 75: its checkpoint, or its
    state folder, is in use. 76: a batch does not fit in memory. 78: the job cannot be governed with this set-up.
    79: stopped before it had read everything. 80: its JVM ran out of memory and died. 137: it had to be killed.
    141: stopped, since nobody read the output. Otherwise the exit code of the job.
    """
    from headgate.cli.local.session import Options, run_locally

    options = Options(
        name=name,
        state_dir=state_dir,
        tick_seconds=tick,
        as_json=as_json,
        report=report,
        driver_output=driver_output,
        launcher=launcher,
    )
    raise typer.Exit(run_locally(file, options))
