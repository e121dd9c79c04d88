"""From a kubeconfig to a cluster, by the rules of `kubectl`.

`--kubeconfig`, else the files of `$KUBECONFIG`, else `~/.kube/config`, else the service account of the pod that this
runs in. Authentication is the official client's, of its synchronous half: of the plugins that a kubeconfig runs, the
other half hides what they say, as the address at which one logs in, and takes no second token when the first is old.
"""

import logging
import os
from collections.abc import Collection, Mapping
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes import config
from kubernetes.aio.client import ApiClient, Configuration

from headgate.adapters.kubernetes.client import connection
from headgate.adapters.kubernetes.kubeconfig import DEFAULT_KUBECONFIG, UNREADABLE, kubeconfig_files, sentence
from headgate.cli.cluster.client import Cluster, require_name
from headgate.errors import UsageError
from headgate_contract.nearest import did_you_mean

SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE = "default"


def connect(kubeconfig: Path | None, context: str | None, namespace: str | None, here: str = "") -> Cluster:
    """Return the cluster that the arguments, the environment and the files say; nothing is asked of it yet.

    `here` is an option that needs no cluster, named where there is none.
    Raises UsageError where none is configured, a file cannot be read, or a context is not in it.
    """
    files = _files(kubeconfig)
    if files:
        api, configured = _of_kubeconfig(files, context)
    elif context is not None:
        raise UsageError(f"--context {context}: there is no kubeconfig; set KUBECONFIG or give --kubeconfig")
    else:
        api, configured = _of_pod(here)
    where = namespace or configured or DEFAULT_NAMESPACE
    require_name(where, "a namespace")
    return Cluster(api, where)


def _files(kubeconfig: Path | None) -> str:
    """Return the files to read, joined as in `$KUBECONFIG`; empty: there is none."""
    if kubeconfig is not None:
        if not _is_there(str(kubeconfig)):
            raise UsageError(f"{kubeconfig}: there is no such kubeconfig; give --kubeconfig the path of one")
        return str(kubeconfig)
    if named := os.environ.get("KUBECONFIG"):
        if not _is_there(named):
            raise UsageError(f"KUBECONFIG is {named}, and there is no such file; set it to a kubeconfig")
        return named
    return str(*kubeconfig_files(DEFAULT_KUBECONFIG)) if _is_there(DEFAULT_KUBECONFIG) else ""


def _is_there(named: str) -> bool:
    """Return whether any of the files is there. One that may not be looked at is: who reads it hears of that."""
    try:
        return any(file.is_file() for file in kubeconfig_files(named))
    except OSError:
        return True


def _of_kubeconfig(files: str, context: str | None) -> tuple[ApiClient, str | None]:
    """Return the connection and the namespace of a context, `None`: of the current one."""
    settings = Configuration()
    try:
        contexts, current = _contexts(files)
        name = current if context is None else context
        if name not in contexts:
            raise UsageError(_no_context(files, context, contexts))
        if not isinstance(namespace := contexts[name].get("namespace"), str | None):
            raise UsageError(
                f"{files}: the namespace of context {name} is no text; put {namespace} in quotes"
            )
        _log_in(files, name, settings)
        return connection(settings), namespace
    except (config.ConfigException, *UNREADABLE) as error:
        raise UsageError(f"{files}: {sentence(error)}; check it with kubectl config view") from None


def _log_in(files: str, context: str | None, settings: Configuration) -> None:
    """Fill in the settings of a context; raise UsageError where its plugin refuses, or an address is none."""
    # Of a login that has failed the client writes to the log, and goes on as nobody.
    heard = MemoryHandler(0)  # without a target it keeps all
    heard.setLevel(logging.ERROR)
    logging.getLogger().addHandler(heard)
    try:
        config.load_kube_config(files, context, settings)  # type: ignore[no-untyped-call]
    finally:
        logging.getLogger().removeHandler(heard)
    if said := "; ".join(" ".join(record.getMessage().split()) for record in heard.buffer):
        raise UsageError(
            f"{files}: the login of context {context} failed: {said}; log in anew, as for kubectl"
        )
    for member, address in (("server", settings.host), ("proxy-url", settings.proxy)):
        if address is not None and not _is_address(address):
            raise UsageError(
                f"{files}: the {member} of context {context} is {address!r}, which is no address; "
                "give one as https://HOST:PORT"
            )


def _is_address(given: str) -> bool:
    try:
        parts = urlsplit(given)
        return bool(parts.scheme and parts.hostname and parts.port != 0)
    except ValueError:  # a port above 65535
        return False


def _contexts(files: str) -> tuple[dict[str, Mapping[str, Any]], str | None]:
    """Return the contexts by name and the current one; where files disagree, the first holds."""
    contexts: dict[str, Mapping[str, Any]] = {}
    current = None
    for path in kubeconfig_files(files):
        content = (yaml.safe_load(path.read_bytes()) if path.is_file() else None) or {}
        contexts = {each["name"]: each["context"] for each in content.get("contexts") or ()} | contexts
        current = current or content.get("current-context")
    return contexts, current


def _no_context(files: str, context: str | None, contexts: Collection[str]) -> str:
    names = ", ".join(sorted(contexts)) or "none"
    if context is None and not contexts:
        return f"{files} has no contexts; set KUBECONFIG or give --kubeconfig another one"
    if context is None:
        return f"{files} says no current context; give --context one of its own: {names}"
    hint = did_you_mean(context, contexts) or f"; it has: {names}"
    return f"--context {context} is not in {files}{hint}"


def _of_pod(here: str) -> tuple[ApiClient, str]:
    settings = Configuration()
    try:
        config.load_incluster_config(settings)  # type: ignore[no-untyped-call]
        return connection(settings), SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip()
    except (config.ConfigException, OSError):
        raise UsageError(
            f"no cluster is configured: there is no {DEFAULT_KUBECONFIG}, and this is not a pod; set KUBECONFIG or "
            f"give --kubeconfig{here and f', or {here} for this machine'}"
        ) from None
