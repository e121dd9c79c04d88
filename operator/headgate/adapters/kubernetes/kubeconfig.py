"""What a kubeconfig may be that is none, for whoever reads one: the official client fails of it in many ways."""

import os
from pathlib import Path
from typing import Final

import yaml

DEFAULT_KUBECONFIG: Final = "~/.kube/config"
UNREADABLE: Final = (yaml.YAMLError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What a file that cannot be read, or is no kubeconfig, leads to beside the client's own error."""


def kubeconfig_files(named: str) -> list[Path]:
    """Return the files that `$KUBECONFIG` names; a `~` of which nobody knows the home stays as it is."""
    return [Path(os.path.expanduser(name)) for name in named.split(os.pathsep) if name]  # noqa: PTH111  Path's raises


def sentence(error: Exception) -> str:
    """Return what is wrong on one line; a parser's context goes over several."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"malformed YAML in line {error.problem_mark.line + 1}: {error.problem}"
    if isinstance(error, KeyError):
        return f"a member {error} is missing"
    if isinstance(error, TypeError | AttributeError):
        return "has not the form of a kubeconfig"
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return " ".join(str(error).split()) or type(error).__name__
