"""The options that all commands against a cluster have, named as `kubectl` names them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from headgate.cli.cluster.client import Cluster

_option = partial(typer.Option, rich_help_panel="Cluster")
Namespace: TypeAlias = Annotated[
    str | None,
    _option(
        "--namespace", "-n", metavar="NAMESPACE", help="Namespace of the application [that of the context]."
    ),
]
Context: TypeAlias = Annotated[
    str | None, _option("--context", metavar="NAME", help="Context of the kubeconfig [the current one].")
]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    _option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig [$KUBECONFIG, ~/.kube/config, or the service account of a pod].",
    ),
]
AllNamespaces: TypeAlias = Annotated[
    bool, _option("--all-namespaces", "-A", help="Applications of all namespaces.")
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the application.")]


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster is meant, and where in it."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None
    here: str = ""
    """The option by which the command looks at this machine instead, if it has one."""

    def connect(self) -> "Cluster":
        """Return the cluster, to be opened by `with`; raise UsageError if nothing says which one."""
        from headgate.cli.cluster.connection import connect

        return connect(self.kubeconfig, self.context, self.namespace, self.here)
