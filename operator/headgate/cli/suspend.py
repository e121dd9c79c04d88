"""`headgate suspend` and `headgate resume`: stop a driver and start it again, the application staying."""

from typing import Annotated, TypeAlias

import typer

from headgate.cli.cluster.options import Context, Kubeconfig, Name, Namespace, Where

Wait: TypeAlias = Annotated[bool, typer.Option("--wait", help="Return only when it is done.")]
Timeout: TypeAlias = Annotated[
    str, typer.Option(metavar="DURATION", help="How long --wait waits, such as 90s or 5m.")
]


def suspend(  # noqa: PLR0913, PLR0917  each is an option of the command
    name: Name,
    wait: Wait = False,
    timeout: Timeout = "5m",
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Stop the driver of an application at the end of its batch; resource, checkpoints and status stay.

    It sets spec.suspend, as kubectl patch would, and says what Argo CD or Flux will do to that.

    Exit code 0: done. 1: there is no such application, the cluster did not do it, or it took longer than --timeout.
    2: a bad option or kubeconfig.
    """
    _bring_about(Where(namespace, context, kubeconfig), name, suspended=True, wait=wait, timeout=timeout)


def resume(  # noqa: PLR0913, PLR0917  each is an option of the command
    name: Name,
    wait: Wait = False,
    timeout: Timeout = "5m",
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Start the driver of a suspended application again, from its checkpoints.

    It takes spec.suspend back, as kubectl patch would, and says what Argo CD or Flux will do to that.

    Exit code 0: done. 1: there is no such application, the cluster did not do it, it failed, or it took longer than
    --timeout. 2: a bad option or kubeconfig.
    """
    _bring_about(Where(namespace, context, kubeconfig), name, suspended=False, wait=wait, timeout=timeout)


def _bring_about(where: Where, name: str, *, suspended: bool, wait: bool, timeout: str) -> None:
    """Write what is wanted, and wait for it if that was asked; the options are checked first."""
    from headgate.api.duration import parse_duration
    from headgate.cli.cluster.application import ClusterApplication
    from headgate.cli.cluster.gitops import git_owner
    from headgate.cli.cluster.waiting import STARTED, STOPPED, wait_for
    from headgate.errors import UsageError

    try:
        seconds = parse_duration(timeout).total_seconds()
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
    with where.connect() as cluster:
        application = ClusterApplication(cluster.application(name))
        if application.is_suspended == suspended:
            typer.echo(f"{name} is {'suspended' if suspended else 'not suspended'} already")
        else:
            owner = git_owner(application.manifest, "spec", "suspend")
            cluster.patch(name, {"spec": {"suspend": suspended}})
            stopped = "suspended; its driver is stopped at the end of its batch"
            typer.echo(f"{name} is {stopped if suspended else 'resumed; its driver is started'}")
            if owner is not None:
                typer.echo(f"note: {owner.consequence('spec.suspend', str(suspended).lower())}", err=True)
        if wait:
            reached = wait_for(cluster, name, STOPPED if suspended else STARTED, seconds)
            typer.echo(f"{name} is {reached.state}")
