"""The control document, the loop's memory and the status as files.

Each may be damaged by whatever damages files. A control document that cannot be read counts as absent and
is written anew. A memory that cannot be read is set aside, so that nobody loses the evidence, and the loop
starts with an empty one: it costs latches and counters, not the application. The status is read by people, by
scripts, and by the next loop, which takes over from it when each condition last changed.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headgate.adapters.local.atomic import read_text, replace_text
from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.ports import Event
from headgate_contract import ControlDocument, Refusal
from headgate_contract.receiving import read, write


class ControlFile:
    """The port `Controls`: one file that the driver polls."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def published(self) -> ControlDocument | None:
        text = read_text(self._path)
        document = None if text is None else read(text)
        return None if isinstance(document, Refusal) else document

    def publish(self, document: ControlDocument) -> None:
        replace_text(self._path, write(document) + "\n")


class StoreFile:
    """The port `Store`: one JSON file. `complain` is told, in a sentence, when the file is damaged."""

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        self._path = path
        self._complain = complain

    def load(self) -> Mapping[str, Any] | None:
        """Return what was saved last; a damaged file is set aside and counts as none."""
        text = read_text(self._path)
        if text is None:
            return None
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            document, fault = None, f"is not JSON ({error})"
        else:
            fault = "is not a JSON object"
        if isinstance(document, dict):
            return document
        aside = self._path.with_name(f"{self._path.name}.damaged-{int(time.time())}")
        self._path.replace(aside)
        self._complain(
            f"{self._path} {fault}; it was renamed to {aside.name} and the loop starts without memory"
        )
        return None

    def save(self, document: Mapping[str, Any]) -> None:
        replace_text(self._path, json.dumps(document, indent=1) + "\n")


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
        replace_text(self._path, status.model_dump_json(exclude_none=True, indent=1) + "\n")

    def tell(self, event: Event) -> None:
        """Do nothing: events are shown by whoever runs the loop."""
