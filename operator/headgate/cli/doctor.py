"""`headgate doctor`: what is in the way of Headgate, in a cluster or on this machine, and what to do."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.cluster.options import AllNamespaces, Context, Kubeconfig, Namespace, Where

if TYPE_CHECKING:
    from headgate.cli.checks import CheckResult


def doctor(  # noqa: PLR0913, PLR0917  each is an option of the command
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the application; without it, all of them.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Look at this machine and its Spark, not at a cluster.")
    ] = False,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="With --local: state folder of a run of headgate local, to look at its driver too."
        ),
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(help="With --local: command that starts drivers [headgate-run of this environment]."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON: a list of findings.")] = False,
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Look for problems, and say what to do about each.

    In a cluster it checks the versions of API server, CRD and operator, who leads, the operator's rights in the
    namespace, and whether Prometheus answers. For each application it checks whether its metrics arrive, its control
    document is in force, its driver reaches its sources, its Spark and Headgate fit, and what keeps a query out of
    real-time mode. With --local it checks Python, Java, Spark and the shim: it runs a query of a few records under
    headgate-run, which takes some ten seconds. It changes nothing.

    Exit code 0: no problem was found; warnings, and what cannot be seen, do not count. 1: there is a problem, or the
    cluster did not answer. 2: a bad option or kubeconfig.
    """
    from headgate.cli.checks import exit_code
    from headgate.errors import UsageError

    if local and (name is not None or all_namespaces):
        raise UsageError("--local looks at this machine; leave out NAME and --all-namespaces")
    if not local and (state_dir is not None or launcher is not None):
        raise UsageError("--state-dir and --launcher are of this machine; give --local with them")
    if local:
        from headgate.cli.checks.local import check_machine, check_run

        # The folder first: a wrong option is told at once, and not after a query of ten seconds.
        of_run = () if state_dir is None else check_run(state_dir)
        of_machine = chain(check_machine(launcher), of_run)
        raise typer.Exit(exit_code(_shown(of_machine, as_json=as_json)))
    from headgate.cli.checks.cluster import of_cluster

    with Where(namespace, context, kubeconfig, "--local").connect() as cluster:
        findings = of_cluster(cluster, lambda: cluster.chosen(name, everywhere=all_namespaces))
        raise typer.Exit(exit_code(_shown(findings, as_json=as_json)))


def _shown(findings: "Iterator[CheckResult]", *, as_json: bool) -> "list[CheckResult]":
    """Print findings, each as soon as it is there, and return them."""
    from dataclasses import asdict

    from rich.text import Text

    from headgate.cli.checks import Level
    from headgate.cli.terminal import print_json, print_lines

    styles = {Level.OK: "green", Level.UNKNOWN: "dim", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
    kept = []
    for finding in findings:
        kept.append(finding)
        if as_json:
            continue
        head = Text.assemble(
            (f"{finding.level:8}", styles[finding.level]), f" {finding.check} of {finding.of}: "
        )
        print_lines([Text.assemble(head, finding.says)])
        if finding.remedy and finding.level is not Level.OK:
            print_lines([Text(f"{'':8} -> {finding.remedy}")])
    if as_json:
        print_json([asdict(finding) for finding in kept])
    return kept
