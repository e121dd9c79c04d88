"""The terminal that commands draw on: what others have written is shown there, and does nothing."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from headgate_contract.foreign import printable


class Terminal(Console):
    """A console that shows control characters as pictures; only Rich itself moves the cursor and sets colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is drawn, each harmless."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, lines=True))
