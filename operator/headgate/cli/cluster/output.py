"""Printing for commands against a cluster: in colour on a terminal, plain and unwrapped anywhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.text import Text

from headgate.cli.terminal import Terminal
from headgate_contract.foreign import printable


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines to standard output; a terminal wraps them itself. What others wrote begins no line of its own."""
    console = Terminal(highlight=False, soft_wrap=True)
    for line in lines:
        line.plain = printable(line.plain)
        console.print(line)


def print_json(document: Any) -> None:
    """Print a document as `kubectl -o json` does."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
