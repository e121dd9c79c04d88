"""Printing for commands against a cluster: in colour on a terminal, plain and unwrapped anywhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines to standard output; a terminal wraps them itself."""
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def print_json(document: Any) -> None:
    """Print a document as `kubectl -o json` does."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
