"""`headgate support-bundle`: an archive for people who are asked for help, without what is secret in it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.cluster.options import AllNamespaces, Context, Kubeconfig, Namespace, Where

if TYPE_CHECKING:
    from headgate.cli.bundle import Bundle


def support_bundle(  # noqa: PLR0913, PLR0917  each is an option of the command
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the application; without it, all of them.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The archive [headgate-support-DATE.tar.gz]."),
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="State folder of a run of headgate local, in place of a cluster.")
    ] = None,
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Write an archive that helps others to find a fault.

    From a cluster it takes the findings of headgate doctor, the applications with their Events, their pods and the
    ends of their logs, and the same of the operator. With --state-dir it takes the files of that run. It leaves out
    values of sparkConf, arguments, variables and annotations that are not Headgate's, and masks everything else that
    looks like a secret. This may miss a secret, so look through the archive before you send it.

    Exit code 0: written; it names what could not be read. 1: there is no such application, or the cluster did
    not answer. 2: a bad option, or the archive cannot be written.
    """
    import time

    from headgate import __version__
    from headgate.cli.bundle import UNREAD, Bundle
    from headgate.errors import UsageError

    if state_dir is not None and (name is not None or all_namespaces):
        raise UsageError("--state-dir is of one run on this machine; leave out NAME and --all-namespaces")
    now = time.time()
    file = output or Path(time.strftime("headgate-support-%Y%m%d-%H%M%S.tar.gz", time.gmtime(now)))
    bundle = Bundle()
    written_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    bundle.documents["bundle.json"] = {"headgate": __version__, "writtenAt": written_at}
    if state_dir is None:
        where = Where(namespace, context, kubeconfig, "--state-dir")
        _of_cluster(where, name, bundle, everywhere=all_namespaces)
    else:
        bundle.take_run(state_dir)
    files = bundle.write(file)
    typer.echo(f"{file}: {files} files; look through them before you send them")
    if bundle.unread:
        typer.echo(f"not all could be read, see {UNREAD} in it", err=True)


def _of_cluster(where: Where, name: str | None, bundle: "Bundle", *, everywhere: bool) -> None:
    from headgate.cli.bundle.cluster import gather
    from headgate.cli.checks.cluster import of_cluster

    with where.connect() as cluster:
        applications = cluster.chosen(name, everywhere=everywhere)
        found: list[dict[str, str]] = []
        bundle.documents["doctor.json"] = found
        gather(cluster, applications, bundle)
        bundle.read(
            "doctor", lambda: found.extend(asdict(each) for each in of_cluster(cluster, lambda: applications))
        )
