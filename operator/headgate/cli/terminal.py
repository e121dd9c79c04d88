"""What commands print: in colour on a terminal, plain and unwrapped anywhere else.

What others have written is shown there, and does nothing.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from headgate_contract.foreign import printable


class Terminal(Console):
    """A console that shows control characters as pictures; only Rich itself moves the cursor and sets colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is drawn, each harmless."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, lines=True))


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines to standard output; a terminal wraps them itself. What others wrote begins no line of its own."""
    console = Terminal(highlight=False, soft_wrap=True)
    for line in lines:
        line.plain = printable(line.plain)
        console.print(line)


def print_json(document: Any) -> None:
    """Print a document as `kubectl -o json` does."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
