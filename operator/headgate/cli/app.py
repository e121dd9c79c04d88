"""The commands of `headgate`, registered.

A command is a function in a file of its own, whose signature Typer reads. It imports what it needs inside its body,
so that `headgate --help` loads neither models nor clients. To add one, write the file and register it below. A
command reports a failure by raising a `HeadgateError`, which is printed as one message without a traceback; anything
else that escapes is a defect and keeps its traceback.
"""

import sys
from pathlib import Path
from typing import Final

import typer

from headgate import __version__
from headgate.cli.checkpoint import checkpoint
from headgate.cli.crd import crd
from headgate.cli.doctor import doctor
from headgate.cli.explain import explain
from headgate.cli.local.command import local
from headgate.cli.operator import operator
from headgate.cli.pause import pause, unpause
from headgate.cli.replay import replay
from headgate.cli.status import status
from headgate.cli.support_bundle import support_bundle
from headgate.cli.suspend import resume, suspend
from headgate.cli.top import top
from headgate.cli.validate import validate
from headgate.errors import HeadgateError

CLIENTS: Final = frozenset(
    {"aiohttp", "kopf", "kubernetes", "prometheus_api_client", "promql_parser", "requests", "urllib3"}
)
"""Packages of the extra `operator`: those who only validate resources or run jobs here need none of them."""

app = typer.Typer(
    name="headgate",
    help="Clears a Structured Streaming backlog at batch speed and runs live at stream latency.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(local)
app.command()(operator)
app.command()(validate)
app.command()(explain)
app.command()(crd)
app.command()(replay)
app.command()(doctor)
app.command("support-bundle")(support_bundle)
for command in (status, top, suspend, resume, pause, unpause, checkpoint):
    app.command(rich_help_panel="In a cluster")(command)


def run() -> None:
    """Run the command that the process was called with; ends it, or raises what a defect or an output did."""
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    try:
        app(prog_name="kubectl headgate" if is_plugin else "headgate")
    except HeadgateError as error:
        from headgate_contract.foreign import printable

        typer.echo(f"error: {printable(str(error), lines=True)}", err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in CLIENTS:
            raise
        remedy = (
            f"install them with the wheel: pip install 'headgate-{__version__}-py3-none-any.whl[operator]'"
        )
        typer.echo(f"error: this command needs {package}, which is not installed; {remedy}", err=True)
        sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Options that go before any command."""
