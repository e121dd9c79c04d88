"""`headgate top`: all applications of a cluster, those that need a look first."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.cluster.options import AllNamespaces, Context, Kubeconfig, Namespace, Where
from headgate.cli.status import nothing_in, worst_of

if TYPE_CHECKING:
    from rich.text import Text

    from headgate.cli.cluster.client import Cluster


def top(  # noqa: PLR0913, PLR0917  each is an option of the command
    once: Annotated[
        bool, typer.Option("--once", help="Show them once and exit, as when the output is a file.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.5, max=3600, metavar="SECONDS", help="Time between two looks.")
    ] = 2.0,
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show all applications of a cluster, refreshed, worst first.

    They come in this order: failed or stalled, failing again and again, of unknown state, never catching up, without
    metrics, in backlog, starting or stopping, live, at rest; of two alike, the larger lag first. Of several queries
    it shows the one furthest behind. EXECUTORS has how many run and how many were asked for. HELD-BY has what keeps
    a source from being read, and which source it waits for. headgate status NAME says whose word holds for a
    setting. Ctrl-C ends it.

    Exit code 0: shown. 1: the cluster did not answer the first time. 2: a bad option or kubeconfig.
    """
    from headgate.cli.terminal import print_lines

    with Where(namespace, context, kubeconfig).connect() as cluster:
        lines = _lines(cluster, everywhere=all_namespaces)
        if once or not sys.stdout.isatty():
            print_lines(lines)
        else:
            _refresh(cluster, lines, every, everywhere=all_namespaces)


def _lines(cluster: "Cluster", *, everywhere: bool) -> "list[Text]":
    import time

    from rich.text import Text

    from headgate.cli.view.overview import overview

    applications = worst_of(cluster, everywhere=everywhere)
    if not applications:
        return [Text(nothing_in(cluster, everywhere=everywhere))]
    return overview(applications, time.time(), everywhere=everywhere)


def _refresh(cluster: "Cluster", lines: "list[Text]", every: float, *, everywhere: bool) -> None:
    """Draw anew until Ctrl-C; while the API server is away, the last answer stays, with a word of why.

    SIGTERM, as of `timeout`, ends it in order too: the terminal is what it was before.
    """
    import signal
    import time
    from contextlib import suppress

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from headgate.cli.terminal import Terminal
    from headgate.errors import HeadgateError

    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with (
            suppress(KeyboardInterrupt),
            Live(Group(*lines), console=Terminal(), auto_refresh=False, screen=True) as live,
        ):
            while True:
                time.sleep(every)
                try:
                    lines = _lines(cluster, everywhere=everywhere)
                    live.update(Group(*lines), refresh=True)
                except HeadgateError as error:
                    live.update(Group(*lines, Text(f"not refreshed: {error}", style="red")), refresh=True)
    finally:
        signal.signal(signal.SIGTERM, before)
