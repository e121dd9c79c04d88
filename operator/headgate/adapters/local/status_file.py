"""The status as a file, where a cluster has the status subresource.

Its readers are people, scripts, and the next loop, which takes over from it when each condition last changed.
Events are not kept: whoever turns the loop has them, and shows them.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from headgate.adapters.local.atomic import read_text, replace_text
from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.ports import Event


class StatusFile:
    """The port `Reports`: one JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def last(self) -> SparkApplicationStatus | None:
        """Return the status in the file; one that cannot be read counts as none."""
        text = read_text(self._path)
        try:
            return None if text is None else SparkApplicationStatus.model_validate_json(text)
        except ValidationError:
            return None

    def write(self, status: SparkApplicationStatus) -> None:
        """Replace the file."""
        replace_text(self._path, status.model_dump_json(exclude_none=True, indent=1) + "\n")

    def tell(self, event: Event) -> None:
        """Do nothing: events are shown by whoever turns the loop."""
